"""Are headings, functions and classes found in files, also in hostile ones?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from birchbark.collection.documents import read_collection
from birchbark.collection.file_readers import functions
from birchbark.collection.file_readers.functions import function_starts, has_grammar
from birchbark.collection.files import find_sections
from birchbark.collection.files.find_sections import with_section_starts
from birchbark.collection.files.folder_state import FileState, FolderSource, FolderState
from birchbark.collection.files.isolated_reader import IsolatedReader
from birchbark.collection.parsing.intake import Intake
from birchbark.errors import InputError
from birchbark.process_limits import result_of_child
from birchbark.records import SECTION_STARTS, Document
from fuzzing import broken, fuzz

PYTHON = '''"""A module."""

import bark


# Peels a tree.
@bark.done
def peel(tree):
    def inner():
        return 1

    return inner


class Canoe:
    """A boat."""

    def paddle(self):
        """Move."""
        return "splash"

    short = lambda self: 1


peel(Canoe())
'''
CODE = {
    ".py": (PYTHON, ["# Peels a tree.", "class Canoe:", "    def paddle(self):", "peel(Canoe())"]),
    ".ts": (
        "import a from 'b';\n\n/** Doc\n of f. */\nexport const f = async (x: number) => {\n"
        "  return x;\n};\nexport class A {\n  @dec()\n  m() {\n    return 1;\n  }\n}\nf(1);\n",
        ["/** Doc", "export class A {", "  @dec()", "f(1);"],
    ),
    ".pyi": (
        "class A:\n    # About f.\n    def f(self):\n        return 1\n",
        ["class A:", "    # About f."],
    ),
    ".js": ("f();\nfunction g() {\n  return 1;\n}\n", ["function g() {"]),
    ".h": (
        "#include <a.h>\nstruct foo;\n/* Sum\n   of both. */\nstatic int\nsum(struct foo *a)\n{\n"
        "  return 1;\n}\ntemplate <typename T>\nclass X {\n  void f() {\n    g();\n"
        "  }\n};\nint x;\n",
        ["/* Sum", "template <typename T>", "  void f() {", "int x;"],
    ),
    ".java": (
        "package a;\n\nclass A {\n  /** Doc. */\n  @Override\n  void f() {\n  }\n}\n",
        ["class A {", "  /** Doc. */"],
    ),
    ".cs": ("using A;\n\nclass B {\n  void F() {\n  }\n}\n", ["class B {", "  void F() {"]),
    ".go": (
        "package a\n\n// T is\ntype T struct {\n}\n\nfunc (t *T) F() int {\n\treturn 1\n}\n",
        ["// T is", "func (t *T) F() int {"],
    ),
    ".rs": (
        "use a;\n/// A bee.\n#[derive(Debug)]\nstruct Bee {\n}\nimpl Bee {\n    fn new() {\n    }\n"
        "    fn one() -> u8 { 1 }\n}\nconst X: u8 = 1;\n",
        ["/// A bee.", "impl Bee {", "    fn new() {", "const X: u8 = 1;"],
    ),
    ".rb": ("require 'a'\nmodule M\n  def f\n    1\n  end\nend\n", ["module M", "  def f"]),
    ".php": ("<?php\n$a = 1;\nfunction f() {\n  return 1;\n}\nf();\n", ["function f() {", "f();"]),
    ".sh": ("a=1\nf() {\n  b\n}\nf\n", ["f() {", "f"]),
}


def lines_at(text: str, starts: list[int]) -> list[str]:
    """Return the line at each offset."""
    return [text[start:].partition("\n")[0] for start in starts]


def skip_without(suffix: str) -> None:
    """Skip a test of functions if what finds them is missing."""
    if not has_grammar(suffix):
        pytest.skip("needs the extra `code`: pip install 'birchbark[code]'")


def read(raw: bytes, name: str) -> tuple[Document, Counter[str]]:
    """Read a file in a process of its own, and return its document and the notes."""
    notes = Counter[str]()
    with IsolatedReader() as reader:
        about = {"path": name, "size": str(len(raw))}
        [part] = reader.begin(Path(name), raw, name, about, notes)
    assert isinstance(part.found, Document)
    return part.found, notes


@pytest.mark.parametrize("suffix", CODE)
def test_functions_and_classes_of_each_language(suffix: str) -> None:
    """With their comments, but without functions in functions, and what is a single line."""
    skip_without(suffix)
    text, lines = CODE[suffix]
    assert lines_at(text, function_starts(text, suffix)) == lines


def test_offsets_count_characters() -> None:
    """Not bytes; and a line of Windows ends with two characters."""
    skip_without(".py")
    text = "# é 🛶 日本\r\nx = 1\r\ndef f():\r\n    return 'ü'\r\ny = 2\r\n"
    starts = function_starts(text, ".py")
    assert lines_at(text, starts) == ["def f():\r", "y = 2\r"]


def test_code_states_its_functions() -> None:
    """A file of a folder, also one that is compressed."""
    skip_without(".py")
    document, notes = read(PYTHON.encode(), "a.py")
    starts = list(map(int, document.fields[SECTION_STARTS].split()))
    assert lines_at(PYTHON, starts) == CODE[".py"][1]
    assert notes == {}
    assert find_sections._suffix("old/a.py.gz") == ".py"


@pytest.fixture(scope="module")
def reader() -> Iterator[IsolatedReader]:
    """A reader of many files."""
    with IsolatedReader() as made:
        yield made


@pytest.mark.parametrize("suffix", CODE)
@fuzz(4)
@given(data=st.data())
def test_broken_code_is_read(suffix: str, data: st.DataObject, reader: IsolatedReader) -> None:
    """Its sections begin in the text, in order; or it is refused with its name, or noted."""
    skip_without(suffix)
    name, raw = f"a{suffix}", data.draw(broken([CODE[suffix][0].encode()]))
    about = {"path": name, "size": str(len(raw))}
    [part] = reader.begin(Path(name), raw, name, about, Counter())
    if isinstance(part.found, InputError):
        assert name in str(part.found)
        return
    starts = list(map(int, part.found.fields.get(SECTION_STARTS, "").split()))
    assert starts == sorted(set(starts))
    assert all(start < len(part.found.text) for start in starts)


@pytest.mark.parametrize("suffix", [".java", ".cs"])
def test_code_that_ends_the_parser_is_read(suffix: str) -> None:
    """A parser that exceeds its stack ends only the copy of the process, and this is noted."""
    skip_without(suffix)
    code = "\n".join(["a<" * 100] * 1500)
    document, notes = read(code.encode(), f"a{suffix}")
    assert document.text == code
    assert SECTION_STARTS not in document.fields
    assert notes == {"source code split by lines, since its functions cannot be found": 1}


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_copy_of_a_process_is_limited() -> None:
    """It may fail, end, or take too long, and nothing is returned."""

    def endless() -> bytes:
        while True:
            pass

    assert result_of_child(lambda: b"found" * 100_000, 5) == b"found" * 100_000
    assert result_of_child(lambda: bytes(1 // 0), 5) is None
    assert result_of_child(endless, 1) is None


def test_without_the_extra_code_states_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is then split by lines; a language without a grammar always is."""
    document = Document("a.py", {"text": PYTHON, "type": "code"})
    monkeypatch.setattr(functions, "find_spec", lambda name: None)
    assert with_section_starts(document, Intake()) == document
    monkeypatch.undo()
    other = Document("a.lisp", {"text": "(defun f ()\n  1)", "type": "code"})
    assert with_section_starts(other, Intake()) == other


