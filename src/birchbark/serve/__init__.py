"""The pipeline over HTTP, and its page: no ranking logic."""
