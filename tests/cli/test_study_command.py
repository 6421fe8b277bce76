"""What does `birchbark study` say where its package is not installed?"""

from __future__ import annotations

from runpy import run_module

import pytest
from click.testing import CliRunner

from birchbark.errors import MissingPackageError


def test_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever its arguments, and also where help is asked for."""
    monkeypatch.setattr("importlib.metadata.entry_points", lambda **_: [])
    command = run_module("birchbark.cli.study")["command"]
    for arguments in (["list"], ["run", "birch-time", "--output", "out"], ["--help"], []):
        refused = CliRunner().invoke(command, arguments).exception
        assert isinstance(refused, MissingPackageError)
        assert "pip install birchbark-studies" in str(refused)
