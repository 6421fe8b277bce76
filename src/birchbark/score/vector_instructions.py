"""Which vector instructions does this processor have? Scores may differ in their last bits."""

from __future__ import annotations

import platform
from functools import cache
from pathlib import Path

CPU_INFO = Path("/proc/cpuinfo")
VNNI = frozenset({"avx512_vnni", "avx_vnni"})  # multiply 8-bit integers without overflow
# Instructions by which libraries choose how to compute matrix products.
VECTOR_FLAGS = VNNI | {"avx2", "fma", "avx512f", "avx512_bf16", "amx_int8", "amx_bf16", "asimddp"}


@cache
def vector_flags() -> frozenset[str]:
    """Return the VECTOR_FLAGS that this processor has; empty where Linux does not tell."""
    try:
        lines = CPU_INFO.read_text().splitlines()
    except OSError:
        return frozenset()
    flags = next((line for line in lines if line.lower().startswith(("flags", "features"))), "")
    return VECTOR_FLAGS.intersection(flags.split())


def has_vnni() -> bool:
    """Whether this machine's processor has VNNI; false where Linux does not tell."""
    return not VNNI.isdisjoint(vector_flags())


def processor() -> str:
    """Return the architecture and vector flags of this processor, such as "x86_64 avx2 fma"."""
    return " ".join([platform.machine(), *sorted(vector_flags())])
