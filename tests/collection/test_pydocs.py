"""Does every public definition with a docstring become a Document, without any import?"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from birchbark.collection.parsing.intake import Intake
from birchbark.collection.pydocs import pydocs_qrels, pydocs_queries, read_pydocs, standard_library
from birchbark.errors import InputError
from birchbark.records import Document

SHOP = '''
"""A shop of nuts."""
raise SystemExit("imported")

def weigh(nut: str, *, scale: float = 1.0) -> float:
    """Weigh a nut.

    By hand.
        Indented.
    """

async def later():
    """Come back."""

def silent(): ...

def _private():
    """No."""

class Nut(Seed, metaclass=Meta):
    """A nut."""

    def crack(self):
        """Crack it."""
        def inner():
            """No."""

    def __init__(self):
        """No."""

    class Shell:
        """Around the nut."""
        def peel(self, *args, **kwargs):
            """Peel it."""

class Silent:
    def heard(self):
        """Heard."""

class _Hidden:
    """No."""
    def method(self):
        """No."""

if fast:
    def under_if():
        """If."""
elif slow:
    def under_elif():
        """Elif."""
else:
    def under_else():
        """Else."""
try:
    from _shop import under_try
except ImportError:
    def under_except():
        """Except."""
else:
    def under_try_else():
        """Try, else."""
finally:
    def under_finally():
        """Finally."""

def twice():
    """First."""

def twice():
    """Second."""
'''


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A path for one module, rewritten by each example."""
    return tmp_path_factory.mktemp("library") / "module.py"


def library(folder: Path, files: dict[str, str]) -> Path:
    """Write `files` (name → source) below `folder`."""
    for name, code in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(code, "utf-8")
    return folder


def read(folder: Path, intake: Intake | None = None) -> dict[str, Document]:
    """Return doc_id → document of the library in `folder`; the ids must be distinct."""
    documents = [document for _, document in read_pydocs(folder, intake or Intake())]
    assert len({document.doc_id for document in documents}) == len(documents)
    return {document.doc_id: document for document in documents}


@given(
    st.text()
    | st.lists(st.sampled_from(['"""a"""', "def f(): ", "class A: ", "\n", " "])).map("".join)
)
def test_any_text_is_documents_or_an_input_error(source: Path, code: str) -> None:
    """A file that is not valid Python is a bad record."""
    source.write_text(code, "utf-8", newline="")
    intake = Intake(skip_bad=True)
    try:
        ast.parse(source.read_bytes())
    except (SyntaxError, ValueError):
        assert list(read_pydocs(source.parent, intake)) == []
        assert len(intake.skipped) == 1
    else:
        assert all(d.doc_id.startswith("module") for _, d in read_pydocs(source.parent, intake))
        assert intake.skipped == []


def test_public_definitions_with_a_docstring_are_documents(tmp_path: Path) -> None:
    """Modules, functions, classes and methods, including those under if and try."""
    documents = read(library(tmp_path, {"shop.py": SHOP}))
    assert {doc_id: d.fields["kind"] for doc_id, d in documents.items()} == {
        "shop": "module",
        "shop.weigh": "function",
        "shop.later": "function",
        "shop.Nut": "class",
        "shop.Nut.crack": "method",
        "shop.Nut.Shell": "class",
        "shop.Nut.Shell.peel": "method",
        "shop.Silent.heard": "method",
        "shop.under_if": "function",
        "shop.under_elif": "function",
        "shop.under_else": "function",
        "shop.under_except": "function",
        "shop.under_try_else": "function",
        "shop.under_finally": "function",
        "shop.twice": "function",
    }


def test_title_is_kind_and_signature_text_is_docstring(tmp_path: Path) -> None:
    """The docstring is dedented, as in help()."""
    documents = read(library(tmp_path, {"shop.py": SHOP}))
    assert documents["shop"].fields == {
        "title": "module shop",
        "text": "A shop of nuts.",
        "kind": "module",
    }
    assert documents["shop.weigh"].fields == {
        "title": "function shop.weigh(nut: str, *, scale: float=1.0)",
        "text": "Weigh a nut.\n\nBy hand.\n    Indented.",
        "kind": "function",
    }
    assert documents["shop.Nut"].title == "class shop.Nut(Seed)"
    assert documents["shop.Nut.Shell"].title == "class shop.Nut.Shell"
    assert documents["shop.Nut.Shell.peel"].title == (
        "method shop.Nut.Shell.peel(self, *args, **kwargs)"
    )


def test_a_docstring_that_starts_on_its_second_line_keeps_its_shape(tmp_path: Path) -> None:
    """The text is that of help(), with its indented examples."""
    code = 'def f():\n    """\n    Usage:\n        f()\n    """'
    assert read(library(tmp_path, {"a.py": code}))["a.f"].text == "Usage:\n    f()"


def test_a_name_defined_twice_keeps_its_first_definition(tmp_path: Path) -> None:
    """Each id has one document."""
    assert read(library(tmp_path, {"shop.py": SHOP}))["shop.twice"].text == "First."


