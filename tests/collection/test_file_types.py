"""Is each type of files recognised, and read with its title and without its markup?"""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from birchbark.collection.file_readers import file_types, pandoc
from birchbark.collection.file_readers import table as table_reader
from birchbark.collection.file_readers.file_types import OF_SUFFIX, FileType, file_type
from birchbark.collection.file_readers.pdf import PAGE_BREAK
from birchbark.collection.files.folder import read_folder
from birchbark.collection.parsing.intake import Intake
from birchbark.errors import InputError, UnreadableError
from birchbark.records import Document
from birchbark.segment.sentences import sentences

MARKDOWN = (
    "---\ntitle: Birch bark\n---\n\n# Uses\n\nPeople made *baskets* of it.[^1]\n\n[^1]: A note.\n"
)


def read(folder: Path, name: str, contents: str | bytes) -> Document:
    """Return the one file that is written to `folder`."""
    raw = contents if isinstance(contents, bytes) else contents.encode()
    (folder / name).write_bytes(raw)
    ((_, document),) = read_folder(folder, Intake(skip_bad=False))
    return document


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a.txt", "text"),
        ("README", "text"),
        ("README.Debian", "text"),
        ("NEWS.Debian.gz", "text"),
        ("changelog.Debian.gz", "text"),
        ("a.Debian", None),
        ("README.md", "markdown"),
        ("a.HTML", "html"),
        ("a.md.gz", "markdown"),
        ("ls.1.gz", "manual page"),
        ("perlfunc.3pm", "manual page"),
        ("a.py", "code"),
        ("a.zip", None),
        ("a.10", "text"),
        ("0.30-ReleaseNotes.gz", "text"),
        ("Meeting on 3. May", "text"),
        ("netrc.example", None),
        ("Apache-2.0", "text"),
        ("README-WIN.Debian", "text"),
        ("COPYING3.LIB", "text"),
        ("README_FIRST.dist", "text"),
        ("IMG_0001.MOV", None),
        ("INBOX.msf", None),
        ("backup.7z", None),
        ("a.3gp", None),
    ],
)
def test_types_by_name(name: str, expected: str | None) -> None:
    """The suffix before .gz counts, in upper or lower case."""
    kind = file_type(Path(name))
    assert (kind and kind.name) == expected


def test_the_processor_time_of_pandoc_is_limited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A few bytes take it minutes; they would at another time, too."""
    pytest.importorskip("pypandoc")
    monkeypatch.setattr(pandoc, "MOST_SECONDS", 1)
    with pytest.raises(InputError, match="longer than 1 s of processor time") as caught:
        read(tmp_path, "a.org", "- " + "*/" * 3_000 + "a")
    assert not isinstance(caught.value, UnreadableError)


def test_a_version_is_no_section_of_a_manual(tmp_path: Path) -> None:
    """A text whose name ends in .3 is a manual page if it begins as one."""
    assert read(tmp_path, "GFDL-1.3", "A licence.").fields["type"] == "text"


@pytest.mark.parametrize(
    ("suffix", "to"),
    [(".docx", "docx"), (".odt", "odt"), (".epub", "epub"), (".rtf", "rtf"), (".tex", "latex"),
     (".org", "org"), (".pptx", "pptx"), (".ipynb", "ipynb")],
)  # fmt: skip
def test_what_pandoc_reads(tmp_path: Path, suffix: str, to: str) -> None:
    """Title and text are read without markup; footnotes stay."""
    pypandoc = pytest.importorskip("pypandoc")
    file = tmp_path / "files" / f"a{suffix}"
    file.parent.mkdir()
    pypandoc.convert_text(MARKDOWN, to, "markdown", outputfile=str(file), extra_args=["-s"])
    ((_, document),) = read_folder(file.parent, Intake(skip_bad=False))
    assert document.fields["type"] == OF_SUFFIX[suffix].name
    assert "People made baskets of it." in document.text.replace("it.1", "it.")
    assert "A note." in document.text or suffix in {".pptx", ".rtf"}
    assert document.title == "Birch bark" or suffix in {".odt", ".rtf", ".ipynb", ".pptx"}


def test_damaged_documents_are_skipped_with_a_reason(tmp_path: Path) -> None:
    """Each has one line."""
    pytest.importorskip("pypandoc")
    pytest.importorskip("pypdfium2")
    for name in ("a.docx", "b.pdf", "c.epub"):
        (tmp_path / name).write_bytes(b"PK\x03\x04 no such thing")
    intake = Intake()
    assert not list(read_folder(tmp_path, intake))
    assert [error.what.split(":")[0] for error in intake.skipped] == [
        "pandoc cannot read it",
        "the PDF cannot be read",
        "pandoc cannot read it",
    ]


def test_without_the_extra_a_note_tells_how_to_install_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing else is affected."""
    word = FileType("word", OF_SUFFIX[".docx"].read, "no_such_package")
    monkeypatch.setitem(file_types.OF_SUFFIX, ".docx", word)
    (tmp_path / "a.docx").touch()
    (tmp_path / "b.txt").write_text("x")
    intake = Intake()
    assert [document.doc_id for _, document in read_folder(tmp_path, intake)] == ["b.txt"]
    assert dict(intake.notes) == {"word file not read: pip install 'birchbark[files]'": 1}


