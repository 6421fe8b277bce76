"""How is a graph opened in ONNX Runtime, so that its bits depend on nothing but its inputs?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray


def open_graph(graph: bytes, weights: Mapping[str, NDArray[Any]]) -> Any:
    """An InferenceSession on one processor.

    graph: names `weights`, which the runtime reads where they are: they must outlive the session.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    # The graph is lean already: the optimiser makes it no faster, but makes bits depend on the
    # batch (ARCHITECTURE.md, "Scores that do not drift").
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    values = [onnxruntime.OrtValue.ortvalue_from_numpy(value) for value in weights.values()]
    options.add_external_initializers(list(weights), values)
    return onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
