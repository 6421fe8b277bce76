"""What does a model change in the first k documents? The kind `reranking`."""
