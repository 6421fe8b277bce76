"""How is the pipeline served over HTTP, with a page for browsers? No ranking logic is here."""
