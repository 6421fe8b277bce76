"""How does BERT score segments for a query? With ONNX Runtime, without torch."""