@pytest.mark.parametrize(
    ("name", "text", "headings"),
    [
        ("a.md", "# Title\n\nBefore.\n## One\na\n```\n# no\n```\nTwo\n---\nb\n", ["## One", "Two"]),
        ("a.md", "# Title\n\nBefore.\n\nLonger than its line\n---\na\n", ["Longer than its line"]),
        ("a.md", "# Title\r\n\r\nBefore.\r\n## One\r\na\r\n", ["## One"]),
        ("a.md", "# Title\n\nBefore\n***\nbelow\n\nOne\n===\na\n", ["One"]),
        (
            "a.rst",
            "Title\n=====\n\na\n\n---\nOne\n---\n\n   # code\n\nTwo\n~~~\nc\n\nThree\n+++++\n",
            ["---", "Two", "Three"],
        ),
        ("a.txt", "# Title\n\n## One\n", []),
        ("a.html", "<title>Title</title><p>a<p># One", []),
    ],
)
def test_headings(name: str, text: str, headings: list[str]) -> None:
    """Of Markdown and reStructuredText, where a line above may belong to the heading."""
    document, _ = read(text.encode(), name)
    stated = document.fields.get(SECTION_STARTS, "")
    lines = lines_at(document.text, list(map(int, stated.split())))
    assert [line.rstrip() for line in lines] == headings


def test_files_are_read_again_with_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """An index that follows its folder gets the functions of files that have not changed."""
    state = FileState(1, 2, True, "digest")
    stored = FolderState(FolderSource(("a",)), {"b.py": state}).as_json()
    assert FolderState.from_json(stored).files == {"b.py": state}
    monkeypatch.setattr(functions, "GRAMMARS", {".json": functions.Grammar("json")})
    monkeypatch.setattr(functions, "find_spec", lambda name: name)
    assert FolderState.from_json(stored).files == {"b.py": state.to_be_read()}


def test_headings_of_files_that_are_read_as_markup_begin_sections(tmp_path: Path) -> None:
    """Web pages, and what pandoc reads; the title is no section, as it is no part of the text."""
    page = "<title>Bark</title><h1>Peeling</h1><p>In spring.<h2>Drying</h2><p>In summer."
    (tmp_path / "a.html").write_text(page)
    (tmp_path / "b.org").write_text(
        "#+TITLE: Bark\n\n* Peeling\n\nIn spring.\n\n* Drying\n\nLater."
    )
    documents = list(read_collection(str(tmp_path), Intake()))
    assert len(documents) >= 1
    for document in documents:
        text = document.fields["text"]
        starts = map(int, document.fields[SECTION_STARTS].split())
        assert [text[start:].split("\n")[0] for start in starts] == ["Peeling", "Drying"]


def test_a_title_that_is_partly_text_states_no_sections(tmp_path: Path) -> None:
    page = f"<title>{'Bark ' * 300}</title><h1>Peeling</h1><p>In spring.<h2>Drying</h2>"
    (tmp_path / "a.html").write_text(page)
    (document,) = read_collection(str(tmp_path), Intake())
    assert SECTION_STARTS not in document.fields
