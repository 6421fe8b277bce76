"""Which documents should be re-ranked? (Index, Query) → first-stage Ranking."""
