"""How are linear layers computed in 8-bit integers, so that bits depend on the own token alone?

Each token's vector is scaled by its own largest value and rounded, not the whole batch by one
scale, as ONNX Runtime's DynamicQuantizeLinear does; each output's weights have a scale as well. The
product is exact in int32, so a row does not feel its company. What is left for float32: attention,
norms, activations, and layers that see [CLS] alone, which cost nothing and carry the score.

Channels that are many times as large as others would leave these few of the 8 bits, so each is
divided by a factor that its weights are multiplied with (SmoothQuant, Xiao et al. 2023).
What else was tried, and what it costs: ARCHITECTURE.md, "Scores in 8-bit integers".
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import numpy as np
from numpy.typing import NDArray

from birchbark.checkpoint.weights import TINY, Tensors, quantised
from birchbark.score.graph_writer import Floats, Graph

CONTRIB = "com.microsoft"
# Least values of activations: GELU's minimum is -.16997, its tanh approximation's -.17004. So their
# 8 bits need not be spent on values below, and the shift goes into the bias.
LEAST = {"Gelu": np.float32(-0.171), "Relu": np.float32(0)}
SHARE = 0.7  # of a channel's size that goes from the rows into the weights


class IntegerGraph(Graph):
    """A graph whose linear layers multiply int8 weights with uint8 rows into int32."""

    domains = ("", CONTRIB)

    def __init__(self, tensors: Tensors, where: str, largest: Mapping[str, Floats]) -> None:
        """largest: |x| of each channel that a linear layer reads, by its name (channels.py)."""
        super().__init__(tensors, where)
        self._most = largest_weight()
        self._largest = largest
        self._least: dict[str, np.float32] = {}
        self._normed: set[str] = set()

    def norm(self, x: str, name: str, hidden: int, epsilon: float) -> str:
        """See Graph; only results of norms have channels much larger than others."""
        out = super().norm(x, name, hidden, epsilon)
        self._normed.add(out)
        return out

    def activate(self, x: str, name: str) -> str:
        """See Graph; what is known of the result's least value is kept."""
        out = super().activate(x, name)
        op = self.nodes[-1].op_type
        if op in LEAST:
            self._least[out] = LEAST[op]
        return out

    def dense(
        self, x: str, weight: Floats, bias: Floats, name: str, *, one_row: bool = False
    ) -> str:
        """See Graph: X · weightᵀ + bias, near it."""
        if one_row:
            return super().dense(x, weight, bias, name, one_row=True)
        near = f"{name} in int8"  # layers that share weights may need both
        least = self._least.get(x)
        if x in self._normed:
            factors = _factors(self._largest[name], weight)
            x = self.add("Div", x, self.weight(factors, f"{near}.factors"))
            weight = weight * factors
        whole, columns = quantised(weight, self._most)
        if least is not None:
            bias = bias + least * columns * whole.sum(axis=1, dtype=np.float32)
        rows, scale = self._rows(x, least)
        product = self.add(
            "MatMulIntegerToFloat",
            rows,
            self.weight(whole.T, f"{near}.weight"),
            self.constant(np.array(1, np.float32)),
            self.weight(columns, f"{near}.scale"),
            self.constant(_zero(least)),
            domain=CONTRIB,
        )
        return self.add("Add", self.add("Mul", product, scale), self.weight(bias, f"{near}.bias"))

    def _rows(self, x: str, least: np.float32 | None) -> tuple[str, str]:
        """`x` as uint8 and the scale of each row: 0 stands for `least`, or 128 for 0."""
        if least is None:
            size, steps = self.add("Abs", x), 127
        else:
            x = size = self.add("Sub", x, self.constant(np.array(least)))
            steps = 255
        largest = self.add("ReduceMax", size, self.constant(np.array([-1])), keepdims=1)
        scale = self.add("Mul", largest, self.constant(np.array(1 / steps, np.float32)))
        scale = self.add("Max", scale, self.constant(np.array(TINY)))
        scaled = self.add("Div", x, scale)
        one = self.constant(np.array(1, np.float32))
        return self.add("QuantizeLinear", scaled, one, self.constant(_zero(least))), scale


def _factors(largest: Floats, weight: Floats) -> Floats:
    """What each channel is divided by, float32 (inner,)."""
    x, w = (np.maximum(v, 1e-4 * v.max() + TINY) for v in (largest, np.abs(weight).max(axis=0)))
    factors: Floats = (x**SHARE / w ** (1 - SHARE)).astype(np.float32)
    return factors


def _zero(least: np.float32 | None) -> NDArray[np.uint8]:
    return np.array(128 if least is None else 0, np.uint8)


@cache
def largest_weight() -> int:
    """127, or 64 where this processor's product of uint8 and int8 adds pairs in 16 bits.

    Such processors (x86 before VNNI) would cut sums at 32,767; 2 · 255 · 64 is below.
    """
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper

    probe = helper.make_graph(
        [helper.make_node("MatMulInteger", ["x", "w"], ["y"])],
        "probe",
        [helper.make_tensor_value_info("x", TensorProto.UINT8, [8, 64])],
        [helper.make_tensor_value_info("y", TensorProto.INT32, [8, 64])],
        [numpy_helper.from_array(np.full((64, 64), 127, np.int8), "w")],
    )
    model = helper.make_model(probe, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    (found,) = session.run(None, {"x": np.full((8, 64), 255, np.uint8)})
    return 127 if (found == 64 * 255 * 127).all() else 64
