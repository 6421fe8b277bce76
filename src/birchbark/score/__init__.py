"""How relevant is each segment to the query, says BERT? (Query, Segments) → floats. No torch."""
