"""How effective are pipelines, and what do they cost? The kind `pipelines`."""
