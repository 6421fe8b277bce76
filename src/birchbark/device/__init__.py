"""How is the lean graph run on a GPU? By torch, node by node."""
