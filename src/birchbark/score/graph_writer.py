"""How are the nodes and weights of an ONNX graph written?

A scorer's fingerprint includes the names of nodes and weights, and it identifies score stores and
attachments. Renaming a node or weight therefore invalidates stored scores.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from birchbark.checkpoint.weights import Tensors, validated_tensor

Floats = NDArray[np.float32]

ACTIVATIONS: dict[str, tuple[str, dict[str, str]]] = {  # name in config.json → operator, attributes
    "gelu": ("Gelu", {}),
    "gelu_new": ("Gelu", {"approximate": "tanh"}),
    "gelu_pytorch_tanh": ("Gelu", {"approximate": "tanh"}),
    "relu": ("Relu", {}),
    "tanh": ("Tanh", {}),
    "sigmoid": ("Sigmoid", {}),
}


@dataclass(frozen=True, slots=True)
class Linear:
    """A linear layer.

    Attributes:
        name: Its name, from which the names of its weights in a graph are formed.
        weight: (out, inner), as torch stores it.
        bias: (out,), or None.
    """

    name: str
    weight: Floats
    bias: Floats | None

    def scaled(self, factor: np.float32) -> Linear:
        """Return the layer with its outputs multiplied by `factor`."""
        bias = None if self.bias is None else self.bias * factor
        return Linear(self.name, self.weight * factor, bias)

    def split(self, count: int) -> list[Linear]:
        """Divide the layer into `count` layers, with equal shares of its outputs."""
        weights = np.split(self.weight, count)
        biases = [None] * count if self.bias is None else np.split(self.bias, count)
        return [
            Linear(f"{self.name} {i}", weight, bias)
            for i, (weight, bias) in enumerate(zip(weights, biases, strict=True), 1)
        ]

    @staticmethod
    def join(layers: Sequence[Linear]) -> Linear:
        """Return one layer with the outputs of all `layers`, which all have a bias or none."""
        biases = [layer.bias for layer in layers if layer.bias is not None]
        return Linear(
            " + ".join(layer.name for layer in layers),
            np.concatenate([layer.weight for layer in layers]),
            np.concatenate(biases) if biases else None,
        )


class Graph:
    """An ONNX graph under construction. Methods that add a node return the name of its result.

    Attributes:
        domains: Operator domains that the graph uses.
        opset: Version of ONNX's operators.
        nodes: Nodes added so far, in order of execution.
        constants: Small arrays, and references to the weights.
        weights: Weight name → array, stored outside the graph.
    """

    domains: tuple[str, ...] = ("",)
    opset: int = 20

    def __init__(self, tensors: Tensors, where: str, optional_biases: bool = False) -> None:
        """Start an empty graph.

        tensors: a checkpoint's weights. where: their path, for errors. optional_biases: whether
        modules without a bias are accepted.
        """
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.weights: dict[str, NDArray[Any]] = {}
        self._tensors = tensors
        self._where = where
        self._optional_biases = optional_biases

    def has(self, name: str) -> bool:
        """Whether the checkpoint has a tensor called `name`."""
        return name in self._tensors

    def tensor(self, name: str, *shape: int) -> Floats:
        """Return the checkpoint's tensor `name` as float32; see validated_tensor for errors."""
        return validated_tensor(self._tensors, name, shape, self._where)

    def constant(self, value: NDArray[Any]) -> str:
        """Add a small array that is stored in the graph, and return its name."""
        from onnx import numpy_helper

        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(value, name))
        return name

    def weight(self, value: NDArray[Any], name: str) -> str:
        """Add an array called `name`, stored outside the graph so that it is never copied.

        Layers that share weights use the same name, and the array is added only once. Returns
        `name`.
        """
        from onnx import StringStringEntryProto, TensorProto, helper

        if name in self.weights:
            return name
        self.weights[name] = np.ascontiguousarray(value)
        dtype = helper.np_dtype_to_tensor_dtype(value.dtype)
        external = TensorProto(name=name, data_type=dtype, dims=value.shape)
        external.data_location = TensorProto.EXTERNAL
        external.external_data.append(StringStringEntryProto(key="location", value="memory"))
        self.constants.append(external)
        return name

    def add(self, op: str, *inputs: str, **attributes: Any) -> str:
        """Add a node with one result, and return the result's name."""
        return self.add_many(op, 1, *inputs, **attributes)[0]

    def add_many(self, op: str, outputs: int, *inputs: str, **attributes: Any) -> list[str]:
        """Add a node with several results, and return their names."""
        from onnx import helper

        names = [f"n{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(op, inputs, names, **attributes))
        return names

    def name_output(self, result: str, name: str) -> None:
        """Make `result` an output of the graph, called `name`."""
        from onnx import helper

        self.nodes.append(helper.make_node("Identity", [result], [name]))

    def linear_layer(self, name: str, out: int, inner: int) -> Linear:
        """Return the checkpoint's linear layer `name`, of shape (out, inner)."""
        weight, bias = self.tensor(f"{name}.weight", out, inner), self._bias(name, out)
        return Linear(name, weight, bias)

    def _bias(self, name: str, size: int) -> Floats | None:
        """Return the bias of the module `name`; None if it has none and needs none."""
        if self._optional_biases and not self.has(f"{name}.bias"):
            return None
        return self.tensor(f"{name}.bias", size)

    def dense(self, x: str, layer: Linear, *, one_row: bool = False) -> str:
        """Compute x · weightᵀ + bias: (…, inner) → (…, out).

        one_row: whether x holds only one token per input; Int8Graph computes these in float32,
        since they cost next to nothing.
        """
        product = self.add("MatMul", x, self.weight(layer.weight.T, f"{layer.name}.weight"))
        return self._add_bias(product, layer.bias, layer.name)

    def _add_bias(self, x: str, bias: Floats | None, name: str) -> str:
        return x if bias is None else self.add("Add", x, self.weight(bias, f"{name}.bias"))

    def linear(self, x: str, name: str, out: int, inner: int, *, one_row: bool = False) -> str:
        """Apply the checkpoint's linear layer `name`: (…, inner) → (…, out); see `dense`."""
        return self.dense(x, self.linear_layer(name, out, inner), one_row=one_row)

    def norm(self, x: str, name: str, hidden: int, epsilon: float) -> str:
        """Apply the checkpoint's layer normalisation `name`: (…, hidden) → (…, hidden)."""
        inputs = [self.weight(self.tensor(f"{name}.weight", hidden), f"{name}.weight")]
        bias = self._bias(name, hidden)
        if bias is not None:
            inputs.append(self.weight(bias, f"{name}.bias"))
        return self.add("LayerNormalization", x, *inputs, axis=-1, epsilon=epsilon)

    def activate(self, x: str, name: str) -> str:
        """Apply an activation, given by its name in config.json."""
        if name == "silu":
            return self.add("Mul", x, self.activate(x, "sigmoid"))
        op, attributes = ACTIVATIONS[name]
        return self.add(op, x, **attributes)

    def reduced(self, x: str, operator: str) -> str:
        """Reduce over the tokens, or passages, of each input: (B, Q, H) → (B, H)."""
        # (B, H, Q): reducing over the last axis gives the same bits in any batch
        rows = self.add("Transpose", x, perm=[0, 2, 1])
        return self.add(operator, rows, self.constant(np.array([-1])), keepdims=0)

    def serialize(self, name: str, inputs: Sequence[Any], outputs: Sequence[Any]) -> bytes:
        """Return the serialised ONNX model, which refers to its weights by name."""
        from onnx import helper

        model = helper.make_model(
            helper.make_graph(self.nodes, name, inputs, outputs, self.constants),
            opset_imports=[helper.make_opsetid(d, 1 if d else self.opset) for d in self.domains],
            ir_version=9,
        )
        data: bytes = model.SerializeToString()
        return data
