"""Are plain files and source code told from binary and generated files?"""

from __future__ import annotations

from pathlib import Path

import pytest

from birchbark.collection.file_readers.file import stated_title
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
    ("encoding", "line"),
    [
        ("gb18030", "人人生而自由,在尊严和权利上一律平等。"),
        ("big5", "人人生而自由,在尊嚴和權利上一律平等。"),
        ("euc_jp", "白樺の樹皮は白く、簡単に剥がれる。"),
        ("shift_jis", "白樺の樹皮は白く、簡単に剥がれる。"),
        ("euc_kr", "자작나무 껍질은 줄기에서 쉽게 벗겨진다."),
    ],
)
@pytest.mark.parametrize("begin", ["", "a"])
@pytest.mark.parametrize("end", ["", "\n"])
def test_no_character_is_cut_where_the_beginning_ends(
    tmp_path: Path, encoding: str, line: str, begin: str, end: str
) -> None:
    """Whether it is text does not depend on where characters of several bytes begin."""
    text = begin + (line + end) * 400
    assert read(tmp_path, "notes", text.encode(encoding)) == text.rstrip("\n")


def test_bytes_that_are_control_characters_in_utf_8_alone(tmp_path: Path) -> None:
    """In Shift_JIS, the second byte of one character and the first of the next may look so."""
    text = "白樺の樹皮は青い板の下にある。"
    assert b"\xc2\x82" in text.encode("shift_jis")
    assert read(tmp_path, "notes", text.encode("shift_jis")) == text


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "utf-8-sig", "cp1251", "koi8-r"])
def test_a_text_without_suffix_in_other_encodings(tmp_path: Path, encoding: str) -> None:
    """With a byte order mark, or detected as for files with a suffix."""
    text = "Кора берёзы белая и легко снимается со ствола дерева.\n" * 100
    assert read(tmp_path, "заметки", text.encode(encoding)) == text.rstrip("\n")


@pytest.mark.parametrize(
    "raw",
    [b"a\0b", b"\x7fELF", b"\x01birch", b"\xc2\x80", b"\x01\xf0\xe8\xe2\xe5\xf2",
     b"\xff\xfe\x01\x00b\x00", b"\xff\xfe\x00\xd8\x00\xd8"],
)  # fmt: skip
def test_other_bytes_in_a_file_without_suffix_are_no_text(tmp_path: Path, raw: bytes) -> None:
    """Control characters, also after a byte order mark, and bytes in no encoding."""
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


@pytest.mark.parametrize(
    ("text", "title", "rest"),
    [
        ("Intro text.\n\n## Links\n\nBees", "", "Intro text.\n\n## Links\n\nBees"),
        ("Intro text.\n\n# One\n\n# Two", "", "Intro text.\n\n# One\n\n# Two"),
        ("Intro text.\n\n## Links\n\n# Bees", "Bees", "Intro text.\n\n## Links\n"),
        ("[![a](b)](c)\n\n## Bees\n\nBark", "Bees", "[![a](b)](c)\n\n\nBark"),
        ("<p>\n<h1 class='x'>\n<img/>\nBees &amp; bark\n</h1>\nText", "Bees & bark", "<p>\nText"),
        ("<h1>Bees</h1> and\n# Bark", "Bark", "<h1>Bees</h1> and"),
        ("<h1><img/></h1>\n# Bark", "Bark", "<h1><img/></h1>"),
    ],
)
def test_a_heading_after_text_is_its_title_only_if_it_is_the_highest(
    tmp_path: Path, text: str, title: str, rest: str
) -> None:
    """A heading of a part stays where it is."""
    (tmp_path / "a.md").write_text(text)
    ((_, document),) = read_folder(tmp_path, Intake(skip_bad=False))
    assert (document.title, document.text.rstrip("\n")) == (title, rest.rstrip("\n"))


@pytest.mark.parametrize(
    "hidden",
    [
        "<!-- markdownlint-disable -->",
        "<!--\nCopyright 2024\n\nMIT [terms](a\n-->",
        '[//]: # (a comment)\n[//]: # "another"\n[b]: <b.svg>',
        "[![Build][b]][c] [![Docs]](d)",
        "[[_TOC_]]\n[TOC]",
    ],
)
@pytest.mark.parametrize("heading", ["# Bees", "<h1>Bees</h1>"])
def test_what_is_not_seen_before_a_heading_is_no_text(
    tmp_path: Path, hidden: str, heading: str
) -> None:
    """Comments, addresses of links, pictures and tables of contents."""
    (tmp_path / "a.md").write_text(f"{hidden}\n\n{heading}\n\nBark\n\n# Trees\n")
    ((_, document),) = read_folder(tmp_path, Intake(skip_bad=False))
    assert document.title == "Bees"


@pytest.mark.parametrize("text", ["[^1]: Ann", "[Ann]: she said so", "<!-- a", "[toc](a)"])
def test_what_only_looks_as_if_it_were_not_seen(tmp_path: Path, text: str) -> None:
    """Footnotes, words after a colon, comments that do not end, and links are text."""
    (tmp_path / "a.md").write_text(f"{text}\n\n# Bees\n\n# Trees\n")
    ((_, document),) = read_folder(tmp_path, Intake(skip_bad=False))
    assert document.title == ""


@pytest.mark.parametrize("flood", ["<!--", "<a", "![", "[][", "[a]: b ", "[a]:" + " " * 20, "(["])
def test_floods_before_a_heading_end_soon(tmp_path: Path, flood: str) -> None:
    """Their length squared would be minutes."""
    (tmp_path / "a.md").write_text(f"{flood * 50_000}\n# Bees")
    ((_, document),) = read_folder(tmp_path, Intake(skip_bad=False))
    assert document.title == "Bees"


@pytest.mark.parametrize(
    ("stated", "title"),
    [
        ("PowerPoint-Präsentation", ""),
        ("Presentación de PowerPoint", ""),
        ("Prezentacja programu PowerPoint", ""),
        ("Презентация на PowerPoint", ""),
        ("PowerPoint プレゼンテーション", ""),
        ("PowerPoint", "PowerPoint"),
        ("PowerPoint tips", "PowerPoint tips"),
        ("Presentation tips for PowerPoint", "Presentation tips for PowerPoint"),
        ("How PowerPoint makes us dull", "How PowerPoint makes us dull"),
        ("Microsoft Word - Bees.doc", "Bees.doc"),
    ],
)
def test_titles_that_programs_state(stated: str, title: str) -> None:
    """None if they are PowerPoint's own in one of its languages; without the program's name."""
    assert stated_title(stated) == title


def test_lines_that_end_in_carriage_returns_alone(tmp_path: Path) -> None:
    """They are lines of Markdown as well, so that the title is one of them."""
    (tmp_path / "a.md").write_bytes(b"# Bees\r\rThey dance.\r\rThey hum.\r")
    ((_, document),) = read_folder(tmp_path, Intake(skip_bad=False))
    assert (document.title, document.text) == ("Bees", "They dance.\n\nThey hum.")
