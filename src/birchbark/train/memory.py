"""How does a training process keep the memory of one step for the next one?

By default, glibc returns large blocks to the operating system when they are freed, which clears each
page again when it is next used. Every step of training allocates the same gigabytes.
"""

from __future__ import annotations

import ctypes

M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4  # malloc.h
NEVER = 2**31 - 1  # bytes at the end of the heap that are free before any are returned


def keep_freed_memory() -> None:
    """Let this process keep memory that it frees; without glibc, nothing changes."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt:
        mallopt(M_MMAP_MAX, 0)
        mallopt(M_TRIM_THRESHOLD, NEVER)
