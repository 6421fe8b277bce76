"""How are the embeddings and layers of an encoder written as nodes of an ONNX graph?

Query, key and value are one matrix product. The attention scale is folded into the query weights.
There is no mask for padding, since all inputs in a batch have the same length (batches.py). The
shapes in comments are those of graph.py.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from birchbark.checkpoint.encoder_config import EncoderConfig
from birchbark.checkpoint.encoder_modules import lacks
from birchbark.checkpoint.families import Names
from birchbark.score.graph_writer import Graph, Linear
from birchbark.score.position_nodes import Positions, Unattended, positions_in_attention


def embeddings(graph: Graph, names: Names, config: EncoderConfig, typed: bool) -> str:
    """Sum token, position and type embeddings, normalise and project them: (B, S) → (B, S, H).

    typed: whether the graph has an input `types`; if not, all tokens have type 0.
    """
    width = config.embedding
    tokens = graph.tensor(f"{names.words}.weight", config.vocabulary, width)
    positions = types = None
    if names.positions:
        positions = graph.tensor(f"{names.positions}.weight", config.positions, width)
        positions = positions[config.offset :]
    if names.types and config.types:
        types = graph.tensor(f"{names.types}.weight", config.types, width)
        if not typed and positions is not None:
            positions = positions + types[0]
        elif not typed:
            tokens = tokens + types[0]
    x = graph.add("Gather", graph.weight(tokens, names.words), "ids")  # (B, S, E)
    if positions is not None:
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


def encoder_layers(
    graph: Graph,
    x: str,
    names: Names,
    config: EncoderConfig,
    count: int,
    *,
    cls_only: bool,
    unattended: str = "",
) -> list[str]:
    """Add the first `count` layers after the embeddings `x` (B, S, H).

    unattended: int64 (B, S), 1 for tokens that no token attends to; by default, there are none.

    Returns `x` and the output of each layer, (B, S, H) each; that of the last one is (B, 1, H) if
    `cls_only`. The output of the encoder's last layer is normalised once more if the family has a
    norm for it.
    """
    positions = positions_in_attention(graph, names, config)
    if unattended:
        positions = Unattended(graph, positions, unattended)
    states = [x]
    for layer in range(count):
        last = cls_only and layer == count - 1
        out = transformer_layer(graph, states[-1], names, layer, config, positions, cls_only=last)
        states.append(out)
    if count == config.layers and names.final_norm:
        states[-1] = graph.norm(states[-1], names.final_norm, config.hidden, config.epsilon)
    return states


def transformer_layer(
    graph: Graph,
    x: str,
    names: Names,
    layer: int,
    config: EncoderConfig,
    positions: Positions,
    *,
    cls_only: bool,
) -> str:
    """Add a transformer layer: (B, S, H) → (B, S, H), or (B, 1, H) if `cls_only`."""
    hidden = config.hidden

    def at(name: str) -> str:
        return name.format(i=layer, group=config.group(layer))

    def norm(x: str, part: str) -> str:
        absent = lacks(part, layer, config)
        return x if absent else graph.norm(x, at(getattr(names, part)), hidden, config.epsilon)

    read = norm(x, "attended_norm") if config.prenorm else x  # (B, S, H)
    query, key, value = _query_key_value(graph, names, layer, config)
    if cls_only:
        keys, values = _projected(graph, read, (key, value))  # (B, S, H) each
        read = cls(graph, read)  # (B, 1, H)
        x = cls(graph, x) if config.prenorm else read  # (B, 1, H)
        (queries,) = _projected(graph, read, (query,), one_row=True)  # (B, 1, H)
    else:
        queries, keys, values = _projected(graph, read, (query, key, value))  # (B, S, H) each
    positions.enter_layer(layer, query, key, cls_only=cls_only)
    attended = _attention(graph, queries, keys, values, config, positions)  # (B, Q, H)
    attended = graph.linear(attended, at(names.attended), hidden, hidden, one_row=cls_only)
    x = graph.add("Add", attended, x)  # (B, Q, H)
    if config.prenorm:
        read = norm(x, "outer_norm")
    else:
        read = x = norm(x, "attended_norm")
    inner = _inner(graph, read, at(names.inner), config, one_row=cls_only)  # (B, Q, I)
    out = graph.linear(inner, at(names.outer), hidden, config.intermediate, one_row=cls_only)
    x = graph.add("Add", out, x)  # (B, Q, H)
    return x if config.prenorm else norm(x, "outer_norm")


def cls(graph: Graph, x: str) -> str:
    """Select [CLS]: (B, S, H) → (B, 1, H)."""
    start, end, axis = (graph.constant(np.array([i])) for i in (0, 1, 1))
    return graph.add("Slice", x, start, end, axis)


def _inner(graph: Graph, x: str, name: str, config: EncoderConfig, *, one_row: bool) -> str:
    """Apply the first feed-forward layer and the activation: (B, Q, H) → (B, Q, I)."""
    if not config.gated:
        x = graph.linear(x, name, config.intermediate, config.hidden, one_row=one_row)
        return graph.activate(x, config.activation)
    x = graph.linear(x, name, 2 * config.intermediate, config.hidden, one_row=one_row)
    x, gate = graph.add_many("Split", 2, x, axis=-1, num_outputs=2)  # (B, Q, I) each
    return graph.add("Mul", graph.activate(x, config.activation), gate)


def _query_key_value(
    graph: Graph, names: Names, layer: int, config: EncoderConfig
) -> tuple[Linear, Linear, Linear]:
    """Return the linear layers of attention; that of the queries includes the attention scale."""
    hidden = config.hidden
    if names.fused:
        name = names.fused.format(i=layer, group=config.group(layer))
        query, key, value = graph.linear_layer(name, 3 * hidden, hidden).split(3)
    else:
        query, key, value = (
            graph.linear_layer(pattern.format(i=layer, group=config.group(layer)), hidden, hidden)
            for pattern in (names.query, names.key, names.value)
        )
    return query.scaled(np.float32(config.attention_scale)), key, value


def _projected(
    graph: Graph, x: str, layers: Sequence[Linear], *, one_row: bool = False
) -> list[str]:
    """Apply several linear layers as one matrix product: (B, S, H) → (B, S, H) per layer."""
    product = graph.dense(x, Linear.join(layers), one_row=one_row)
    if len(layers) == 1:
        return [product]
    # (B, S, layers · H) → (B, S, H) each
    return graph.add_many("Split", len(layers), product, axis=-1, num_outputs=len(layers))


def _attention(
    graph: Graph,
    queries: str,
    keys: str,
    values: str,
    config: EncoderConfig,
    positions: Positions,
) -> str:
    """Compute softmax(q · kᵀ) · v per head: (B, Q, H), (B, S, H), (B, S, H) → (B, Q, H)."""
    # reshape to (B, Q or S, N, D), then transpose to queries (B, N, Q, D), keys (B, N, D, S) and
    # values (B, N, S, D)
    per_head = graph.constant(np.array([0, 0, config.heads, config.hidden // config.heads]))
    q, k, v = (
        graph.add("Transpose", rotate(graph.add("Reshape", x, per_head)), perm=perm)
        for x, perm, rotate in (
            (queries, [0, 2, 1, 3], positions.rotate_queries),
            (keys, [0, 2, 3, 1], positions.rotate),
            (values, [0, 2, 1, 3], str),
        )
    )
    scores = positions.adjust(graph.add("MatMul", q, k), q, k)  # (B, N, Q, S)
    weights = graph.add("Softmax", scores, axis=-1)  # (B, N, Q, S)
    mixed = graph.add("MatMul", weights, v)  # (B, N, Q, D)
    joined = graph.constant(np.array([0, 0, config.hidden]))
    # (B, Q, N, D) → (B, Q, H)
    return graph.add("Reshape", graph.add("Transpose", mixed, perm=[0, 2, 1, 3]), joined)
