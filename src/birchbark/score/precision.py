"""Which arithmetic can linear layers be computed in, and which is the fastest here?"""

from __future__ import annotations

from enum import Enum
from functools import cache
from pathlib import Path

CPU_INFO = Path("/proc/cpuinfo")
VNNI = {"avx512_vnni", "avx_vnni"}  # instructions that multiply 8-bit integers without overflow


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


def fastest_precision() -> Precision:
    """Return INT8 if the processor has VNNI, else FP32, for models that were compared in both.

    Without VNNI, int8 weights have only 7 bits (docs/explanation/int8.md).
    """
    return Precision.INT8 if has_vnni() else Precision.FP32


@cache
def has_vnni() -> bool:
    """Whether this machine's processor has VNNI; false where Linux does not tell."""
    try:
        lines = CPU_INFO.read_text().splitlines()
    except OSError:
        return False
    flags = next((line for line in lines if line.startswith("flags")), "")
    return not VNNI.isdisjoint(flags.split())
