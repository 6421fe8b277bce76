"""What does `birchbark study` say where its package is not installed?"""

from __future__ import annotations

from pathlib import Path
from runpy import run_path

import pytest
from click.testing import CliRunner

from birchbark import cli
from birchbark.errors import MissingPackageError


def test_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """It does so whatever its arguments are, and also where help is asked for."""
    monkeypatch.setattr("importlib.metadata.entry_points", lambda **_: [])
    command = run_path(str(Path(cli.__file__).parent / "study.py"))["command"]
    for arguments in (["list"], ["run", "birch-time", "--output", "out"], ["--help"], []):
        refused = CliRunner().invoke(command, arguments).exception
        assert isinstance(refused, MissingPackageError)
        assert "pip install birchbark-studies" in str(refused)
