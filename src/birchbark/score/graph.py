"""How is BERT written as an ONNX graph that computes only what a score needs?

Against a plain export: query, key and value are one matrix product; the attention scale is folded
into the query weights; where the head reads [CLS] alone, the last layer is computed for [CLS]
alone; and there is no attention mask, since every batch holds inputs of one length (batches.py).
The graph is the same for all families; what differs is in their table (checkpoint/families.py).
Devlin et al. 2019; Nogueira & Cho 2019.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from birchbark.checkpoint.families import Names
from birchbark.checkpoint.heads import TOKENS, Classifier, Parade, Pooling, by_token
from birchbark.checkpoint.reader import Checkpoint
from birchbark.checkpoint.shape import Shape
from birchbark.score.graph_writer import Floats, Graph
from birchbark.score.integers import IntegerGraph

OPSET = 20


def build_graph(
    checkpoint: Checkpoint,
    largest: Mapping[str, Floats] | None = None,
    poolings: Sequence[Pooling] = (),
) -> tuple[bytes, dict[str, NDArray[Any]]]:
    """The ONNX model of `checkpoint`, and the weights that it names, to be handed over beside it.

    largest: of each channel (channels.py), if linear layers are to be computed in integers.
    poolings: of layers with numbers, in the head's place.
    Inputs: `ids` int64 (batch, length), and for logits of a family that tells them apart `types`
    int64 (batch, length), 0 for the query's tokens and 1 for the segment's. Output `out`, float32:
    unit vectors (batch, hidden) for an embedding, (batch, length, hidden) where tokens keep theirs,
    (batch, poolings, hidden) for several poolings, log-odds of relevance (batch,) for a classifier,
    vectors of passages (batch, hidden) for PARADE, which parade.py makes one score of.
    """
    from onnx import TensorProto, helper

    shape, head, names = checkpoint.shape, checkpoint.head, checkpoint.family.names
    tensors, where = checkpoint.tensors(), str(checkpoint.weights)
    graph = Graph(tensors, where) if largest is None else IntegerGraph(tensors, where, largest)
    several = tuple(poolings) or ((head,) if isinstance(head, Pooling) else ())
    typed = not several and shape.types > 1
    layers = max((one.layer or 0 for one in several), default=shape.layers)
    first_only = {one.mode for one in several if one.layer == layers} <= {"cls"}

    x = embeddings(graph, names, shape, typed)
    states = [x]
    for layer in range(layers):
        last = first_only and layer == layers - 1
        x = transformer_layer(graph, x, names, layer, shape, cls_only=last)
        states.append(x)
    if first_only and layers == 0:
        x = _first(graph, x)
    if several:
        vectors = [pool(graph, states[one.layer or 0], one.mode) for one in several]
        out = _stack(graph, vectors) if poolings else vectors[0]
    elif isinstance(head, Parade):
        out = _passage(graph, x, shape, head)
    elif isinstance(head, Classifier):
        out = _logit(graph, x, shape, head)
    graph.nodes.append(helper.make_node("Identity", [out], ["out"]))
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.INT64, ["B", "S"])
        for name in (("ids", "types") if typed else ("ids",))
    ]
    sizes: list[str | int | None] = ["B", *([len(poolings)] if poolings else [])]
    if by_token(head) and not poolings:
        sizes.append("S")
    if several or not isinstance(head, Classifier):
        sizes.append(shape.hidden)
    result = helper.make_tensor_value_info("out", TensorProto.FLOAT, sizes)
    model = helper.make_model(
        helper.make_graph(graph.nodes, "birchbark", inputs, [result], graph.constants),
        opset_imports=[helper.make_opsetid(d, 1 if d else OPSET) for d in graph.domains],
        ir_version=9,
    )
    return model.SerializeToString(), graph.weights


def embeddings(graph: Graph, names: Names, shape: Shape, typed: bool) -> str:
    """Token + position + type vectors, normalised and widened: (B, S, H)."""
    width = shape.embedding
    word = graph.tensor(f"{names.words}.weight", shape.vocabulary, width)
    position = graph.tensor(f"{names.positions}.weight", shape.positions, width)[shape.offset :]
    kind = graph.tensor(f"{names.types}.weight", shape.types, width) if names.types else None
    if kind is not None and not typed:
        position = position + kind[0]
    x = graph.add("Gather", graph.weight(word, names.words), "ids")
    length = graph.add("Shape", "ids", start=1, end=2)
    zero = graph.constant(np.array([0]))
    near = graph.add("Slice", graph.weight(position, names.positions), zero, length, zero)
    x = graph.add("Add", x, near)
    if kind is not None and typed:
        x = graph.add("Add", x, graph.add("Gather", graph.weight(kind, names.types), "types"))
    x = graph.norm(x, names.embedded, width, shape.epsilon)
    if names.widen and (width != shape.hidden or graph.has(f"{names.widen}.weight")):
        x = graph.linear(x, names.widen, shape.hidden, width)
    return x


def transformer_layer(
    graph: Graph, x: str, names: Names, layer: int, shape: Shape, *, cls_only: bool
) -> str:
    """One transformer layer: (B, S, H) → (B, S, H), or (B, 1, H) for [CLS] alone."""
    hidden = shape.hidden

    def at(name: str) -> str:
        return name.format(i=layer, group=shape.group(layer))

    q, k, v = at(names.query), at(names.key), at(names.value)
    if cls_only:
        keys, values = _projected(graph, x, (k, v), q, shape)
        x = _first(graph, x)
        (queries,) = _projected(graph, x, (q,), q, shape, one_row=True)
    else:
        queries, keys, values = _projected(graph, x, (q, k, v), q, shape)
    attended = _attention(graph, queries, keys, values, shape)
    attended = graph.linear(attended, at(names.attended), hidden, hidden, one_row=cls_only)
    x = graph.add("Add", attended, x)
    x = graph.norm(x, at(names.attended_norm), hidden, shape.epsilon)
    inner = graph.linear(x, at(names.inner), shape.intermediate, hidden, one_row=cls_only)
    inner = graph.activate(inner, shape.activation)
    out = graph.linear(inner, at(names.outer), hidden, shape.intermediate, one_row=cls_only)
    return graph.norm(graph.add("Add", out, x), at(names.outer_norm), hidden, shape.epsilon)


def _first(graph: Graph, x: str) -> str:
    """[CLS] alone: (B, S, H) → (B, 1, H)."""
    return graph.add("Slice", x, *(graph.constant(np.array([i])) for i in (0, 1, 1)))


def _projected(
    graph: Graph,
    x: str,
    parts: tuple[str, ...],
    query: str,
    shape: Shape,
    *,
    one_row: bool = False,
) -> list[str]:
    """Several linear layers as one product; `query`, if among them, carries the scale 1/√d."""
    hidden = shape.hidden
    scale = np.float32(1 / np.sqrt(hidden // shape.heads))
    factors = [scale if part == query else np.float32(1) for part in parts]
    weights, biases = (
        np.concatenate(
            [
                graph.tensor(f"{part}.{kind}", *size) * factor
                for part, factor in zip(parts, factors, strict=True)
            ]
        )
        for kind, size in (("weight", (hidden, hidden)), ("bias", (hidden,)))
    )
    product = graph.dense(x, weights, biases, " + ".join(parts), one_row=one_row)
    if len(parts) == 1:
        return [product]
    return graph.add_many("Split", len(parts), product, axis=-1, num_outputs=len(parts))


def _attention(graph: Graph, queries: str, keys: str, values: str, shape: Shape) -> str:
    """softmax(q · kᵀ) · v for each head: (B, Q, H), (B, S, H), (B, S, H) → (B, Q, H)."""
    per_head = graph.constant(np.array([0, 0, shape.heads, shape.hidden // shape.heads]))
    q, k, v = (
        graph.add("Transpose", graph.add("Reshape", x, per_head), perm=perm)
        for x, perm in ((queries, [0, 2, 1, 3]), (keys, [0, 2, 3, 1]), (values, [0, 2, 1, 3]))
    )
    mixed = graph.add("MatMul", graph.add("Softmax", graph.add("MatMul", q, k), axis=-1), v)
    back = graph.constant(np.array([0, 0, shape.hidden]))
    return graph.add("Reshape", graph.add("Transpose", mixed, perm=[0, 2, 1, 3]), back)


def _logit(graph: Graph, x: str, shape: Shape, head: Classifier) -> str:
    """The head on [CLS]; of two logits, relevant minus not: (B, 1, H) → (B,)."""
    weight = graph.tensor(f"{head.output}.weight", head.logits, shape.hidden)
    bias = graph.tensor(f"{head.output}.bias", head.logits)
    out = graph.dense(
        _transformed(graph, x, shape, head),
        head.one_logit(weight),
        head.one_logit(bias),
        head.output,
        one_row=True,
    )
    return graph.add("Reshape", out, graph.constant(np.array([-1])))


def _transformed(graph: Graph, x: str, shape: Shape, head: Classifier | Parade) -> str:
    """The head's layer on [CLS] with its activation: (B, 1, H) → (B, 1, H)."""
    name, activation = head.transform
    x = graph.linear(x, name, shape.hidden, shape.hidden, one_row=True)
    return graph.activate(x, activation)


def _passage(graph: Graph, x: str, shape: Shape, head: Parade) -> str:
    """A passage's vector: (B, 1, H) → (B, H)."""
    out = _transformed(graph, x, shape, head)
    return graph.add("Reshape", out, graph.constant(np.array([-1, shape.hidden])))


def _stack(graph: Graph, vectors: Sequence[str]) -> str:
    """Several (B, H) as one: (B, several, H)."""
    one = graph.constant(np.array([1]))
    return graph.add("Concat", *(graph.add("Unsqueeze", v, one) for v in vectors), axis=1)


def pool(graph: Graph, x: str, mode: str) -> str:
    """Token vectors as one, scaled to length 1; of (B, S, H) cls takes the first: (B, H).

    Mode tokens scales each: (B, S, H).
    """
    if mode == TOKENS:
        return graph.add("LpNormalization", x, axis=-1, p=2)
    x = _first(graph, x) if mode == "cls" else x
    rows = graph.add("Transpose", x, perm=[0, 2, 1])  # sums over the last axis ignore the batch
    reduce = "ReduceMax" if mode == "max" else "ReduceMean"
    one = graph.add(reduce, rows, graph.constant(np.array([-1])), keepdims=0)
    return graph.add("LpNormalization", one, axis=-1, p=2)
