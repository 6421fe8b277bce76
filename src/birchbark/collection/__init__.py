"""How do files become Documents, Queries, Qrels, Runs and Pairs, and back? One reader a format."""
