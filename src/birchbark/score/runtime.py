"""How is a graph opened in ONNX Runtime so that equal inputs give equal bits?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray


def open_graph(graph: bytes, weights: Mapping[str, NDArray[Any]]) -> Any:
    """Return a single-threaded InferenceSession for a serialised graph.

    weights: the arrays that `graph` refers to, by name. The session reads them in place, so they
    must outlive it.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    # The optimiser would not make this graph faster, but would make its output depend on the batch
    # (docs/explanation/determinism.md).
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    values = [onnxruntime.OrtValue.ortvalue_from_numpy(value) for value in weights.values()]
    options.add_external_initializers(list(weights), values)
    return onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
