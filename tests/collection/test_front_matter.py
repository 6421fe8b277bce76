"""Does front matter become fields, and is everything else left as it is?"""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from birchbark.collection.file_readers.front_matter import split_front_matter
from birchbark.collection.files.folder import read_folder
from birchbark.collection.parsing.intake import Intake

ABOUT_FILE = {"path", "folder", "type", "language", "modified", "size"}
LINES = st.lists(
    st.sampled_from(["---", "...", "+++", "a: b", "a:", "- c", "  d", "x = 1", "[t]", "", "# e"])
    | st.text(max_size=5),
    max_size=8,
)


def read(folder: Path, text: str) -> dict[str, str]:
    """Return the fields of a Markdown file, without those about the file."""
    (folder / "a.md").write_text(text)
    ((_, document),) = read_folder(folder, Intake(skip_bad=False))
    return {name: text for name, text in document.fields.items() if name not in ABOUT_FILE}


def stated(front: str) -> dict[str, str]:
    """Return the fields that front matter in YAML states."""
    return split_front_matter(f"---\n{front}\n---\n".split("\n"))[0]


@pytest.mark.parametrize(
    ("front", "title"),
    [
        ("---\ntitle: package.json\nsection: 5\n---\n", "package.json"),
        ("---\nsection: 5\ntitle:  'The file'  \n---\n", "The file"),
        ("---\ntitle: >-\n  Folded\n  over lines\nsection: 5\n---\n", "Folded over lines"),
        ("+++\ntitle = 'In TOML'\nsection = 5\n+++\n", "In TOML"),
        ("---\nsection: 5\n---\n", "Description"),
        ("---\ntitle:\nsection: 5\n---\n", "Description"),
    ],
)
def test_the_title_of_front_matter(tmp_path: Path, front: str, title: str) -> None:
    """It comes before a heading; the front matter leaves the text."""
    fields = read(tmp_path, f"{front}\n### Description\n\nA text.\n")
    heading = "" if title == "Description" else "### Description\n\n"
    assert fields == {"title": title, "section": "5", "text": f"{heading}A text."}


@pytest.mark.parametrize(
    "text",
    ["---\na: b\na: c\n---\nx",
     "a: b\n---\n", "---\n\na: never closed\n", "---\nA sentence.\n---\n", "+++\nno toml\n+++\n",
     "---\n---\nx", "---\nNote: they dance\nand hum.\n---\n",
     "---\n\n# Bees\n\nNote: they dance\n\n---\n", "--- \n- a\n---\nx",
     "+++\na = " + "[" * 5000 + "\n+++\n"],
)  # fmt: skip
def test_what_is_no_front_matter_stays(text: str) -> None:
    """It stays line by line."""
    assert split_front_matter(text.split("\n")) == ({}, text.split("\n"))


@pytest.mark.parametrize(
    ("front", "value"),
    [
        ("k: Rust: a tour", "Rust: a tour"),
        ("k: a # comment", "a"),
        ("k: C#", "C#"),
        ('k: "a \\"b\\" \\u00e9" # c', 'a "b" é'),
        ('k: "\\ud800"', "?"),
        ('k: "no end', "no end"),
        ("k: 'it''s'", "it's"),
        ("k: 'it''s' # c", "it's"),
        ("k: 'a' and \"b\" # c", "'a' and \"b\""),
        ('k: "a" and more', '"a" and more'),
        ("k: ['a' b, \"c\" d]", "'a' b, \"c\" d"),
        ("k: [a, 'b, c', \"d\"]", "a, b, c, d"),
        ("k: [a,\n  b]", "a, b"),
        ("k:\n  - a\n  - 'b'", "a, b"),
        ("k:\n- a\n- b # c", "a, b"),
        ("k: |\n  one\n  two", "one\ntwo"),
        ("k: >\n  one\n  two\n\n  three", "one two\n\nthree"),
        ("k: one\n  two", "one two"),
        ("k:\n  nested: a", "nested: a"),
        ("# comment\n\nk: 2024-05-01", "2024-05-01"),
        ("'k': yes", "yes"),
        ('k: [\n"a",\n  "b"\n]', "a, b"),
        ("k: one\ntwo", "one two"),
    ],
)
def test_values_in_yaml(front: str, value: str) -> None:
    """Values are texts: dates, numbers and yes stay as they are written."""
    assert stated(f"{front}\nother: x") == {"k": value, "other": "x"}


