"""What is computed once for an index's documents, and stored with it?"""
