"""How do files become Documents, Queries, Qrels and Runs, and go back? One reader a format."""
