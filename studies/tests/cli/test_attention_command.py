"""Does `birchbark study attention` write its page, and reject other models?"""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from birchbark.cli import group
from birchbark.errors import InputError
from conftest import write_bert


def birchbark(*arguments: str) -> Result:
    return CliRunner().invoke(group, arguments, catch_exceptions=False)


def test_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page is written; an existing file is replaced only with --replace."""
    monkeypatch.chdir(tmp_path)
    write_bert(tmp_path / "model", labels=1)
    command = (
        "study",
        "attention",
        "birch river",
        "A canoe of bark.",
        "--model",
        "model",
        "--output",
    )
    done = birchbark(*command, "a.html")
    assert "probability of relevance 0." in done.stderr
    page = (tmp_path / "a.html").read_text()
    assert "canoe" in page
    with pytest.raises(InputError, match=r"a\.html: already exists.*--replace"):
        birchbark(*command, "a.html")
    birchbark(*command, "a.html", "--replace")
    assert (tmp_path / "a.html").read_text() == page


def test_embedding_model_is_rejected(tmp_path: Path) -> None:
    """Models other than cross-encoders are rejected, and nothing is written."""
    write_bert(tmp_path / "model")
    with pytest.raises(InputError, match="a cross-encoder"):
        birchbark(
            *(
                "study",
                "attention",
                "birch",
                "bark",
                "--model",
                str(tmp_path / "model"),
                "--output",
            ),
            str(tmp_path / "a.html"),
        )
    assert not (tmp_path / "a.html").exists()
