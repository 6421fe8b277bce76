"""Are plain files and source code told from binary and generated files?"""

from __future__ import annotations

from pathlib import Path

import pytest

from birchbark.collection.files.folder import read_folder
from birchbark.collection.parsing.intake import Intake


def read(folder: Path, name: str, contents: str | bytes) -> str:
    """Return the text of the one file that is written to `folder`."""
    raw = contents if isinstance(contents, bytes) else contents.encode()
    (folder / name).write_bytes(raw)
    ((_, document),) = read_folder(folder, Intake(skip_bad=False))
    return document.text


def test_minified_code_is_skipped(tmp_path: Path) -> None:
    """Code that people read has lines."""
    (tmp_path / "a.js").write_text("f(x);\n" * 3000)
    (tmp_path / "b.js").write_text("f(x);" * 3000)
    intake = Intake()
    assert [document.doc_id for _, document in read_folder(tmp_path, intake)] == ["a.js"]
    assert "lines are too long" in str(intake.skipped[0])


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("query.sql", "SELECT " + ", ".join(f"column_{n}" for n in range(200)) + " FROM birch;"),
        ("get.sh", "curl " + " ".join(f"-H 'X-Bark-{n}: birch'" for n in range(30))),
        ("icon.js", f'const icon = "data:image/png;base64,{"iVBORw0K" * 5000}";\nshow(icon);'),
    ],
)
def test_long_lines_of_short_code_are_read(tmp_path: Path, name: str, text: str) -> None:
    """One command or query, or a picture within the code, is not minified."""
    assert read(tmp_path, name, text) == text


@pytest.mark.parametrize(
    "text",
    ["10\u00a0km", "\ufeffbirch", "co\u00adop", "👩\u200d🚀", "a\u2028b", "\x1b[1mbold",
     "a\vb\x85c", "\u200fשלום", "\U0001fae9", "\ue000"],
)  # fmt: skip
def test_any_characters_are_text_in_a_file_without_suffix(tmp_path: Path, text: str) -> None:
    """Spaces, marks and joined emoji that are not printable themselves."""
    assert read(tmp_path, "notes", f"{text} birch") == f"{text} birch".removeprefix("\ufeff")


def test_a_note_in_windows_1252_without_suffix(tmp_path: Path) -> None:
    """AUTHORS in old packages, for example."""
    assert (
        read(tmp_path, "AUTHORS", "© Zoë Müller, à Genève".encode("cp1252"))
        == "© Zoë Müller, à Genève"
    )


@pytest.mark.parametrize(
    "raw", [b"a\0b", b"\x7fELF", b"\x01birch", b"\xc2\x80", b"\xef\xf0\xe8\xe2\xe5\xf2"]
)
def test_other_bytes_in_a_file_without_suffix_are_no_text(tmp_path: Path, raw: bytes) -> None:
    """Control characters, and words in other encodings than UTF-8."""
    (tmp_path / "core").write_bytes(raw)
    intake = Intake()
    assert not list(read_folder(tmp_path, intake))
    assert dict(intake.notes) == {"file of another type not read: no suffix": 1}


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("```pip install x``` installs it.\n\n# Bark\n", "Bark"),
        ("````\n# no\n```\n# no\n````\n# Bark\n", "Bark"),
        ("```\n~~~\n# no\n```\n# Bark &amp; bees\n", "Bark & bees"),
    ],
)
def test_the_title_of_markdown_is_not_in_code(tmp_path: Path, text: str, title: str) -> None:
    """Code ends with the marks that it began with."""
    (tmp_path / "a.md").write_text(text)
    ((_, document),) = read_folder(tmp_path, Intake(skip_bad=False))
    assert document.title == title
