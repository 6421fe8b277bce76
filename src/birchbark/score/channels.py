"""How large does each channel become that a linear layer reads?

A few channels of BERT are many times as large as the others, the same ones for any text, so they
are found by tokens drawn at random: real text gave no better factors (ARCHITECTURE.md, "Scores in
8-bit integers"), and a checkpoint brings none.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from birchbark.checkpoint.reader import Checkpoint
from birchbark.score.graph import build_graph
from birchbark.score.graph_writer import Floats
from birchbark.score.runtime import open_graph

INPUTS, LENGTH, SEED = 16, 40, 0


def largest_channels(checkpoint: Checkpoint) -> dict[str, Floats]:
    """Name of a linear layer → largest |x| of each channel that it reads (inner,)."""
    import onnx

    graph, weights = build_graph(checkpoint)
    model = onnx.load_from_string(graph)
    reads = [n.input for n in model.graph.node if n.op_type == "MatMul" and n.input[1] in weights]
    for x in dict.fromkeys(x for x, _ in reads):
        model.graph.output.append(onnx.helper.make_empty_tensor_value_info(x))
    session = open_graph(model.SerializeToString(), weights)
    feed = _random_inputs(checkpoint, [put.name for put in session.get_inputs()])
    found = session.run([x for x, _ in reads], feed)
    largest: dict[str, Floats] = {}
    for (_, weight), x in zip(reads, found, strict=True):
        name, most = weight.removesuffix(".weight"), np.abs(x).max(axis=(0, 1))
        largest[name] = np.maximum(most, largest.get(name, 0))  # layers may share weights
    return largest


def _random_inputs(checkpoint: Checkpoint, names: list[str]) -> dict[str, Any]:
    shape = checkpoint.shape
    size = (INPUTS, min(LENGTH, shape.longest))
    ids = np.random.default_rng(SEED).integers(0, shape.vocabulary, size)
    types = np.zeros(size, np.int64)
    types[:, size[1] // 3 :] = min(1, shape.types - 1)
    return {name: value for name, value in (("ids", ids), ("types", types)) if name in names}