def test_pdf(tmp_path: Path) -> None:
    """Pages are separated by form feeds, and divided words are joined."""
    pytest.importorskip("pypdfium2")
    pyplot = pytest.importorskip("matplotlib.pyplot")
    from matplotlib.backends.backend_pdf import PdfPages

    with PdfPages(tmp_path / "a.pdf", metadata={"Title": "Birch  bark"}) as pages:
        for text in ("The bark is white.", "It peels easily."):
            figure = pyplot.figure()
            figure.text(0.1, 0.5, text)
            pages.savefig(figure)
            pyplot.close(figure)
    ((_, document),) = read_folder(tmp_path, Intake(skip_bad=False))
    assert (document.title, document.fields["type"]) == ("Birch bark", "pdf")
    pyplot.figure().savefig(tmp_path / "a.pdf", metadata={"Title": "(anonymous)"})
    ((_, untitled),) = read_folder(tmp_path, Intake(skip_bad=False))
    assert untitled.title == ""
    assert [page.strip() for page in document.text.split(PAGE_BREAK)] == [
        "The bark is white.",
        "It peels easily.",
    ]


def test_manual_pages(tmp_path: Path) -> None:
    """Macros of man or mdoc tell them; other files with a number as their suffix are not read."""
    pytest.importorskip("pypandoc")
    page = '.\\" comment\n.TH LS 1 2026\n.SH NAME\nls \\- list \\fIdirectory\\fR contents\n'
    (tmp_path / "ls.1").write_text(page)
    (tmp_path / "cat.1").write_text(
        ".Dd May 1, 2026\n.Dt CAT 1\n.Os\n.Sh NAME\n.Nm cat\n.Nd join files\n"
    )
    (tmp_path / "libfoo.so.1").write_bytes(b"\x7fELF")
    cat, ls = (document for _, document in read_folder(tmp_path, Intake(skip_bad=False)))
    assert (ls.title, ls.text) == ("LS(1)", "NAME\n\nls - list directory contents")
    assert "join files" in cat.text


def test_notebooks_keep_prose_and_code(tmp_path: Path) -> None:
    """Prose, code and raw cells stay in their order."""
    pytest.importorskip("pypandoc")
    cells = [
        {"cell_type": "markdown", "metadata": {}, "source": ["Load the *bark*."]},
        {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": [],
         "source": ["load('bark')"]},
        {"cell_type": "raw", "metadata": {"raw_mimetype": "text/latex"}, "source": ["canoe"]},
    ]  # fmt: skip
    notebook = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    text = read(tmp_path, "a.ipynb", json.dumps(notebook)).text
    assert text.split() == ["Load", "the", "bark.", "load('bark')", "canoe"]


def test_org_files_keep_what_is_not_exported(tmp_path: Path) -> None:
    """Archived sections, drawers and code are read; comments are not, as in other types."""
    pytest.importorskip("pypandoc")
    text = (
        "\ufeff:PROPERTIES:\n:ID: a\n:END:\n#+TITLE: Bark\n* One\n:LOGBOOK:\n- peeled\n:END:\n"
        "# comment\n* Two :ARCHIVE:\nold\n* Three :noexport:\nprivate\n"
        "#+begin_src sh -n :exports none\nboil\n#+end_src\n"
        "#+BEGIN_EXPORT latex\ncanoe\n#+END_EXPORT\n@@latex:dried@@\n"
    )
    own = "#+options: toc:nil arch:nil d:nil\n#+EXCLUDE_TAGS: ARCHIVE\n#+select_tags: noexport\n"
    words = "One peeled Two ARCHIVE old Three noexport private boil canoe dried"
    for settings in ("", own):
        document = read(tmp_path, "a.org", text.replace("#+TITLE", f"{settings}#+TITLE"))
        assert document.title == "Bark"
        assert document.text.split() == words.split()


