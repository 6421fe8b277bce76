"""Which fields, weights and match rank best? The kind `fields`."""
