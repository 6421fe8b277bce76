"""Which layer, pooling and field makes the best bi-encoder? The kind `bi-encoder`."""
