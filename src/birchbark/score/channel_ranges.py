"""How large do the values in each input channel of a linear layer become?

In BERT, the values of a few channels are many times as large as all others, whatever the text.
Random tokens therefore suffice to find these channels: real text gave no better factors
(docs/explanation/int8.md), and a checkpoint contains no text.

To find them takes a third of a second, so a model may bring the result along, in a file that
`birchbark model quantize` writes. It is not used for other weights than those that it was made of,
nor with another pooling than the model's own, which computes other layers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from birchbark.artifact import fingerprint
from birchbark.checkpoint.checkpoint import Checkpoint
from birchbark.checkpoint.heads import Pooling
from birchbark.checkpoint.shards import weight_files
from birchbark.errors import CheckpointError
from birchbark.score.graph import build_graph
from birchbark.score.graph_writer import Floats
from birchbark.score.runtime import open_graph

INPUTS, LENGTH, SEED = 16, 40, 0
STORED, MADE_OF = "channel_maxima.safetensors", "weights"  # file, and its key for their hash


def channel_maxima(checkpoint: Checkpoint, poolings: Sequence[Pooling] = ()) -> dict[str, Floats]:
    """Return linear layer → largest |x| in each input channel, float32 (inner,).

    poolings: see build_graph.
    """
    stored = {} if checkpoint.pooling or poolings else _stored(checkpoint)
    return stored or _computed(checkpoint, poolings)


def store_channel_maxima(checkpoint: Checkpoint) -> None:
    """Write what `channel_maxima` returns beside the weights."""
    from safetensors.numpy import save_file

    made_of = {MADE_OF: fingerprint(*weight_files(checkpoint.weights))}
    save_file(_computed(checkpoint, ()), checkpoint.directory / STORED, made_of)


def _stored(checkpoint: Checkpoint) -> dict[str, Floats]:
    """Return the stored maxima; nothing if there are none, or they are of other weights."""
    from safetensors import SafetensorError, safe_open

    path = checkpoint.directory / STORED
    if not path.exists():
        return {}
    try:
        with safe_open(path, "numpy") as file:
            if (file.metadata() or {}).get(MADE_OF) != fingerprint(
                *weight_files(checkpoint.weights)
            ):
                return {}
            stored = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except SafetensorError as broken:
        raise CheckpointError(
            f"damaged file: {broken}",
            where=str(path),
            remedy="delete it: what it holds is computed then",
        ) from broken
    usable = all(x.ndim == 1 and np.isfinite(x).all() and (x >= 0).all() for x in stored.values())
    return stored if usable else {}


def _computed(checkpoint: Checkpoint, poolings: Sequence[Pooling]) -> dict[str, Floats]:
    import onnx

    graph, weights = build_graph(checkpoint, poolings=poolings)
    model = onnx.load_from_string(graph)
    linear = [n.input for n in model.graph.node if n.op_type == "MatMul" and n.input[1] in weights]
    if not linear:  # embeddings alone (layer 0)
        return {}
    for x in dict.fromkeys(x for x, _ in linear):
        model.graph.output.append(onnx.helper.make_empty_tensor_value_info(x))
    session = open_graph(model.SerializeToString(), weights)
    feed = _random_inputs(checkpoint, [put.name for put in session.get_inputs()])
    inputs = session.run([x for x, _ in linear], feed)  # (B, S, inner) each, (B, inner) once pooled
    maxima: dict[str, Floats] = {}
    for (_, weight), x in zip(linear, inputs, strict=True):
        name = weight.removesuffix(".weight")
        largest = np.abs(x).reshape(-1, x.shape[-1]).max(axis=0)  # (inner,)
        maxima[name] = np.maximum(largest, maxima.get(name, 0))  # layers may share weights
    return maxima


def _random_inputs(checkpoint: Checkpoint, names: list[str]) -> dict[str, Any]:
    """Return inputs (B, S) of random token ids; the last two thirds of each have type 1."""
    config = checkpoint.config
    size = (INPUTS, min(LENGTH, config.max_positions))
    ids = np.random.default_rng(SEED).integers(0, config.vocabulary, size)
    types = np.zeros(size, np.int64)
    types[:, size[1] // 3 :] = min(1, config.types - 1)
    return {name: value for name, value in (("ids", ids), ("types", types)) if name in names}
