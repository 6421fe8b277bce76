"""How does torch compute each node of a model's graph?

The operators are those of ONNX operator set 20 that score/graph.py writes for float32, with the
attributes that it uses. Any other operator is rejected when the graph is read.

The operators in MASKED also take a mask, bool (B, S), which is False where an input has ended and
is padded to the longest of its batch. Their result is then that of the input's own tokens.

Shapes in comments are those of score/graph.py: B inputs, S tokens per input, Q = S or 1 for [CLS]
alone, H hidden dimensions, N attention heads of width D, E the width of the embeddings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from birchbark.errors import CheckpointError

Values = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Step:
    """A node of the graph.

    operator: the name of its operator.
    compute: the function of the node's input values that returns its output values.
    inputs, outputs: the names of these values.
    last_reads: the names of input values that another node computed and no later node reads.
    """

    operator: str
    compute: Callable[..., Values]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    last_reads: tuple[str, ...]


def read_steps(graph: bytes) -> tuple[list[Step], list[str], Mapping[str, list[int]]]:
    """Return the steps of an ONNX model in order, the names of its inputs, and its constants.

    Constants are returned as Python lists, since torch expects lists of sizes and axes. Weights,
    which are stored outside the graph, are not included. Raises CheckpointError for an unsupported
    operator.
    """
    import onnx
    from onnx import numpy_helper

    model = onnx.load_from_string(graph).graph
    constants = {
        tensor.name: numpy_helper.to_array(tensor).tolist()
        for tensor in model.initializer
        if tensor.data_location != onnx.TensorProto.EXTERNAL
    }
    last_read = {name: i for i, node in enumerate(model.node) for name in node.input}
    results = {name for node in model.node for name in node.output}
    steps = [
        Step(
            node.op_type,
            _function(node),
            tuple(node.input),
            tuple(node.output),
            tuple({name for name in node.input if last_read[name] == i and name in results}),
        )
        for i, node in enumerate(model.node)
    ]
    return steps, [graph_input.name for graph_input in model.input], constants


def _function(node: Any) -> Callable[..., Values]:
    """Return the function of `node`, with its attributes bound."""
    from onnx import helper

    if node.domain or node.op_type not in OPERATORS:
        raise CheckpointError(
            f"operator {node.op_type} is not supported on this device",
            wanted="a graph of float32 weights",
            remedy="use --device cpu, which supports it",
        )
    attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    arguments = {k: v.decode() if isinstance(v, bytes) else v for k, v in attributes.items()}
    return partial(OPERATORS[node.op_type], **arguments)


def _gather(table: Any, ids: Any, axis: int = 0) -> Values:
    from torch.nn.functional import embedding

    if axis:
        return (table.index_select(axis, ids),)  # (N, D, rows), (2 · S,) → (N, D, 2 · S)
    return (embedding(ids, table),)  # (rows, E), (B, S) → (B, S, E)


def _add(a: Any, b: Any) -> Values:
    if isinstance(a, list):  # sizes
        return ([x + y for x, y in zip(a, b, strict=True)],)
    return (a + b,)  # (B, Q, H) + (B, Q, H) or (H,)


def _subtract(a: Any, b: Any) -> Values:
    if isinstance(a, list):  # sizes
        return ([x - y for x, y in zip(a, b, strict=True)],)
    return (a - b,)  # (B, S, N, D / 2); positions: (S, 1) - (1, S)


def _concatenate(*parts: Any, axis: int) -> Values:
    import torch

    if isinstance(parts[0], list):  # sizes
        return ([size for part in parts for size in part],)
    return (torch.cat(parts, axis),)  # 2 of (B, S, N, D / 2) → (B, S, N, D)


def _where(condition: Any, a: float, b: float) -> Values:
    import torch

    return (torch.where(condition, a, b),)  # (S, S)


def _unsqueeze(x: Any, axes: Sequence[int]) -> Values:
    return (x.unsqueeze(axes[0]),)  # (S,) → (S, 1); (B, H) → (B, 1, H)


def _shape(x: Any, start: int, end: int) -> Values:
    return (list(x.shape[start:end]),)  # (B, S) → [S]


def _slice(
    x: Any, starts: Sequence[int], ends: Sequence[int], axes: Sequence[int], *steps: Sequence[int]
) -> Values:
    for axis, start, end in zip(axes, starts, ends, strict=True):  # (B, S, H) → (B, 1, H)
        size = x.shape[axis]
        x = x.narrow(axis, start, min(end + size if end < 0 else end, size) - start)
    return (x,)


def _reshape(x: Any, sizes: Sequence[int]) -> Values:
    # (B, S, H) → (B, S, N, D) and back; size 0 keeps the size of x
    return (x.reshape([x.shape[i] if size == 0 else size for i, size in enumerate(sizes)]),)


def _split(x: Any, axis: int, num_outputs: int) -> Values:
    return tuple(x.chunk(num_outputs, axis))  # (B, S, 3 · H) → 3 of (B, S, H)


def _norm(x: Any, scale: Any, bias: Any = None, *, axis: int, epsilon: float) -> Values:
    from torch.nn.functional import layer_norm

    return (layer_norm(x, x.shape[axis:], scale, bias, epsilon),)  # (B, Q, H) → (B, Q, H)


def _gelu(x: Any, approximate: str = "none") -> Values:
    from torch.nn.functional import gelu

    return (gelu(x, approximate=approximate),)


def _normalise_length(x: Any, axis: int, p: int) -> Values:
    return (x / x.norm(p=p, dim=axis, keepdim=True),)  # (B, H) → (B, H), of length 1


def _softmax(x: Any, axis: int, mask: Any = None) -> Values:
    import torch

    if mask is not None:  # the lowest number, not -∞, of which a row of padding would become NaN
        x = x.masked_fill(~mask[:, None, None], torch.finfo(x.dtype).min)
    return (x.softmax(axis),)  # (B, N, Q, S), over S


def _mean(x: Any, axes: Iterable[int], keepdims: int, mask: Any = None) -> Values:
    if mask is None or x.shape[2] == 1:
        return (x.mean(**_reduced(axes, keepdims)),)
    own = x.masked_fill(~mask[:, None], 0)  # (B, H, S)
    return (own.sum(2) / mask.sum(1, keepdim=True),)  # (B, H)


def _maximum(x: Any, axes: Iterable[int], keepdims: int, mask: Any = None) -> Values:
    import torch

    if mask is not None and x.shape[2] > 1:
        x = x.masked_fill(~mask[:, None], -torch.inf)  # (B, H, S)
    return (x.amax(**_reduced(axes, keepdims)),)  # (B, H)


def _reduced(axes: Iterable[int], keepdims: int) -> dict[str, Any]:
    return {"dim": tuple(axes), "keepdim": bool(keepdims)}


OPERATORS: Mapping[str, Callable[..., Values]] = {
    "Abs": lambda x: (x.abs(),),  # (S, S)
    "Add": _add,
    "Concat": _concatenate,
    "Gather": _gather,
    "Gelu": _gelu,
    "Greater": lambda a, b: (a > b,),  # (S, S)
    "Identity": lambda x: (x,),
    "LayerNormalization": _norm,
    "LpNormalization": _normalise_length,
    "MatMul": lambda a, b: (a @ b,),  # weights: (B, Q, in), (in, out); attention: (B, N, Q, S)
    "Mul": lambda a, b: (a * b,),  # (B, Q, I)
    "ReduceMax": _maximum,  # pooling: (B, H, Q) → (B, H)
    "ReduceMean": _mean,
    "ReduceSum": lambda x, axes, keepdims: (x.sum(**_reduced(axes, keepdims)),),
    "Relu": lambda x: (x.relu(),),
    "Reshape": _reshape,
    "Shape": _shape,
    "Sigmoid": lambda x: (x.sigmoid(),),
    "Slice": _slice,
    "Softmax": _softmax,
    "Split": _split,
    "Sub": _subtract,
    "Tanh": lambda x: (x.tanh(),),
    "Transpose": lambda x, perm: (x.permute(perm),),
    "Unsqueeze": _unsqueeze,
    "Where": _where,
}

MASKED = {"ReduceMax", "ReduceMean", "Softmax"}
