"""Which arithmetic may linear layers be computed in?"""

from __future__ import annotations

from enum import Enum


class Precision(Enum):
    """FP32 is exact; INT8 is faster and near it (integers.py). Neither depends on the batch."""

    FP32 = "fp32"
    INT8 = "int8"

    @property
    def suffix(self) -> str:
        """What a scorer's name ends with."""
        return "" if self is Precision.FP32 else f", {self.value}"