@pytest.mark.parametrize(
    ("text", "title", "rest"),
    [
        ("Birch bark\n==========\n\nA text.\n", "Birch bark", "A text."),
        ("====\nBark\n====\nA text.", "Bark", "A text."),
        (".. a comment\n\nBark\n----\nA text.", "Bark", ".. a comment\n\nA text."),
        ("A text.\n--\nmore", "", "A text.\n--\nmore"),
        ("====  ====\na     b\n====  ====", "", "====  ====\na     b\n====  ===="),
        ("A text.", "", "A text."),
    ],
)
def test_the_title_of_restructured_text(tmp_path: Path, text: str, title: str, rest: str) -> None:
    """The first line that is underlined in its whole length."""
    document = read(tmp_path, "a.rst", text)
    assert (document.title, document.text) == (title, rest)


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("a.csv", "shop,city\nBirch,Bonn\n\nBark, \n", "shop: Birch; city: Bonn\n\nshop: Bark"),
        ("a.csv", "shop;city\n\"Birch; Sons\";Bonn", "shop: Birch; Sons; city: Bonn"),
        ("a.tsv", "id\tnote\nx\ttwo\ny\t\"a\nb\"", "id: x; note: two\n\nid: y; note: a b"),
        ("a.csv", "1,2\n3,4", "1; 2\n\n3; 4"),
        ("a.csv", "a,a\nb,c", "a; a\n\nb; c"),
        ("a.csv", "a,b\n1,2,3", "a: 1; b: 2; 3"),
        ("a.csv", ",name,city\n0,Eve,Bonn\n1,,Rome", "0; name: Eve; city: Bonn\n\n1; city: Rome"),
        ("a.csv", "name,,city\nEve,x,Bonn", "name; city\n\nEve; x; Bonn"),
        ("a.csv", "note\nof bees\nof ants", "note: of bees\n\nnote: of ants"),
        ("a.csv", "", ""),
    ],
)  # fmt: skip
def test_rows_of_tables(tmp_path: Path, name: str, text: str, expected: str) -> None:
    """Each is a paragraph, with the names of the first row if that looks like names."""
    if not text:
        (tmp_path / name).write_text(text)
        assert [d.text for _, d in read_folder(tmp_path, Intake())] in ([], [""])
        return
    document = read(tmp_path, name, text)
    assert (document.text, document.fields["type"]) == (expected, "table")


def test_a_row_is_evidence(tmp_path: Path) -> None:
    """A table's rows are segments of their own."""
    rows = [f"shop {n},street {n}" for n in range(40)]
    document = read(tmp_path, "a.csv", "\n".join(["shop,street", *rows]))
    found = [segment.text for segment in sentences(document)]
    assert "shop: shop 7; street: street 7" in found


def table(tmp_path: Path, text: str, name: str = "t.csv") -> list[str]:
    """Return the paragraphs of a table."""
    (tmp_path / name).write_text(text, "utf-8", newline="")
    (document,) = [d for _, d in read_folder(tmp_path, Intake())]
    return document.fields["text"].split("\n\n")


def test_cells_with_other_line_breaks_stay_whole(tmp_path: Path) -> None:
    """pandas writes U+2028 and vertical tabs without quotation marks."""
    rows = table(tmp_path, "id,comment,place\r\n1,first\u2028second,Bonn\r\n2,a\x0bb,Trier\r\n")
    assert rows == [
        "id: 1; comment: first second; place: Bonn",
        "id: 2; comment: a b; place: Trier",
    ]


def test_the_delimiter_that_excel_states(tmp_path: Path) -> None:
    """Its line is no row."""
    assert table(tmp_path, "sep=;\nname;price\nwidget;12\n") == ["name: widget; price: 12"]
    assert table(tmp_path, "sep=\t\r\nname\tprice\r\na;b\t12\r\n") == ["name: a;b; price: 12"]


def test_commas_of_decimal_numbers_divide_no_cells(tmp_path: Path) -> None:
    """They may be more than the semicolons, and as many in each row."""
    assert table(tmp_path, "12:00;21,5;1013,2\n13:00;22,0;1012,9\n") == [
        "12:00; 21,5; 1013,2",
        "13:00; 22,0; 1012,9",
    ]
    assert table(tmp_path, "a;b\tc\td\n1;2\tx\ty\n") == ["a;b: 1;2; c: x; d: y"]
    assert table(tmp_path, "a,b;c\n1,2;3\n") == ["a: 1; b;c: 2;3"]


