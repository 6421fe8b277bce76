"""How is a process limited that reads what strangers have written? Only where the system can."""

from __future__ import annotations

from time import process_time

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]


def limit_memory(size: int) -> None:
    """Let this process, and those that it starts, use `size` bytes of memory at most.

    When it ends by a fault, its memory is not written to a file.
    """
    if resource:
        _set(resource.RLIMIT_AS, size)
        _set(resource.RLIMIT_CORE, 0)


def limit_time(seconds: int) -> None:
    """End this process by SIGXCPU when it has used so many more seconds of processor time."""
    if resource:
        _set(resource.RLIMIT_CPU, int(process_time()) + seconds)


def _set(kind: int, limit: int) -> None:
    """Set a limit that can be changed again, unless a lower one is set for good."""
    _, most = resource.getrlimit(kind)
    limit = limit if most == resource.RLIM_INFINITY else min(limit, most)
    resource.setrlimit(kind, (limit, most))
