"""How is BERT written as an ONNX graph that computes only what a score needs?

Against a plain export: query, key and value are one matrix product; the attention scale is folded
into the query weights; for a logit, the last layer is computed for [CLS] alone; and there is no
attention mask, since every batch holds inputs of one length (batches.py).
Devlin et al. 2019; Nogueira & Cho 2019.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from birchbark.errors import CheckpointError
from birchbark.score.checkpoint import Checkpoint, Head, Shape, Tensors

OPSET = 20
Floats = NDArray[np.float32]


class _Graph:
    """Nodes and constants written so far; each method adds some and names its result."""

    def __init__(self, tensors: Tensors, where: str) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.weights: dict[str, NDArray[Any]] = {}
        self._tensors = tensors
        self._where = where

    def tensor(self, name: str, *shape: int) -> Floats:
        """The weights called `name`, float32; CheckpointError unless they have this shape."""
        value = self._tensors.get(name)
        if value is None or value.shape != shape:
            raise CheckpointError(
                f"weights {name} do not fit config.json",
                where=self._where,
                wanted=f"shape {shape}",
                found="none" if value is None else f"shape {value.shape}",
            )
        return value.astype(np.float32, copy=False)

    def constant(self, value: NDArray[Any]) -> str:
        from onnx import numpy_helper

        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(value, name))
        return name

    def weight(self, value: Floats) -> str:
        """Weights stay outside of the graph, so that they are never copied into it."""
        from onnx import StringStringEntryProto, TensorProto

        name = f"w{len(self.weights)}"
        self.weights[name] = np.ascontiguousarray(value)
        outside = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=value.shape)
        outside.data_location = TensorProto.EXTERNAL
        outside.external_data.append(StringStringEntryProto(key="location", value="memory"))
        self.constants.append(outside)
        return name

    def add(self, op: str, *inputs: str, **attributes: Any) -> str:
        return self.add_many(op, 1, *inputs, **attributes)[0]

    def add_many(self, op: str, outputs: int, *inputs: str, **attributes: Any) -> list[str]:
        from onnx import helper

        names = [f"n{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(op, inputs, names, **attributes))
        return names

    def dense(self, x: str, weight: Floats, bias: Floats) -> str:
        """X · weightᵀ + bias, as torch stores a linear layer."""
        return self.add("Add", self.add("MatMul", x, self.weight(weight.T)), self.weight(bias))

    def linear(self, x: str, name: str, out: int, inner: int) -> str:
        weight = self.tensor(f"{name}.weight", out, inner)
        return self.dense(x, weight, self.tensor(f"{name}.bias", out))

    def norm(self, x: str, name: str, hidden: int, epsilon: float) -> str:
        scale = self.weight(self.tensor(f"{name}.weight", hidden))
        bias = self.weight(self.tensor(f"{name}.bias", hidden))
        return self.add("LayerNormalization", x, scale, bias, axis=-1, epsilon=epsilon)


def build_graph(checkpoint: Checkpoint) -> tuple[bytes, dict[str, Floats]]:
    """The ONNX model of `checkpoint`, and the weights that it names, to be handed over beside it.

    Inputs: `ids` int64 (batch, length), and for logits `types` int64 (batch, length), 0 for the
    query's tokens and 1 for the segment's. Output `out`, float32: unit vectors (batch, hidden) for
    an embedding, log-odds of relevance (batch,) for a classifier.
    """
    from onnx import TensorProto, helper

    shape, pairs = checkpoint.shape, checkpoint.head is not Head.MEAN
    graph = _Graph(checkpoint.tensors(), str(checkpoint.weights))
    x = _embeddings(graph, shape, pairs)
    for layer in range(shape.layers):
        x = _layer(graph, x, layer, shape, cls_only=pairs and layer == shape.layers - 1)
    out = _logit(graph, x, checkpoint) if pairs else _unit_mean(graph, x)
    graph.nodes.append(helper.make_node("Identity", [out], ["out"]))
    names = ("ids", "types") if pairs else ("ids",)
    inputs = [helper.make_tensor_value_info(n, TensorProto.INT64, ["B", "S"]) for n in names]
    result = helper.make_tensor_value_info(
        "out", TensorProto.FLOAT, ["B"] if pairs else ["B", shape.hidden]
    )
    model = helper.make_model(
        helper.make_graph(graph.nodes, "birchbark", inputs, [result], graph.constants),
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=9,
    )
    return model.SerializeToString(), graph.weights


def _embeddings(graph: _Graph, shape: Shape, pairs: bool) -> str:
    """Token + position + type vectors, normalised: (B, S, H)."""
    word = graph.tensor("embeddings.word_embeddings.weight", shape.vocabulary, shape.hidden)
    position = graph.tensor("embeddings.position_embeddings.weight", shape.positions, shape.hidden)
    kind = graph.tensor("embeddings.token_type_embeddings.weight", shape.types, shape.hidden)
    if not pairs:
        position = position + kind[0]
    x = graph.add("Gather", graph.weight(word), "ids")
    length = graph.add("Shape", "ids", start=1, end=2)
    zero = graph.constant(np.array([0]))
    x = graph.add("Add", x, graph.add("Slice", graph.weight(position), zero, length, zero))
    if pairs:
        x = graph.add("Add", x, graph.add("Gather", graph.weight(kind), "types"))
    return graph.norm(x, "embeddings.LayerNorm", shape.hidden, shape.epsilon)


def _layer(graph: _Graph, x: str, layer: int, shape: Shape, *, cls_only: bool) -> str:
    """One transformer layer: (B, S, H) → (B, S, H), or (B, 1, H) for [CLS] alone."""
    name, hidden = f"encoder.layer.{layer}", shape.hidden
    q, k, v = _projections(graph, f"{name}.attention.self", shape)
    if cls_only:
        keys, values = graph.add_many("Split", 2, _stack(graph, x, (k, v)), axis=-1, num_outputs=2)
        x = graph.add("Slice", x, *(graph.constant(np.array([i])) for i in (0, 1, 1)))
        queries = _stack(graph, x, (q,))
    else:
        queries, keys, values = graph.add_many(
            "Split", 3, _stack(graph, x, (q, k, v)), axis=-1, num_outputs=3
        )
    attended = _attention(graph, queries, keys, values, shape)
    attended = graph.linear(attended, f"{name}.attention.output.dense", hidden, hidden)
    x = graph.add("Add", attended, x)
    x = graph.norm(x, f"{name}.attention.output.LayerNorm", hidden, shape.epsilon)
    inner = graph.linear(x, f"{name}.intermediate.dense", shape.intermediate, hidden)
    inner = graph.add("Gelu", inner)
    out = graph.linear(inner, f"{name}.output.dense", hidden, shape.intermediate)
    return graph.norm(graph.add("Add", out, x), f"{name}.output.LayerNorm", hidden, shape.epsilon)


def _projections(graph: _Graph, name: str, shape: Shape) -> list[tuple[Floats, Floats]]:
    """Weight and bias of query, key and value; the query's carry the scale 1/√d."""
    hidden = shape.hidden
    scale = np.float32(1 / np.sqrt(hidden // shape.heads))
    return [
        (
            graph.tensor(f"{name}.{part}.weight", hidden, hidden) * factor,
            graph.tensor(f"{name}.{part}.bias", hidden) * factor,
        )
        for part, factor in (("query", scale), ("key", np.float32(1)), ("value", np.float32(1)))
    ]


def _stack(graph: _Graph, x: str, projections: tuple[tuple[Floats, Floats], ...]) -> str:
    """Several linear layers as one product."""
    return graph.dense(
        x, np.concatenate([w for w, _ in projections]), np.concatenate([b for _, b in projections])
    )


def _attention(graph: _Graph, queries: str, keys: str, values: str, shape: Shape) -> str:
    """softmax(q · kᵀ) · v for each head: (B, Q, H), (B, S, H), (B, S, H) → (B, Q, H)."""
    per_head = graph.constant(np.array([0, 0, shape.heads, shape.hidden // shape.heads]))
    q, k, v = (
        graph.add("Transpose", graph.add("Reshape", x, per_head), perm=perm)
        for x, perm in ((queries, [0, 2, 1, 3]), (keys, [0, 2, 3, 1]), (values, [0, 2, 1, 3]))
    )
    mixed = graph.add("MatMul", graph.add("Softmax", graph.add("MatMul", q, k), axis=-1), v)
    back = graph.constant(np.array([0, 0, shape.hidden]))
    return graph.add("Reshape", graph.add("Transpose", mixed, perm=[0, 2, 1, 3]), back)


def _logit(graph: _Graph, x: str, checkpoint: Checkpoint) -> str:
    """Pooler and classifier on [CLS]; two logits become their difference: (B, 1, H) → (B,)."""
    hidden = checkpoint.shape.hidden
    outputs = 1 if checkpoint.head is Head.ONE_LOGIT else 2
    weight = graph.tensor("classifier.weight", outputs, hidden)
    bias = graph.tensor("classifier.bias", outputs)
    if outputs == 2:
        weight, bias = weight[1:] - weight[:1], bias[1:] - bias[:1]
    pooled = graph.add("Tanh", graph.linear(x, "pooler.dense", hidden, hidden))
    return graph.add("Reshape", graph.dense(pooled, weight, bias), graph.constant(np.array([-1])))


def _unit_mean(graph: _Graph, x: str) -> str:
    """The mean over tokens, scaled to length 1: (B, S, H) → (B, H)."""
    rows = graph.add("Transpose", x, perm=[0, 2, 1])  # sums over the last axis ignore the batch
    mean = graph.add("ReduceMean", rows, graph.constant(np.array([-1])), keepdims=0)
    return graph.add("LpNormalization", mean, axis=-1, p=2)
