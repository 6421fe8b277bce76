"""Which arithmetic can linear layers be computed in, and which is the fastest here?"""

from __future__ import annotations

from enum import Enum

from birchbark.score.vector_instructions import has_vnni


class Precision(Enum):
    """Arithmetic of linear layers: FP32, or a faster one that is approximate.

    INT8 runs on the CPU (int8_graph.py), BF16 and FP16 on a GPU (device/torch_session.py). On the
    CPU, a score does not depend on its batch.
    """

    FP32 = "fp32"
    INT8 = "int8"
    BF16 = "bf16"
    FP16 = "fp16"

    @property
    def suffix(self) -> str:
        """Suffix of a scorer's name; empty for FP32."""
        return "" if self is Precision.FP32 else f", {self.value}"

    @property
    def runs_on_cpu(self) -> bool:
        """Whether ONNX Runtime computes it on the CPU, as it does FP32."""
        return self in (Precision.FP32, Precision.INT8)

    @property
    def runs_on_gpu(self) -> bool:
        """Whether torch computes it on a GPU."""
        return self is not Precision.INT8


def fastest_precision() -> Precision:
    """Return INT8 if the processor has VNNI, else FP32, for models that were compared in both.

    Without VNNI, int8 weights have only 7 bits (docs/explanation/int8.md).
    """
    return Precision.INT8 if has_vnni() else Precision.FP32
