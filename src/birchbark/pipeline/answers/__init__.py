"""What does a search return, and what do people see of it? Hits, snippets, facets, notes."""
