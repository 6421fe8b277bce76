"""How are nodes of an ONNX graph written, with their weights kept beside it?"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from birchbark.checkpoint.weights import Tensors, sound

Floats = NDArray[np.float32]

ACTIVATIONS: dict[str, tuple[str, dict[str, str]]] = {
    "gelu": ("Gelu", {}),
    "gelu_new": ("Gelu", {"approximate": "tanh"}),
    "gelu_pytorch_tanh": ("Gelu", {"approximate": "tanh"}),
    "relu": ("Relu", {}),
    "tanh": ("Tanh", {}),
}


class Graph:
    """Nodes and constants written so far; each method adds some and names its result.

    domains: the sets of operators that it draws on.
    """

    domains: tuple[str, ...] = ("",)

    def __init__(self, tensors: Tensors, where: str) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.weights: dict[str, NDArray[Any]] = {}
        self._tensors = tensors
        self._where = where

    def has(self, name: str) -> bool:
        """Whether the checkpoint has a tensor called `name`."""
        return name in self._tensors

    def tensor(self, name: str, *shape: int) -> Floats:
        """The weights called `name`, float32; CheckpointError unless they have this shape."""
        return sound(self._tensors, name, shape, self._where)

    def constant(self, value: NDArray[Any]) -> str:
        """A small array inside of the graph."""
        from onnx import numpy_helper

        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(value, name))
        return name

    def weight(self, value: NDArray[Any], name: str) -> str:
        """Weights stay outside of the graph, so that they are never copied into it.

        name: says what they are; layers that share weights name the same ones, kept once.
        """
        from onnx import StringStringEntryProto, TensorProto, helper

        if name in self.weights:
            return name
        self.weights[name] = np.ascontiguousarray(value)
        kind = helper.np_dtype_to_tensor_dtype(value.dtype)
        outside = TensorProto(name=name, data_type=kind, dims=value.shape)
        outside.data_location = TensorProto.EXTERNAL
        outside.external_data.append(StringStringEntryProto(key="location", value="memory"))
        self.constants.append(outside)
        return name

    def add(self, op: str, *inputs: str, **attributes: Any) -> str:
        """A node of one result, by its name."""
        return self.add_many(op, 1, *inputs, **attributes)[0]

    def add_many(self, op: str, outputs: int, *inputs: str, **attributes: Any) -> list[str]:
        """A node of several results, by their names."""
        from onnx import helper

        names = [f"n{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(op, inputs, names, **attributes))
        return names

    def dense(
        self, x: str, weight: Floats, bias: Floats, name: str, *, one_row: bool = False
    ) -> str:
        """X · weightᵀ + bias, as torch stores a linear layer; name: see `weight`.

        one_row: of each input only one token is seen, so that saving time here saves none.
        """
        product = self.add("MatMul", x, self.weight(weight.T, f"{name}.weight"))
        return self.add("Add", product, self.weight(bias, f"{name}.bias"))

    def linear(self, x: str, name: str, out: int, inner: int, *, one_row: bool = False) -> str:
        """The checkpoint's linear layer `name`: (…, inner) → (…, out); one_row: see `dense`."""
        weight, bias = self.tensor(f"{name}.weight", out, inner), self.tensor(f"{name}.bias", out)
        return self.dense(x, weight, bias, name, one_row=one_row)

    def norm(self, x: str, name: str, hidden: int, epsilon: float) -> str:
        """The checkpoint's layer normalisation `name`, over the last axis."""
        scale, bias = (
            self.weight(self.tensor(f"{name}.{part}", hidden), f"{name}.{part}")
            for part in ("weight", "bias")
        )
        return self.add("LayerNormalization", x, scale, bias, axis=-1, epsilon=epsilon)

    def activate(self, x: str, name: str) -> str:
        """Apply an activation by transformers' name for it."""
        op, attributes = ACTIVATIONS[name]
        return self.add(op, x, **attributes)
