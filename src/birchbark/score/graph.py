"""How is BERT written as an ONNX graph that computes only what a score needs?

If the head reads only [CLS], the last layer is computed only for [CLS]. encoder_layers.py says what
else differs from a plain export. One function builds the graph for all families; the table in
checkpoint/families.py defines how they differ. Devlin et al. 2019; Nogueira & Cho 2019.

Shapes in comments: B inputs of S tokens; H hidden dimensions, in N attention heads of D = H / N; E
embedding dimensions; I intermediate dimensions; P poolings. Q is S, or 1 where only [CLS] is
computed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from birchbark.checkpoint.checkpoint import Checkpoint
from birchbark.checkpoint.encoder_config import EncoderConfig
from birchbark.checkpoint.heads import (
    Classifier,
    Parade,
    Pooling,
    is_per_token,
    unsupported_pooling,
)
from birchbark.score.encoder_layers import cls, embeddings, encoder_layers
from birchbark.score.graph_writer import Floats, Graph, Linear
from birchbark.score.int8_graph import Int8Graph


def build_graph(
    checkpoint: Checkpoint,
    channel_maxima: Mapping[str, Floats] | None = None,
    poolings: Sequence[Pooling] = (),
) -> tuple[bytes, dict[str, NDArray[Any]]]:
    """Return the ONNX model of `checkpoint`, and the weights that it refers to by name.

    channel_maxima: see channel_ranges.py; if given, linear layers are computed in int8.
    poolings: used instead of the checkpoint's head; each must state its layer.

    Inputs of the model:
      ids    int64 (B, S)
      types  int64 (B, S): 0 for the query's tokens, 1 for the segment's; only for classifiers and
             PARADE, and only in families with token types

    Output `out` of the model, float32:
      classifier        log-odds of relevance (B,)
      embedding         unit vectors (B, H), or (B, S, H) with a vector per token
      several poolings  unit vectors (B, P, H)
      PARADE            passage vectors (B, H), which parade.py aggregates
    """
    from onnx import TensorProto, helper

    config, head, names = checkpoint.config, checkpoint.head, checkpoint.family.names
    graph = _new_graph(checkpoint, channel_maxima)
    pooled = tuple(poolings) or ((head,) if isinstance(head, Pooling) else ())
    typed = not pooled and config.types > 1
    layers = max((pooling.layer or 0 for pooling in pooled), default=config.layers)
    modes = {pooling.mode for pooling in pooled if pooling.layer == layers}
    if isinstance(head, Classifier) and not pooled:
        modes = {head.reads}
    cls_only = modes <= {"cls"}

    x = embeddings(graph, names, config, typed)  # (B, S, H)
    states = encoder_layers(graph, x, names, config, layers, cls_only=cls_only)
    x = states[-1]  # (B, Q, H)
    if pooled:
        vectors = [pool(graph, states[pooling.layer or 0], pooling) for pooling in pooled]
        out = _stack(graph, vectors) if poolings else vectors[0]
    elif isinstance(head, Parade):
        out = _passage_vector(graph, x, config, head)
    elif isinstance(head, Classifier):
        out = _logit(graph, x, config, head)
    graph.name_output(out, "out")
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.INT64, ["B", "S"])
        for name in (("ids", "types") if typed else ("ids",))
    ]
    sizes = _output_sizes(checkpoint, len(poolings))
    result = helper.make_tensor_value_info("out", TensorProto.FLOAT, sizes)
    return graph.serialize("birchbark", inputs, [result]), graph.weights


def _new_graph(checkpoint: Checkpoint, channel_maxima: Mapping[str, Floats] | None) -> Graph:
    tensors, where = checkpoint.tensors(), str(checkpoint.weights)
    optional = checkpoint.family.optional_biases
    if channel_maxima is None:
        return Graph(tensors, where, optional)
    return Int8Graph(tensors, where, channel_maxima, optional)


def _output_sizes(checkpoint: Checkpoint, poolings: int) -> list[str | int | None]:
    """Return the shape of `out`; see build_graph."""
    size = checkpoint.vector_size
    if poolings:
        return ["B", poolings, size]
    if isinstance(checkpoint.head, Classifier):
        return ["B"]
    return ["B", "S", size] if is_per_token(checkpoint.head) else ["B", size]


def _logit(graph: Graph, x: str, config: EncoderConfig, head: Classifier) -> str:
    """Apply the classifier to [CLS], or to the mean of all tokens: (B, Q, H) → (B,).

    Two logits are reduced to their difference, relevant minus not relevant.
    """
    if head.reads == "mean":
        mean = graph.reduced(x, "ReduceMean")  # (B, H)
        x = graph.add("Unsqueeze", mean, graph.constant(np.array([1])))  # (B, 1, H)
    x = _transformed(graph, x, config, head.transform)  # (B, 1, H)
    if head.norm:
        x = graph.norm(x, head.norm, config.hidden, config.epsilon)
    both = graph.linear_layer(head.output, head.logit_count, config.hidden)
    bias = None if both.bias is None else head.one_logit(both.bias)
    output = Linear(head.output, head.one_logit(both.weight), bias)
    out = graph.dense(x, output, one_row=True)  # (B, 1, 1)
    return graph.add("Reshape", out, graph.constant(np.array([-1])))


def _transformed(graph: Graph, x: str, config: EncoderConfig, transform: tuple[str, str]) -> str:
    """Apply a linear layer and an activation to one vector per input: (B, 1, H) → (B, 1, H)."""
    name, activation = transform
    x = graph.linear(x, name, config.hidden, config.hidden, one_row=True)
    return graph.activate(x, activation)


def _passage_vector(graph: Graph, x: str, config: EncoderConfig, head: Parade) -> str:
    """Compute the passage's vector from [CLS]: (B, 1, H) → (B, H)."""
    x = _transformed(graph, x, config, head.transform) if head.transform else x
    return graph.add("Reshape", x, graph.constant(np.array([-1, config.hidden])))


def _stack(graph: Graph, vectors: Sequence[str]) -> str:
    """Stack the vectors of P poolings, (B, H) each, into (B, P, H)."""
    axis = graph.constant(np.array([1]))
    return graph.add("Concat", *(graph.add("Unsqueeze", v, axis) for v in vectors), axis=1)


def pool(graph: Graph, x: str, pooling: Pooling) -> str:
    """Pool token vectors and scale the result to length 1: (B, S, H) → (B, H).

    Mode `tokens` does not pool, but scales each token's vector: (B, S, H) → (B, S, H).
    """
    match pooling.mode:  # → (B, H)
        case "tokens":
            return graph.add("LpNormalization", x, axis=-1, p=2)
        case "cls":
            vector = graph.reduced(cls(graph, x), "ReduceMean")  # of one token
        case "mean":
            vector = graph.reduced(x, "ReduceMean")
        case "max":
            vector = graph.reduced(x, "ReduceMax")
        case unknown:
            raise unsupported_pooling(unknown)
    for module in pooling.dense:
        weight = graph.tensor(f"{module.name}.weight", module.outputs, module.inputs)
        bias = graph.tensor(f"{module.name}.bias", module.outputs) if module.bias else None
        vector = graph.dense(vector, Linear(module.name, weight, bias), one_row=True)
        vector = graph.activate(vector, module.activation) if module.activation else vector
    return graph.add("LpNormalization", vector, axis=-1, p=2)
