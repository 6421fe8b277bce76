"""Are tab-separated lines read unchanged, and lines with other columns refused?"""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from birchbark.collection.parsing.intake import Intake
from birchbark.collection.tsv import COLUMNS, read_tsv
from birchbark.errors import InputError
from birchbark.records import Document

VALUE = st.text(st.characters(codec="utf-8", exclude_characters="\t\r\n"), max_size=6)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A path for one file, rewritten by each example."""
    return tmp_path_factory.mktemp("tsv") / "file.tsv"


def read(path: Path, text: str, intake: Intake | None = None) -> list[Document]:
    """Write `text` to a file and return its documents."""
    path.write_text(text, "utf-8", newline="")
    return [document for _, document in read_tsv(path, intake or Intake())]


@given(st.data(), st.sampled_from(sorted(COLUMNS)))
def test_documents_round_trip(file: Path, data: st.DataObject, columns: int) -> None:
    """Values are unchanged, including quotes, spaces and backslashes."""
    rows = data.draw(st.lists(st.tuples(*[VALUE] * (columns - 1)), max_size=4))
    documents = [
        Document(f"d{number}", dict(zip(COLUMNS[columns], row, strict=True)))
        for number, row in enumerate(rows)
    ]
    lines = ["\t".join([d.doc_id, *d.fields.values()]) for d in documents]
    assert read(file, "".join(f"{line}\n" for line in lines)) == documents


@given(st.text() | st.text("a\t\n"))
def test_any_text_is_documents_or_an_input_error(file: Path, text: str) -> None:
    """With skip_bad, each line that is not blank is a document or is counted."""
    intake = Intake(skip_bad=True)
    documents = read(file, text, intake)
    filled = [line for line in text.split("\n") if line.removeprefix("\ufeff").strip()]
    assert len(documents) + len(intake.skipped) == len(filled)
    assert len({len(document.fields) for document in documents}) <= 1


@pytest.mark.parametrize(
    ("line", "fields"),
    [
        ("1\tx", {"text": "x"}),
        ("1\tT\tx", {"title": "T", "text": "x"}),
        ("1\thttp://u\tT\tx", {"url": "http://u", "title": "T", "text": "x"}),
        ("1\t\t", {"title": "", "text": ""}),
    ],
)
def test_columns_have_their_meaning_by_number(
    tmp_path: Path, line: str, fields: dict[str, str]
) -> None:
    """Two, three and four columns, as in MS MARCO's passages and documents."""
    assert read(tmp_path / "c.tsv", line) == [Document("1", fields)]


def test_quotes_have_no_meaning(tmp_path: Path) -> None:
    """An unclosed quote does not join lines."""
    documents = read(tmp_path / "c.tsv", '1\t"open\n2\tsays ""hi""\n')
    assert [document.text for document in documents] == ['"open', 'says ""hi""']


def test_the_number_of_columns_must_not_change(tmp_path: Path) -> None:
    """A tab inside a text must not make it a title."""
    with pytest.raises(
        InputError,
        match=r"c\.tsv:3: wrong number of columns: expected 2, as in the previous lines, found 3",
    ):
        read(tmp_path / "c.tsv", "1\tx\n\n2\tx\ty\n")


@pytest.mark.parametrize(("line", "found"), [("no tab", 1), ("1\t2\t3\t4\t5", 5)])
def test_other_numbers_of_columns_are_refused(tmp_path: Path, line: str, found: int) -> None:
    """One column has no text, and the meaning of five is unknown."""
    with pytest.raises(InputError, match=rf":1: .*expected 2 to 4, tab-separated, found {found}"):
        read(tmp_path / "c.tsv", line)


def test_a_bad_first_line_does_not_set_the_columns(tmp_path: Path) -> None:
    """Skipped lines do not determine the number of columns."""
    intake = Intake(skip_bad=True)
    documents = read(tmp_path / "c.tsv", "header\n1\tT\tx\n2\ty\n3\tT\tz\n", intake)
    assert [document.doc_id for document in documents] == ["1", "3"]
    assert [error.where[-2:] for error in intake.skipped] == [":1", ":3"]


@pytest.mark.parametrize("header", ["id\ttext", "docid\ttitle\ttext", "id\turl\ttitle\tcontents"])
def test_a_first_line_that_names_the_columns_is_no_document(header: str, tmp_path: Path) -> None:
    """The same line further down is a document."""
    line = "\t".join(["7", *(["x"] * header.count("\t"))])
    (tmp_path / "c.tsv").write_text(f"{header}\n{line}\n{header}\n")
    found = [document.doc_id for _, document in read_tsv(tmp_path / "c.tsv", Intake())]
    assert found == ["7", header.split("\t")[0]]


@pytest.mark.parametrize(
    ("header", "fields"),
    [
        ("id\ttext\ttitle", {"title": "b", "text": "a"}),
        ("pid\tpassage", {"text": "a"}),
        ("id\ttitle\turl\tbody", {"title": "a", "url": "b", "text": "c"}),
        ("id\ttitle", {"title": "a"}),
        ("id\ttext\tcontents", {"title": "a", "text": "b"}),
    ],
)
def test_the_first_line_says_what_the_columns_are(
    header: str, fields: dict[str, str], tmp_path: Path
) -> None:
    """DPR's passages have their titles last."""
    values = "\t".join(["7", *"abc"[: header.count("\t")]])
    (tmp_path / "c.tsv").write_text(f"{header}\n{values}\n")
    assert [d for _, d in read_tsv(tmp_path / "c.tsv", Intake())] == [Document("7", fields)]
