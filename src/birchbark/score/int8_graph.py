"""How are linear layers computed in 8-bit integers, independently of the rest of the batch?

Each token's vector is divided by its own scale and rounded to 8 bits. The scale is the vector's
largest absolute value divided by 127; after GELU or ReLU, it is its range above a lower bound
divided by 255. (ONNX Runtime's DynamicQuantizeLinear has one scale for the whole batch.) The
weights of each output have a scale as well. The product is exact in int32, so a row's result does
not depend on the other rows. Attention weights and sums, normalisation and activations are computed
in float32. So are linear layers that read only [CLS], which cost next to nothing and determine the
score.

The values of a few channels are many times as large as all others, and would leave the others few
of the 8 bits. In layers that read normalised vectors, each channel is therefore divided by a
factor, and its weights are multiplied by the same factor (SmoothQuant, Xiao et al. 2023).
docs/explanation/int8.md compares the alternatives.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import numpy as np

from birchbark.checkpoint.weights import MIN_SCALE, Tensors, quantize_rows
from birchbark.score.graph_writer import Floats, Graph, Linear

CONTRIB = "com.microsoft"
# Lower bounds of activations: the minimum of GELU is -.16997, that of its tanh approximation
# -.17004. The bound is subtracted before quantisation, so that all 8 bits serve values
# above it, and is added back in the bias.
ZERO = {True: 128, False: 0}  # whether values are signed → the integer that represents 0.0
LOWER_BOUNDS = {"Gelu": np.float32(-0.171), "Relu": np.float32(0)}
SMOOTHING = 0.7  # α of SmoothQuant: share of a channel's range that moves to the weights


class Int8Graph(Graph):
    """A graph whose linear layers multiply uint8 rows by int8 weights, summing in int32."""

    domains = ("", CONTRIB)
    opset = 21  # the first with a scale per row

    def __init__(
        self,
        tensors: Tensors,
        where: str,
        channel_maxima: Mapping[str, Floats],
        optional_biases: bool = False,
    ) -> None:
        """Start an empty graph.

        tensors, where, optional_biases: see Graph. channel_maxima: linear layer → largest |x| in
        each of its input channels, float32 (inner,); see channel_ranges.py.
        """
        super().__init__(tensors, where, optional_biases)
        self._max_weight = max_int8_weight()
        self._channel_maxima = channel_maxima
        self._lower_bounds: dict[str, np.float32] = {}
        self._normalised: set[str] = set()
        self._added_zero_points: dict[bool, str] = {}

    def norm(self, x: str, name: str, hidden: int, epsilon: float) -> str:
        """See Graph. The result is recorded: only normalised vectors need smoothing factors."""
        out = super().norm(x, name, hidden, epsilon)
        self._normalised.add(out)
        return out

    def activate(self, x: str, name: str) -> str:
        """See Graph. The lower bound of the result is recorded, if it has one."""
        out = super().activate(x, name)
        op = self.nodes[-1].op_type
        if op in LOWER_BOUNDS:
            self._lower_bounds[out] = LOWER_BOUNDS[op]
        return out

    def dense(self, x: str, layer: Linear, *, one_row: bool = False) -> str:
        """Compute x · weightᵀ + bias in int8, or in float32 if `one_row`; see Graph."""
        if one_row:
            return super().dense(x, layer, one_row=True)
        weight, bias, int8_name = layer.weight, layer.bias, f"{layer.name} in int8"
        # layers that share weights may need both names
        lower = self._lower_bounds.get(x)
        if x in self._normalised:
            factors = _smoothing_factors(self._channel_maxima[layer.name], weight)  # (inner,)
            x = self.add("Mul", x, self.weight(1 / factors, f"{int8_name}.factors"))
            weight = weight * factors  # (out, inner)
        weight8, columns = quantize_rows(weight, self._max_weight)  # (out, inner), (out,)
        if lower is not None:  # x was shifted by -lower: add lower · Σ weights to each output
            shift = lower * columns * weight8.sum(axis=1, dtype=np.float32)  # (out,)
            bias = shift if bias is None else bias + shift
        rows, scale = self._quantized_rows(x, weight.shape[1], lower)  # (B, S, inner), (B, S, 1)
        product = self.add(  # (B, S, out): int32 sums times each output's scale
            "MatMulIntegerToFloat",
            rows,
            self.weight(weight8.T, f"{int8_name}.weight"),
            self.constant(np.array(1, np.float32)),
            self.weight(columns, f"{int8_name}.scale"),
            self.constant(np.array(ZERO[lower is None], np.uint8)),
            domain=CONTRIB,
        )
        scaled = self.add("Mul", product, scale)  # times each row's scale
        return self._add_bias(scaled, bias, int8_name)

    def _quantized_rows(self, x: str, inner: int, lower: np.float32 | None) -> tuple[str, str]:
        """Return x as uint8 (B, S, inner), and the scale of each row (B, S, 1).

        The value 0 represents the lower bound if there is one; otherwise 128 represents 0.0.
        """
        if lower is None:
            size, steps = self.add("Abs", x), 127  # (B, S, inner)
        else:
            x = size = self.add("Sub", x, self.constant(np.array(lower)))
            steps = 255
        largest = self.add("ReduceMax", size, self.constant(np.array([-1])), keepdims=1)
        scale = self.add("Mul", largest, self.constant(np.array(1 / steps, np.float32)))
        scale = self.add("Max", scale, self.constant(np.array(MIN_SCALE)))  # (B, S, 1)
        zero_points = self._zero_points(signed=lower is None)
        rows = self.add("QuantizeLinear", x, scale, zero_points, axis=-1, block_size=inner)
        return rows, scale

    def _zero_points(self, *, signed: bool) -> str:
        """Return the zero point of each row, uint8 (B, S, 1)."""
        from onnx import numpy_helper

        if signed not in self._added_zero_points:
            rows = self.add("Shape", "ids")  # (2,): B, S
            shape = self.add("Concat", rows, self.constant(np.array([1])), axis=0)  # (3,)
            value = numpy_helper.from_array(np.array([ZERO[signed]], np.uint8))
            self._added_zero_points[signed] = self.add("ConstantOfShape", shape, value=value)
        return self._added_zero_points[signed]


def _smoothing_factors(channel_maxima: Floats, weight: Floats) -> Floats:
    """Return the factor of each input channel, float32 (inner,).

    channel_maxima: largest |x| in each channel (inner,). weight: (out, inner).
    """
    x, w = (  # largest |x| and |weight| in each channel (inner,), bounded away from 0
        np.maximum(v, 1e-4 * v.max() + MIN_SCALE)
        for v in (channel_maxima, np.abs(weight).max(axis=0))
    )
    factors: Floats = (x**SMOOTHING / w ** (1 - SMOOTHING)).astype(np.float32)
    return factors


@cache
def max_int8_weight() -> int:
    """Return the largest int8 weight whose products are exact on this processor: 127 or 64.

    Processors without VNNI (older x86) add pairs of uint8 · int8 products in 16 bits and saturate
    at 32,767. 2 · 255 · 64 = 32,640 stays below that.
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
    (product,) = session.run(None, {"x": np.full((8, 64), 255, np.uint8)})
    return 127 if (product == 64 * 255 * 127).all() else 64
