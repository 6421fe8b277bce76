"""Which vector instructions does a processor tell that it has?"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from birchbark.score import vector_instructions
from birchbark.score.vector_instructions import has_vnni, processor, vector_flags


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    """Nothing is remembered of this machine's own processor, before and after."""
    vector_flags.cache_clear()
    yield
    vector_flags.cache_clear()


@pytest.mark.parametrize(
    ("told", "flags", "vnni"),
    [
        ("processor: 0\nflags\t\t: fpu avx2 fma avx512_vnni\n", "avx2 avx512_vnni fma", True),
        ("Features\t: fp asimd asimddp\n", "asimddp", False),
        ("flags : fpu sse\nflags : avx2\n", "", False),
        ("", "", False),
        (None, "", False),
    ],
)
def test_flags_are_those_that_linux_tells(
    told: str | None, flags: str, vnni: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first processor counts; other systems tell nothing."""
    if told is not None:
        (tmp_path / "cpuinfo").write_text(told)
    monkeypatch.setattr(vector_instructions, "CPU_INFO", tmp_path / "cpuinfo")
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    assert vector_flags() == set(flags.split())
    assert has_vnni() is vnni
    assert processor() == f"x86_64 {flags}".strip()
