"""What does each node of the lean graph compute, in torch?

Only the operators that score/graph.py writes for float32, in the forms in which it writes them;
another one is refused when the graph is read. ONNX's operator set 20.
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
    """A node: its function from the values of `inputs` to those of `outputs`.

    last_reads: results of other nodes that no later node reads.
    """

    compute: Callable[..., Values]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    last_reads: tuple[str, ...]


def read_steps(graph: bytes) -> tuple[list[Step], list[str], Mapping[str, list[int]]]:
    """The steps of an ONNX model in their order, the names of its inputs, and its constants.

    Constants are small: they stay in Python, since shapes are needed there. Raises CheckpointError
    for an operator that has no function here.
    """
    import onnx
    from onnx import numpy_helper

    model = onnx.load_from_string(graph).graph
    constants = {
        one.name: numpy_helper.to_array(one).tolist()
        for one in model.initializer
        if one.data_location != onnx.TensorProto.EXTERNAL
    }
    last = {name: i for i, node in enumerate(model.node) for name in node.input}
    made = {name for node in model.node for name in node.output}
    steps = [
        Step(
            _function(node),
            tuple(node.input),
            tuple(node.output),
            tuple({name for name in node.input if last[name] == i and name in made}),
        )
        for i, node in enumerate(model.node)
    ]
    return steps, [put.name for put in model.input], constants


def _function(node: Any) -> Callable[..., Values]:
    """The operator of `node` with its attributes."""
    from onnx import helper

    if node.domain or node.op_type not in OPERATORS:
        raise CheckpointError(
            f"no operator {node.op_type} on this device",
            wanted="a graph of float32 weights",
            remedy="--device cpu runs it",
        )
    attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    named = {k: v.decode() if isinstance(v, bytes) else v for k, v in attributes.items()}
    return partial(OPERATORS[node.op_type], **named)


def _gather(table: Any, ids: Any) -> Values:
    from torch.nn.functional import embedding

    return (embedding(ids, table),)


def _shape(x: Any, start: int, end: int) -> Values:
    return (list(x.shape[start:end]),)


def _slice(
    x: Any, starts: Sequence[int], ends: Sequence[int], axes: Sequence[int], *steps: Sequence[int]
) -> Values:
    for axis, start, end in zip(axes, starts, ends, strict=True):
        x = x.narrow(axis, start, min(end, x.shape[axis]) - start)
    return (x,)


def _reshape(x: Any, sizes: Sequence[int]) -> Values:
    return (x.reshape([x.shape[i] if size == 0 else size for i, size in enumerate(sizes)]),)


def _split(x: Any, axis: int, num_outputs: int) -> Values:
    return tuple(x.chunk(num_outputs, axis))


def _norm(x: Any, scale: Any, bias: Any, axis: int, epsilon: float) -> Values:
    from torch.nn.functional import layer_norm

    return (layer_norm(x, x.shape[axis:], scale, bias, epsilon),)


def _gelu(x: Any, approximate: str = "none") -> Values:
    from torch.nn.functional import gelu

    return (gelu(x, approximate=approximate),)


def _unit(x: Any, axis: int, p: int) -> Values:
    return (x / x.norm(p=p, dim=axis, keepdim=True),)


def _kept(axes: Iterable[int], keepdims: int) -> dict[str, Any]:
    return {"dim": tuple(axes), "keepdim": bool(keepdims)}


OPERATORS: Mapping[str, Callable[..., Values]] = {
    "Add": lambda a, b: (a + b,),
    "Gather": _gather,
    "Gelu": _gelu,
    "Identity": lambda x: (x,),
    "LayerNormalization": _norm,
    "LpNormalization": _unit,
    "MatMul": lambda a, b: (a @ b,),
    "ReduceMax": lambda x, axes, keepdims: (x.amax(**_kept(axes, keepdims)),),
    "ReduceMean": lambda x, axes, keepdims: (x.mean(**_kept(axes, keepdims)),),
    "Relu": lambda x: (x.relu(),),
    "Reshape": _reshape,
    "Shape": _shape,
    "Slice": _slice,
    "Softmax": lambda x, axis: (x.softmax(axis),),
    "Split": _split,
    "Tanh": lambda x: (x.tanh(),),
    "Transpose": lambda x, perm: (x.permute(perm),),
}