def test_keys_with_other_characters() -> None:
    """A colon within a key has no blank after it."""
    front = "_build: x\nog:title: Bees: a\n@context: y\n$schema: http://z\n'a:b': c"
    assert stated(front) == {
        "_build": "x", "og:title": "Bees: a", "@context": "y", "$schema": "http://z", "a:b": "c",
    }  # fmt: skip


def test_values_without_contents_are_no_fields() -> None:
    """Values that are null or ~ are no fields either."""
    assert stated("a:\nb: ~\nc: null\nd: ''\ne: 0") == {"e": "0"}


def test_names_that_a_document_has_get_a_prefix(tmp_path: Path) -> None:
    """The type of a page is not that of its file."""
    front = "---\ntype: post\nid: 7\ntext: t\npath: /a\ntags: [a, b]\n---\nA text."
    assert read(tmp_path, front) == {
        "title": "", "text": "a, b\n\nA text.", "front_type": "post", "front_id": "7",
        "front_text": "t", "front_path": "/a", "tags": "a, b",
    }  # fmt: skip


def test_what_the_front_matter_says_about_the_text_is_text(tmp_path: Path) -> None:
    """A description can be searched and read."""
    fields = read(tmp_path, "---\ndescription: On bark.\n---\n# T\nA text.")
    assert fields == {"title": "T", "description": "On bark.", "text": "On bark.\n\nA text."}


def test_values_in_toml(tmp_path: Path) -> None:
    """Keys of tables follow the table's name."""
    front = "+++\ndate = 2024-05-01\ndraft = true\n[taxonomies]\ntags = ['a', 'b']\n+++\nA text."
    assert read(tmp_path, front) == {
        "title": "", "text": "A text.", "front_date": "2024-05-01", "draft": "true",
        "taxonomies.tags": "a, b",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "title", "rest"),
    [
        ("Birch bark\n==========\n\nA text.", "Birch bark", "A text."),
        ("Birch bark\n---\nA text.", "Birch bark", "A text."),
        ("  Birch\n ---  \nA text.", "Birch", "A text."),
        ("First.\n\nBirch\n===\nA text.", "Birch", "First.\n\nA text."),
        ("Birch\n===\n# Later\n", "Birch", "# Later"),
        ("- a\n---\nb", "", "- a\n---\nb"),
        ("a\nb\n---\nc", "", "a\nb\n---\nc"),
        ("| a |\n---\n", "", "| a |\n---"),
        ("```\na\n===\n```\n", "", "```\na\n===\n```"),
        ("a\n\n---\nb", "", "a\n\n---\nb"),
    ],
)
def test_underlined_headings(tmp_path: Path, text: str, title: str, rest: str) -> None:
    """The first heading is the title, however it is written; a rule is none."""
    assert read(tmp_path, text) == {"title": title, "text": rest}


@given(LINES)
def test_any_lines_are_read(lines: list[str]) -> None:
    """The lines after the front matter are those of the file, and all fields have a value."""
    fields, rest = split_front_matter(lines)
    assert rest == lines[len(lines) - len(rest) :]
    assert all(fields.values())


@pytest.mark.parametrize("flood", ["a ", '\\"', "'", "[", ",", '"a', "# "])
def test_floods_end_soon(flood: str) -> None:
    """One line of them is a value, however long."""
    for line in (f"k: {flood * 45_000}", f"k: [{flood * 45_000}]", flood * 45_000):
        split_front_matter(["---", line, "---", ""])