def test_private_implementations_have_their_public_names(tmp_path: Path) -> None:
    """Some versions of Python define datetime in _pydatetime and pathlib in pathlib._local."""
    files = {
        "_pydatetime.py": 'def f(): "F"',
        "datetime.py": '"""Dates."""',
        "pathlib/__init__.py": '"""Paths."""',
        "pathlib/_local.py": 'class Path: "P"',
        "pathlib/_other.py": 'class Q: "No."',
    }
    assert set(read(library(tmp_path, files))) == {
        "datetime",
        "datetime.f",
        "pathlib",
        "pathlib.Path",
    }


def test_a_module_beside_a_package_of_its_name_keeps_the_first(tmp_path: Path) -> None:
    """The first definition counts across files as well."""
    files = {"shop.py": '"""Module."""', "shop/__init__.py": '"""Package."""'}
    assert len(read(library(tmp_path, files))) == 1


def test_packages_are_named_by_their_folder(tmp_path: Path) -> None:
    """`__init__` is not part of a name."""
    files = {"nuts/__init__.py": '"""Nuts."""', "nuts/hazel/tree.py": '"""Tree."""\ndef f(): "F"'}
    assert set(read(library(tmp_path, files))) == {"nuts", "nuts.hazel.tree", "nuts.hazel.tree.f"}


@pytest.mark.parametrize(
    "name",
    (
        "_a.py __main__.py _p/a.py p/_q/__init__.py test/a.py p/tests/a.py site-packages/a.py "
        "dist-packages/a.py idlelib/a.py lib2to3/a.py a.txt"
    ).split(),
)
def test_private_modules_and_tests_are_left_out(tmp_path: Path, name: str) -> None:
    """Installed packages are left out, too."""
    files = {name: '"""No."""', "public.py": '"""Yes."""'}
    assert set(read(library(tmp_path, files))) == {"public"}


def test_a_syntax_error_is_a_bad_record(tmp_path: Path) -> None:
    """The error names the file; with skip_bad, the other files are read."""
    library(tmp_path, {"a.py": "def", "b.py": '"""B."""', "c.py": "\0"})
    with pytest.raises(InputError, match=r"a\.py: not valid Python: "):
        read(tmp_path)
    intake = Intake(skip_bad=True)
    assert set(read(tmp_path, intake)) == {"b"}
    assert [Path(error.where).name for error in intake.skipped] == ["a.py", "c.py"]


def test_other_encodings_are_read_as_python_reads_them(tmp_path: Path) -> None:
    """Encoding declarations are respected; an unknown one is a bad record."""
    (tmp_path / "a.py").write_bytes(b'# coding: latin-1\n"""Caf\xe9."""')
    assert read(tmp_path)["a"].text == "Café."
    (tmp_path / "a.py").write_bytes(b'# coding: klingon\n"""A."""')
    with pytest.raises(InputError, match="not valid Python"):
        read(tmp_path)


def test_a_folder_called_like_a_module_is_no_source(tmp_path: Path) -> None:
    """A path that ends with .py need not be a file."""
    assert set(read(library(tmp_path, {"shop.py/nut.py": "", "a.py": '"""A."""'}))) == {"a"}


@pytest.mark.parametrize(
    "code", ["-" * 200_000 + "1", "x = a" + ".b" * 20_000], ids=["deep", "long"]
)
def test_python_beyond_the_parsers_limits_is_a_bad_record(tmp_path: Path, code: str) -> None:
    """The parser raises MemoryError or RecursionError."""
    with pytest.raises(InputError):
        read(library(tmp_path, {"a.py": code}))


def test_an_invalid_escape_is_no_error(tmp_path: Path) -> None:
    """The parser's warnings about sources are not shown."""
    assert set(read(library(tmp_path, {"a.py": '"""A."""\nx = "\\d"'}))) == {"a"}


def test_a_library_without_sources_is_refused(tmp_path: Path) -> None:
    """Some systems install Python without its sources."""
    with pytest.raises(InputError, match=r"no Python sources \(install the sources"):
        read(tmp_path)


def test_the_standard_library_is_read() -> None:
    """There are over a thousand documents with distinct ids, among them well-known ones."""
    intake = Intake()
    documents = [document for _, document in read_pydocs(standard_library(), intake)]
    by_id = {document.doc_id: document for document in documents}
    assert len(by_id) == len(documents) > 1_000
    assert intake.skipped == []
    assert by_id["heapq.nlargest"].title == "function heapq.nlargest(n, iterable, key=None)"
    assert by_id["heapq.nlargest"].text.startswith("Find the n largest elements")
    assert by_id["pathlib.Path"].fields["kind"] == "class"
    assert by_id["json"].fields["kind"] == "module"
    assert not [doc_id for doc_id in by_id if "._" in doc_id or doc_id.startswith("test")]


def test_questions_ship_with_the_package() -> None:
    """They are TREC topics, each with an id and a text."""
    queries = pydocs_queries()
    assert len(queries) > 10
    assert all(query.text for query in queries)


def test_judgments_ship_with_the_package() -> None:
    """Every question has judgments of grades 0 to 3, and a relevant document."""
    grades = pydocs_qrels().grades
    assert grades.keys() == {query.query_id for query in pydocs_queries()}
    assert {grade for of_query in grades.values() for grade in of_query.values()} == {0, 1, 2, 3}
    assert all(max(of_query.values()) > 0 for of_query in grades.values())
