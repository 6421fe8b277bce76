"""How many processors may this process use?"""

from __future__ import annotations

import os


def usable_processors() -> int:
    """Return the number of processors that this process may use, at least 1.

    Where the system does not limit a process to some of them (macOS), it is that of the machine.
    """
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
