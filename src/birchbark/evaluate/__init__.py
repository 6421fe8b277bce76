"""How good is a run, and can the difference between two be trusted? (Qrels, Run) → figures."""
