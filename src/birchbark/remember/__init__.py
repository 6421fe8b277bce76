"""Which scores are known already?"""
