"""Which kinds of studies are there? One class per kind, and the reader for recipe files."""
