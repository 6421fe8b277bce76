"""Which arithmetic can linear layers be computed in?"""

from __future__ import annotations

from enum import Enum


class Precision(Enum):
    """Arithmetic of linear layers: FP32, or INT8, which is faster and approximate (int8_graph.py).

    In both, a score does not depend on its batch.
    """

    FP32 = "fp32"
    INT8 = "int8"

    @property
    def suffix(self) -> str:
        """Suffix of a scorer's name; empty for FP32."""
        return "" if self is Precision.FP32 else f", {self.value}"
