"""How is a checkpoint trained, and run on a GPU? The only home of torch."""
