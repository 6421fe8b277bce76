"""How is a checkpoint trained? Only this package and device/ import torch."""
