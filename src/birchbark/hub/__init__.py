"""How does a checkpoint come from the hub? The only room that fetches anything."""
