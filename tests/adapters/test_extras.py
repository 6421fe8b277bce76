"""Does an adapter say which extra it needs?"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from birchbark.adapters.beir import BirchbarkSearch
from birchbark.cli.serve import _agents
from birchbark.errors import InputError, MissingPackageError, extra
from birchbark.index.build_index import build_index
from birchbark.pipeline.searcher import Searcher
from birchbark.retrieve.first_stage import FirstStage
from birchbark.serve.service import Service
from command_line import birchbark
from conftest import DOCUMENTS


def test_a_library_that_is_not_installed() -> None:
    """The message names it and the extra."""
    message = r"no_such_library .*birchbark\[langchain\]"
    with pytest.raises(MissingPackageError, match=message), extra("langchain"):
        import no_such_library  # noqa: F401


def test_a_first_stage_is_no_model() -> None:
    """It has a parameter of its own."""
    with pytest.raises(InputError, match="first_stage=FirstStage"):
        BirchbarkSearch(FirstStage())  # type: ignore[arg-type]


def test_a_service_without_mcp_or_with_an_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It serves all but agents; the command for agents alone says what to install."""
    directory = build_index(DOCUMENTS, tmp_path / "index").directory
    monkeypatch.delitem(sys.modules, "birchbark.adapters.mcp", raising=False)
    for missing in ("mcp.server.mcpserver", "mcp"):  # the first is new in version 2
        monkeypatch.setitem(sys.modules, missing, None)
        assert _agents(Service(Searcher(directory, ())), 1.0) is None
        _, told = birchbark("mcp", str(directory), status=1)
        assert "pip install 'birchbark[mcp]'" in told
