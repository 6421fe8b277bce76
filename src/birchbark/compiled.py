"""How are loops compiled, and where is the compiled code cached?

numba caches compiled code beside the source file or, if it cannot write there, in the user's cache
folder. If it can write to neither, the code is compiled again in every process, which takes
seconds, and a warning says so.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import numba
from numba.core.event import Listener, register


class _FirstCompilation(Listener):
    """Calls `callback` when numba first compiles a function."""

    def __init__(self, callback: Callable[[], object]) -> None:
        self._callback: Callable[[], object] | None = callback

    def on_start(self, event: Any) -> None:
        callback, self._callback = self._callback, None
        if callback:
            callback()

    def on_end(self, event: Any) -> None:
        pass


def on_first_compile(callback: Callable[[], object]) -> None:
    """Call `callback` once, before numba compiles the first function that is not in its cache."""
    register("numba:compile", _FirstCompilation(callback))  # type: ignore[no-untyped-call]


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile `function` with numba when it is first called.

    Division by zero gives infinity. Other threads run meanwhile, so the function must not change
    arrays that they use.
    """
    try:
        result: Callable[..., Any] = numba.njit(cache=True, error_model="numpy", nogil=True)(
            function
        )
    except RuntimeError:  # numba found no writable cache folder
        _warn_once()
        result = numba.njit(error_model="numpy", nogil=True)(function)
    return result


@cache
def _warn_once() -> None:
    warnings.warn(
        "compiled code cannot be cached: neither the installation nor the user's cache folder is "
        "writable, so every start takes seconds longer (set NUMBA_CACHE_DIR to a folder)",
        stacklevel=3,
    )
