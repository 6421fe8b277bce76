"""How is a checkpoint trained? With device/ the only home of torch."""
