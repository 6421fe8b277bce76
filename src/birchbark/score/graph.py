"""How is BERT written as an ONNX graph that computes only what a score needs?

The graph differs from a plain export in four ways. Query, key and value are one matrix product.
The attention scale is folded into the query weights. If the head reads only [CLS], the last layer
is computed only for [CLS]. There is no attention mask, since all inputs in a batch have the same
length (batches.py). One function builds the graph for all families; the table in
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
from birchbark.checkpoint.families import Names
from birchbark.checkpoint.heads import PER_TOKEN, Classifier, Parade, Pooling, is_per_token
from birchbark.score.graph_writer import Floats, Graph
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
    cls_only = {pooling.mode for pooling in pooled if pooling.layer == layers} <= {"cls"}

    x = embeddings(graph, names, config, typed)  # (B, S, H)
    states = [x]
    for layer in range(layers):
        last = cls_only and layer == layers - 1
        x = transformer_layer(graph, x, names, layer, config, cls_only=last)  # (B, Q, H)
        states.append(x)
    if cls_only and layers == 0:
        x = _cls(graph, x)  # (B, 1, H)
    if pooled:
        vectors = [pool(graph, states[pooling.layer or 0], pooling.mode) for pooling in pooled]
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
    sizes = _output_sizes(config, head, len(poolings))
    result = helper.make_tensor_value_info("out", TensorProto.FLOAT, sizes)
    return graph.serialize("birchbark", inputs, [result]), graph.weights


def _new_graph(checkpoint: Checkpoint, channel_maxima: Mapping[str, Floats] | None) -> Graph:
    tensors, where = checkpoint.tensors(), str(checkpoint.weights)
    if channel_maxima is None:
        return Graph(tensors, where)
    return Int8Graph(tensors, where, channel_maxima)


def _output_sizes(
    config: EncoderConfig, head: Classifier | Pooling | Parade, poolings: int
) -> list[str | int | None]:
    """Return the shape of `out`; see build_graph."""
    if poolings:
        return ["B", poolings, config.hidden]
    if isinstance(head, Classifier):
        return ["B"]
    return ["B", "S", config.hidden] if is_per_token(head) else ["B", config.hidden]


def embeddings(graph: Graph, names: Names, config: EncoderConfig, typed: bool) -> str:
    """Sum token, position and type embeddings, normalise and project them: (B, S) → (B, S, H).

    typed: whether the graph has an input `types`; if not, all tokens have type 0.
    """
    width = config.embedding
    tokens = graph.tensor(f"{names.words}.weight", config.vocabulary, width)
    positions = graph.tensor(f"{names.positions}.weight", config.positions, width)
    positions = positions[config.offset :]
    types = graph.tensor(f"{names.types}.weight", config.types, width) if names.types else None
    if types is not None and not typed:
        positions = positions + types[0]
    x = graph.add("Gather", graph.weight(tokens, names.words), "ids")  # (B, S, E)
    length = graph.add("Shape", "ids", start=1, end=2)  # (1,): S
    zero = graph.constant(np.array([0]))
    position = graph.add("Slice", graph.weight(positions, names.positions), zero, length, zero)
    x = graph.add("Add", x, position)  # (B, S, E) + (S, E)
    if types is not None and typed:
        kind = graph.add("Gather", graph.weight(types, names.types), "types")  # (B, S, E)
        x = graph.add("Add", x, kind)
    x = graph.norm(x, names.embedded, width, config.epsilon)
    if names.widen and (width != config.hidden or graph.has(f"{names.widen}.weight")):
        x = graph.linear(x, names.widen, config.hidden, width)  # (B, S, E) → (B, S, H)
    return x


def transformer_layer(
    graph: Graph, x: str, names: Names, layer: int, config: EncoderConfig, *, cls_only: bool
) -> str:
    """Add a transformer layer: (B, S, H) → (B, S, H), or (B, 1, H) if `cls_only`."""
    hidden = config.hidden

    def at(name: str) -> str:
        return name.format(i=layer, group=config.group(layer))

    q, k, v = at(names.query), at(names.key), at(names.value)
    if cls_only:
        keys, values = _projected(graph, x, (k, v), q, config)  # (B, S, H) each
        x = _cls(graph, x)  # (B, 1, H)
        (queries,) = _projected(graph, x, (q,), q, config, one_row=True)  # (B, 1, H)
    else:
        queries, keys, values = _projected(graph, x, (q, k, v), q, config)  # (B, S, H) each
    attended = _attention(graph, queries, keys, values, config)  # (B, Q, H)
    attended = graph.linear(attended, at(names.attended), hidden, hidden, one_row=cls_only)
    x = graph.add("Add", attended, x)  # (B, Q, H)
    x = graph.norm(x, at(names.attended_norm), hidden, config.epsilon)
    inner = graph.linear(x, at(names.inner), config.intermediate, hidden, one_row=cls_only)
    inner = graph.activate(inner, config.activation)  # (B, Q, I)
    out = graph.linear(inner, at(names.outer), hidden, config.intermediate, one_row=cls_only)
    x = graph.add("Add", out, x)  # (B, Q, H)
    return graph.norm(x, at(names.outer_norm), hidden, config.epsilon)


def _cls(graph: Graph, x: str) -> str:
    """Select [CLS]: (B, S, H) → (B, 1, H)."""
    start, end, axis = (graph.constant(np.array([i])) for i in (0, 1, 1))
    return graph.add("Slice", x, start, end, axis)


def _projected(
    graph: Graph,
    x: str,
    layers: tuple[str, ...],
    query: str,
    config: EncoderConfig,
    *,
    one_row: bool = False,
) -> list[str]:
    """Apply several linear layers as one matrix product: (B, S, H) → (B, S, H) per layer.

    The layer called `query`, if it is among them, is multiplied by the attention scale 1 / √D.
    """
    hidden = config.hidden
    scale = np.float32(1 / np.sqrt(hidden // config.heads))
    factors = [scale if layer == query else np.float32(1) for layer in layers]
    weights, biases = (  # (layers · H, H) and (layers · H,)
        np.concatenate(
            [
                graph.tensor(f"{layer}.{part}", *sizes) * factor
                for layer, factor in zip(layers, factors, strict=True)
            ]
        )
        for part, sizes in (("weight", (hidden, hidden)), ("bias", (hidden,)))
    )
    product = graph.dense(x, weights, biases, " + ".join(layers), one_row=one_row)
    if len(layers) == 1:
        return [product]
    # (B, S, layers · H) → (B, S, H) each
    return graph.add_many("Split", len(layers), product, axis=-1, num_outputs=len(layers))


def _attention(graph: Graph, queries: str, keys: str, values: str, config: EncoderConfig) -> str:
    """Compute softmax(q · kᵀ) · v per head: (B, Q, H), (B, S, H), (B, S, H) → (B, Q, H)."""
    # reshape to (B, Q or S, N, D), then transpose to queries (B, N, Q, D), keys (B, N, D, S) and
    # values (B, N, S, D)
    per_head = graph.constant(np.array([0, 0, config.heads, config.hidden // config.heads]))
    q, k, v = (
        graph.add("Transpose", graph.add("Reshape", x, per_head), perm=perm)
        for x, perm in ((queries, [0, 2, 1, 3]), (keys, [0, 2, 3, 1]), (values, [0, 2, 1, 3]))
    )
    weights = graph.add("Softmax", graph.add("MatMul", q, k), axis=-1)  # (B, N, Q, S)
    mixed = graph.add("MatMul", weights, v)  # (B, N, Q, D)
    joined = graph.constant(np.array([0, 0, config.hidden]))
    # (B, Q, N, D) → (B, Q, H)
    return graph.add("Reshape", graph.add("Transpose", mixed, perm=[0, 2, 1, 3]), joined)


def _logit(graph: Graph, x: str, config: EncoderConfig, head: Classifier) -> str:
    """Apply the classifier to [CLS]: (B, 1, H) → (B,).

    Two logits are reduced to their difference, relevant minus not relevant.
    """
    weight = graph.tensor(f"{head.output}.weight", head.logit_count, config.hidden)
    bias = graph.tensor(f"{head.output}.bias", head.logit_count)
    out = graph.dense(  # (B, 1, 1)
        _transformed(graph, x, config, head.transform),
        head.one_logit(weight),
        head.one_logit(bias),
        head.output,
        one_row=True,
    )
    return graph.add("Reshape", out, graph.constant(np.array([-1])))


def _transformed(graph: Graph, x: str, config: EncoderConfig, transform: tuple[str, str]) -> str:
    """Apply a linear layer and an activation to [CLS]: (B, 1, H) → (B, 1, H)."""
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


def pool(graph: Graph, x: str, mode: str) -> str:
    """Pool token vectors and scale the result to length 1: (B, S, H) → (B, H).

    Mode `tokens` does not pool, but scales each token's vector: (B, S, H) → (B, S, H).
    """
    if mode == PER_TOKEN:
        return graph.add("LpNormalization", x, axis=-1, p=2)
    x = _cls(graph, x) if mode == "cls" else x  # (B, Q, H)
    # (B, H, Q): reducing over the last axis gives the same bits in any batch
    rows = graph.add("Transpose", x, perm=[0, 2, 1])
    reduce = "ReduceMax" if mode == "max" else "ReduceMean"
    vector = graph.add(reduce, rows, graph.constant(np.array([-1])), keepdims=0)  # (B, H)
    return graph.add("LpNormalization", vector, axis=-1, p=2)
