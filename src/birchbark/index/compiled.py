"""How are loops over postings compiled, and where is compiled code kept?

numba keeps it beside the source or, where that cannot be written, in the user's cache folder. Where
neither can, code is compiled anew in every process: slower to start by seconds, and said so.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numba
from numba.core.event import Listener, register


class _Once(Listener):
    """Calls a function when numba first compiles something."""

    def __init__(self, tell: Callable[[], object]) -> None:
        self._tell: Callable[[], object] | None = tell

    def on_start(self, event: Any) -> None:
        tell, self._tell = self._tell, None
        if tell:
            tell()

    def on_end(self, event: Any) -> None:
        pass


def when_compiling(tell: Callable[[], object]) -> None:
    """Call `tell` when code must be compiled, before the first: it is not in the cache yet."""
    register("numba:compile", _Once(tell))  # type: ignore[no-untyped-call]


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function`, compiled by numba when first called. Division by zero gives infinity."""
    try:
        found: Callable[..., Any] = numba.njit(cache=True, error_model="numpy")(function)
    except RuntimeError:  # numba found no place for its cache
        warnings.warn(
            "compiled code cannot be kept: neither the installation nor a cache folder can be "
            "written, so every start takes seconds longer (NUMBA_CACHE_DIR names a folder)",
            stacklevel=2,
        )
        found = numba.njit(error_model="numpy")(function)
    return found