def test_an_immense_cell_is_read(tmp_path: Path) -> None:
    """Texts of articles exceed Python's limit; a quotation mark that is not closed is a letter."""
    limit = csv.field_size_limit(131_072)  # the default, which other libraries change
    try:
        cell = "bark " * 40_000
        rows = table(tmp_path, f'id,text\n1,{cell}\n2,"bee\n3,{cell}\n')
    finally:
        csv.field_size_limit(limit)
    assert rows == [
        f"id: 1; text: {cell.strip()}",
        'id: 2; text: "bee',
        f"id: 3; text: {cell.strip()}",
    ]


def test_a_quotation_mark_that_is_not_closed(tmp_path: Path) -> None:
    """It does not swallow the rows after it."""
    rows = table(tmp_path, 'id\ttext\n1\t"No end\n2\tb\n', "t.tsv")
    assert rows == ['id: 1; text: "No end', "id: 2; text: b"]


def test_two_quotation_marks_that_are_not_closed(tmp_path: Path) -> None:
    """Between tabs, they do not make one row of all lines between them."""
    rows = table(tmp_path, 'id\ttext\n1\t"No end\n2\tb\n3\t"None\n', "t.tsv")
    assert rows == ['id: 1; text: "No end', "id: 2; text: b", 'id: 3; text: "None']


def test_rows_before_the_names_of_columns(tmp_path: Path) -> None:
    """A title, the facts of an account and a total neither hide the delimiter nor give names."""
    assert table(tmp_path, "Report 2020\n\nname;amount\nRent;1.200,50\nFood;80\n") == [
        "Report 2020",
        "name: Rent; amount: 1.200,50",
        "name: Food; amount: 80",
    ]
    rows = ["Account;Birch", "day;text;sum", "1 May;Rent;-7,50", "2 May;Food;-3,10", ";;-10,60"]
    assert table(tmp_path, "\n".join(rows)) == [
        "Account; Birch",
        "day: 1 May; text: Rent; sum: -7,50",
        "day: 2 May; text: Food; sum: -3,10",
        "sum: -10,60",
    ]


def test_gaps_in_rows_keep_the_names_of_columns(tmp_path: Path) -> None:
    """Most rows may be narrower than the names; and some semicolons are punctuation."""
    assert table(tmp_path, "name,a,b\nx,1,\ny,2,\nz,,3\n") == [
        "name: x; a: 1",
        "name: y; a: 2",
        "name: z; b: 3",
    ]
    assert table(tmp_path, "note\nbees; ants\nof bark\nof birch\n") == [
        "note: bees; ants",
        "note: of bark",
        "note: of birch",
    ]


def test_sentences_are_no_names_of_columns(tmp_path: Path) -> None:
    """They would be repeated in each row, at any length."""
    long = "bark " * 30 + "of birch"
    for first in ("Bees dance.", "Bees dance to show the others a way", long):
        assert table(tmp_path, f"{first}\nThey hum.\n") == [first, "They hum."]
    assert table(tmp_path, f"d1,{long}\nd2,{long}\n") == [f"d1; {long}", f"d2; {long}"]


def test_a_question_of_a_survey_leaves_the_other_columns_their_names(tmp_path: Path) -> None:
    """It is given once, since it is too long to be repeated in each row."""
    question = "How often " + "very " * 20 + "happy?"
    rows = f"name,{question},city\nAnn,often,Bonn\nBob,,Rome\nCy,{'no ' * 90},\n"
    assert table(tmp_path, rows) == [
        question,
        "name: Ann; often; city: Bonn",
        "name: Bob; city: Rome",
        f"name: Cy; {'no ' * 89}no",
    ]


def test_the_text_of_a_table_with_names_is_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A small file could have a name of 100 characters for each of millions of cells."""
    monkeypatch.setattr(table_reader, "MAX_FILE", 300)
    (tmp_path / "t.csv").write_text("n" * 100 + ",b\n" + "x,y\n" * 5)
    intake = Intake()
    ((_, document),) = read_folder(tmp_path, intake)
    assert document.text == "\n\n".join(["n" * 100 + ": x; b: y"] * 2)
    assert dict(intake.notes) == {"table not read after 300 characters, with the columns' names": 1}
