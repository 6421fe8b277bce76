"""Does compiled code work without a cache, and is compilation announced?"""

from __future__ import annotations

import numba
import pytest

from birchbark.compiled import compiled, on_first_compile


def test_compiled_code_needs_no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    """A read-only installation without a home folder works, with a warning."""
    real = numba.njit

    def njit(*functions: object, cache: bool = False, **options: object) -> object:
        if cache:

            def refuse(function: object) -> object:
                raise RuntimeError("cannot cache function: no locator available")

            return refuse
        return real(*functions, **options)

    monkeypatch.setattr(numba, "njit", njit)
    with pytest.warns(UserWarning, match="compiled code cannot be cached"):
        doubled = compiled(lambda x: 2 * x)
    assert doubled(21) == 42


def test_compilation_is_announced_once() -> None:
    """It is not called again for other functions, nor for cached code."""
    calls = []
    on_first_compile(lambda: calls.append("compiling"))
    doubled = numba.njit(lambda x: 2 * x)
    assert doubled(1) == 2
    assert doubled(1.5) == 3
    assert calls == ["compiling"]
