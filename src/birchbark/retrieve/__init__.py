"""Which documents should BERT see? (Index, Query) → first-stage Ranking."""
