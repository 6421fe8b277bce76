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
    PER_TOKEN,
    Classifier,
    Parade,
    Pooling,
    is_per_token,
    unsupported_pooling,
)
from birchbark.checkpoint.layers import Dense, Layer, LayerNorm, UnitLength
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
             PARADE, and only in families with token types. Of models that extend queries by tokens
             that no token attends to: 1 for these, 0 for all others

    Output `out` of the model, float32:
      classifier        log-odds of relevance (B,)
      embedding         unit vectors (B, H), or (B, S, H) with a vector per token
      several poolings  unit vectors (B, P, H)
      PARADE            passage vectors (B, H), which parade.py aggregates
    """
    from onnx import TensorProto, helper

    config, head, names = checkpoint.config, checkpoint.head, checkpoint.family.names
    graph = new_graph(checkpoint, channel_maxima)
    pooled = tuple(poolings) or ((head,) if isinstance(head, Pooling) else ())
    multi_vector = checkpoint.multi_vector
    has_unattended = bool(multi_vector and not multi_vector.is_attended)
    typed = not pooled and config.types > 1
    layers = max((pooling.layer or 0 for pooling in pooled), default=config.layers)
    modes = {pooling.mode for pooling in pooled if pooling.layer == layers}
    if isinstance(head, Classifier) and not pooled:
        modes = {head.reads}
    cls_only = modes <= {"cls"}

    x = embeddings(graph, names, config, typed)  # (B, S, H)
    unattended = "types" if has_unattended else ""
    states = encoder_layers(
        graph, x, names, config, layers, cls_only=cls_only, unattended=unattended
    )
    x = states[-1]  # (B, Q, H)
    if pooled:
        vectors = [pool(graph, states[pooling.layer or 0], pooling) for pooling in pooled]
        out = _stack(graph, vectors) if poolings else vectors[0]
    elif isinstance(head, Parade):
        out = _passage_vector(graph, x, config, head)
    elif isinstance(head, Classifier):
        out = _logit(graph, x, head)
    graph.name_output(out, "out")
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.INT64, ["B", "S"])
        for name in (("ids", "types") if typed or has_unattended else ("ids",))
    ]
    sizes = _output_sizes(checkpoint, len(poolings))
    result = helper.make_tensor_value_info("out", TensorProto.FLOAT, sizes)
    return graph.serialize("birchbark", inputs, [result]), graph.weights


def new_graph(checkpoint: Checkpoint, channel_maxima: Mapping[str, Floats] | None = None) -> Graph:
    """Return a graph with a model's weights, in 8 bits with the maxima of channels."""
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


def _logit(graph: Graph, x: str, head: Classifier) -> str:
    """Apply the classifier to [CLS], or to the pooled vector of all tokens: (B, Q, H) → (B,).

    Two logits are reduced to their difference, relevant minus not relevant.
    """
    if head.reads != "cls":
        pooled = _pooled(graph, x, head.reads)  # (B, H)
        x = graph.add("Unsqueeze", pooled, graph.constant(np.array([1])))  # (B, 1, H)
    x = apply_layers(graph, x, head.layers)  # (B, 1, inputs of the output layer)
    both = linear_layer(graph, head.output)
    bias = None if both.bias is None else head.one_logit(both.bias)
    output = Linear(head.output.name, head.one_logit(both.weight), bias)
    out = graph.dense(x, output, one_row=True)  # (B, 1, 1)
    out = graph.activate(out, head.output.activation) if head.output.activation else out
    return graph.add("Reshape", out, graph.constant(np.array([-1])))


def _passage_vector(graph: Graph, x: str, config: EncoderConfig, head: Parade) -> str:
    """Compute the passage's vector from [CLS]: (B, 1, H) → (B, H)."""
    x = apply_layers(graph, x, head.layers)
    return graph.add("Reshape", x, graph.constant(np.array([-1, config.hidden])))


def linear_layer(graph: Graph, layer: Dense) -> Linear:
    """Return the weights of a linear layer."""
    weight = graph.tensor(f"{layer.name}.weight", layer.outputs, layer.inputs)
    bias = graph.tensor(f"{layer.name}.bias", layer.outputs) if layer.bias else None
    return Linear(layer.name, weight, bias)


def apply_layers(graph: Graph, x: str, layers: Sequence[Layer]) -> str:
    """Apply layers to one vector per input, or to a few: (…, inputs) → (…, outputs)."""
    for layer in layers:
        match layer:
            case Dense():
                x = _dense(graph, x, layer)
            case LayerNorm():
                x = graph.norm(x, layer.name, layer.outputs, layer.epsilon)
            case UnitLength():
                x = graph.add("LpNormalization", x, axis=-1, p=2)
    return x


def _dense(graph: Graph, x: str, layer: Dense) -> str:
    """Apply a linear layer, its activation and what is added to it; see `apply_layers`."""
    out = graph.dense(x, linear_layer(graph, layer), one_row=True)
    out = graph.activate(out, layer.activation) if layer.activation else out
    if layer.residual == "projected":
        name = f"{layer.name}.residual"
        weight = graph.tensor(f"{name}.weight", layer.outputs, layer.inputs)
        x = graph.dense(x, Linear(name, weight, None), one_row=True)
    return graph.add("Add", out, x) if layer.residual else out


def _stack(graph: Graph, vectors: Sequence[str]) -> str:
    """Stack the vectors of P poolings, (B, H) each, into (B, P, H)."""
    axis = graph.constant(np.array([1]))
    return graph.add("Concat", *(graph.add("Unsqueeze", v, axis) for v in vectors), axis=1)


def pool(graph: Graph, x: str, pooling: Pooling) -> str:
    """Pool token vectors and scale the result to length 1: (B, S, H) → (B, H).

    Mode `tokens` does not pool, but scales each token's vector: (B, S, H) → (B, S, H).
    """
    if pooling.mode != PER_TOKEN:
        x = _pooled(graph, x, pooling.mode)  # (B, H)
    return apply_layers(graph, x, (*pooling.layers, UnitLength(0)))


def _pooled(graph: Graph, x: str, mode: str) -> str:
    """Reduce token vectors to one per input: (B, S, H) → (B, H)."""
    match mode:
        case "cls":
            return graph.reduced(cls(graph, x), "ReduceMean")  # of one token
        case "mean":
            return graph.reduced(x, "ReduceMean")
        case "max":
            return graph.reduced(x, "ReduceMax")
        case unknown:
            raise unsupported_pooling(unknown)
