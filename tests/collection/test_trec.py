"""Is TREC's SGML read correctly, and does every error name its line?"""

from __future__ import annotations

import contextlib
import gzip
import html
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from birchbark.collection import trec
from birchbark.collection.parsing import lines
from birchbark.collection.parsing.intake import Intake
from birchbark.collection.parsing.lines import UTF8_BOM
from birchbark.collection.trec import TITLE_TAGS, parse_document, read_trec
from birchbark.errors import InputError, MissingPackageError
from birchbark.records import Document

WORD = st.text(
    st.characters(codec="utf-8", categories=("L", "N", "P", "S")), min_size=1, max_size=5
)
TEXT = st.lists(st.lists(WORD, min_size=1).map(" ".join), max_size=3).map("\n".join)
PIECES = st.sampled_from(
    b"<DOC>\n|</DOC>\n|<DOCNO>|</DOCNO>|<TEXT>|</TEXT>\n|<TITLE>|</TITLE>|<!--|a|1|\n|&amp;".split(
        b"|"
    )
)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A path for one file, rewritten by each example."""
    return tmp_path_factory.mktemp("trec") / "file.trec"


def read(path: Path, sgml: str | bytes, intake: Intake | None = None) -> list[Document]:
    """Write `sgml` to a file and return its documents."""
    path.write_bytes(sgml if isinstance(sgml, bytes) else sgml.encode())
    return [document for _, document in read_trec(path, intake or Intake())]


def sgml(*documents: Document) -> str:
    """Return the documents as SGML."""
    return "".join(
        f"<DOC>\n<DOCNO> {html.escape(d.doc_id)} </DOCNO>\n<TITLE>{html.escape(d.title)}</TITLE>\n"
        f"<TEXT>\n{html.escape(d.text)}\n</TEXT>\n</DOC>\n\n"
        for d in documents
    )


@given(st.lists(st.tuples(st.lists(WORD).map(" ".join), TEXT), max_size=4))
def test_documents_round_trip(file: Path, values: list[tuple[str, str]]) -> None:
    """Titles and texts come back with their line breaks, in the order of the file."""
    documents = [
        Document(f"D-{number}", {"title": title, "text": text})
        for number, (title, text) in enumerate(values)
    ]
    assert read(file, sgml(*documents)) == documents


@given(st.lists(PIECES).map(b"".join) | st.binary().filter(lambda b: b[:2] != b"\x1f\x8b"))
def test_any_bytes_are_documents_or_an_input_error(file: Path, raw: bytes) -> None:
    """With skip_bad nothing is raised; without, only InputError."""
    intake = Intake(skip_bad=True)
    documents = read(file, raw, intake)
    try:
        assert read(file, raw) == documents
    except InputError:
        assert intake.skipped
    else:
        assert not intake.skipped


def test_a_document_that_would_fill_the_memory(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is refused or skipped; the others are read."""
    monkeypatch.setattr(trec, "MAX_FILE", 1000)
    large = "<DOC>\n<DOCNO>a</DOCNO>\n" + "x\n" * 100 + "</DOC>\n"
    small = "<DOC>\n<DOCNO>b</DOCNO>\nx\n</DOC>\n"
    with pytest.raises(InputError, match=r":17: the document is too large: expected at most 1,0"):
        read(file, large)
    intake = Intake(skip_bad=True)
    assert [document.doc_id for document in read(file, large + small, intake)] == ["b"]
    assert len(intake.skipped) == 1


@given(st.binary())
def test_text_between_documents_is_an_error(file: Path, raw: bytes) -> None:
    """Only blank lines and declarations are ignored."""
    intake = Intake(skip_bad=True)
    assert read(file, b"<DOC>\n<DOCNO>a</DOCNO>\n</DOC>\n" + raw, intake)[0].doc_id == "a"
    texts = [line.removeprefix(UTF8_BOM).strip() for line in raw.split(b"\n")]
    stray = [text for text in texts if text and not text.startswith(b"<")]
    assert bool(intake.skipped) >= bool(stray)


@pytest.mark.parametrize("tag", TITLE_TAGS)
def test_titles_have_many_tags(tag: str) -> None:
    """Each newspaper has its own tag; the title is one line without markup."""
    document = parse_document(
        f"<DOCNO>1</DOCNO>\n<{tag}>\n<P>A\n&amp; B</P>\n</{tag}>\n<TEXT>x</TEXT>"
    )
    assert document == Document("1", {"title": "A & B", "text": "x"})


def test_the_first_title_tag_of_the_list_wins() -> None:
    """The order of the list decides, not that of the document."""
    document = parse_document(
        "<DOCNO>1</DOCNO><TITLE>t</TITLE><HEADLINE>h</HEADLINE><TEXT>x</TEXT>"
    )
    assert document.title == "h"


def test_several_texts_are_joined_in_order() -> None:
    """Lead paragraphs, texts and captions in document order."""
    document = parse_document(
        "<DOCNO>1</DOCNO>\n<GRAPHIC>one</GRAPHIC>\n<TEXT>two <b>2</b></TEXT>\n<LP>three</LP>\n"
        "<TEXT TYPE=a>\n<P>four\n</P>\n<P>five</P></TEXT >\n<BYLINE>no</BYLINE>"
    )
    assert document.text == "one\n\ntwo 2\n\nthree\n\nfour\n\nfive"


def test_text_within_text_is_read_once() -> None:
    """A caption inside the text is a part of it."""
    document = parse_document("<DOCNO>1</DOCNO><TEXT>one <GRAPHIC>two</GRAPHIC> three</TEXT>")
    assert document.text == "one\n\ntwo\n\nthree"


def test_without_text_tags_all_but_number_and_title_is_text() -> None:
    """No document loses text because it lacks a tag."""
    document = parse_document(
        "<DOCNO>1</DOCNO>\n<HEAD>h</HEAD>\n<DATE>1994</DATE>\n<BODY>x &lt; y</BODY>\nz"
    )
    assert document == Document("1", {"title": "h", "text": "1994\n\nx < y\n\nz"})


def test_entities_and_case(tmp_path: Path) -> None:
    """Tags may be lower case and indented; numbers may have white space around them."""
    raw = "<?xml version='1.0'?>\n<!DOCTYPE x>\n  <doc>\n<docno>\n FT-1 \n</docno>\n<text>R&amp;D"
    documents = read(tmp_path / "c.trec", f"{raw} &#233;</text>\n</doc>\n")
    assert documents == [Document("FT-1", {"title": "", "text": "R&D é"})]


@pytest.mark.parametrize("number", ["", "<DOCNO></DOCNO>", "<DOCNO> </DOCNO>", "<DOCNO>1"])
def test_a_document_needs_a_number(tmp_path: Path, number: str) -> None:
    """The error names the line where the document starts."""
    with pytest.raises(InputError, match=r"c\.trec:2: document has no number: expected <DOCNO>"):
        read(tmp_path / "c.trec", f"\n<DOC>\n{number}\n<TEXT>x</TEXT>\n</DOC>\n")


def test_an_unclosed_document_is_an_error(tmp_path: Path) -> None:
    """It may be at the end or before another document; the error names its first line."""
    first = "<DOC>\n<DOCNO>1</DOCNO>\n"
    with pytest.raises(InputError, match=r":1: <DOC> is not closed at the end of the file"):
        read(tmp_path / "c.trec", first)
    with pytest.raises(InputError, match=r":1: <DOC> is not closed before the next <DOC>"):
        read(tmp_path / "c.trec", first + first + "</DOC>\n")


def test_after_an_unclosed_document_the_next_is_read(tmp_path: Path) -> None:
    """Skipping a bad document loses no good one."""
    intake = Intake(skip_bad=True)
    raw = "<DOC>\n<DOCNO>1</DOCNO>\n<DOC>\n<DOCNO>2</DOCNO>\n</DOC>\n<DOC>\n"
    assert [d.doc_id for d in read(tmp_path / "c.trec", raw, intake)] == ["2"]
    assert [error.where[-2:] for error in intake.skipped] == [":1", ":6"]


def test_text_outside_of_documents_is_refused(tmp_path: Path) -> None:
    """The error shows the line, so that files of another format are recognised."""
    with pytest.raises(
        InputError,
        match=r":1: text outside any document: expected <DOC> on a line of its own, found '{",
    ):
        read(tmp_path / "c.trec", '{"id": "a", "text": "x"}\n')


def test_wrong_encoding_names_the_line(tmp_path: Path) -> None:
    """The position is within a line, so the error names that line, not the document's first."""
    raw = b"<DOC>\n<DOCNO>1</DOCNO>\n<TEXT>\ncaf\xe9\n</TEXT>\n</DOC>\n"
    with pytest.raises(
        InputError, match=r"c\.trec:4: wrong encoding.*0xe9 at position 4 of the line"
    ):
        read(tmp_path / "c.trec", raw)
    assert read(tmp_path / "c.trec", raw, Intake(encoding="latin-1"))[0].text == "café"


@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")  # test_lines: closed
def test_a_folder_is_read_in_the_order_of_its_names(tmp_path: Path) -> None:
    """TREC's discs are nested folders, with gzipped files."""
    for name, doc_id in (("b/2", "B2"), ("a/1.gz", "A1"), ("c", "C")):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        raw = sgml(Document(doc_id, {"title": "", "text": "x"})).encode()
        (tmp_path / name).write_bytes(gzip.compress(raw) if name.endswith("gz") else raw)
    located = list(read_trec(tmp_path, Intake()))
    assert [document.doc_id for _, document in located] == ["A1", "B2", "C"]
    assert located[1][0] == f"{tmp_path / 'b' / '2'}:1"


@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")  # test_lines: closed
def test_a_damaged_file_of_a_folder_can_be_skipped(tmp_path: Path) -> None:
    """One truncated file does not prevent reading the others."""
    for name in ("1", "2", "3"):
        raw = sgml(Document(name, {"title": "", "text": "x"})).encode()
        (tmp_path / name).write_bytes(gzip.compress(raw)[:-4] if name == "2" else raw)
    intake, ids = Intake(skip_bad=True), set()
    with contextlib.suppress(InputError):
        for _, document in read_trec(tmp_path, intake):
            ids.add(document.doc_id)
    assert {"1", "3"} <= ids
    assert len(intake.skipped) == 1


def test_entities_of_the_federal_register() -> None:
    """Hyphens and blanks, also inside words; others are those of HTML."""
    document = parse_document(
        "<DOCNO>FR1</DOCNO><TEXT>iron&hyph;works&blank;and &sect; 2 &amp;hyph; &AMP;</TEXT>"
    )
    assert document.text == "iron-works and § 2 &hyph; &"


def test_files_of_a_folder_can_be_chosen(tmp_path: Path) -> None:
    """The patterns of the intake choose them; hidden files are not read."""
    for name in ("CR/1", "FT/1", "FT/2", "LA/.1"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        document = Document(name.replace("/", "-"), {"title": "", "text": "x"})
        (tmp_path / name).write_text(sgml(document))
    intake = Intake(exclude=("CR/", "2"))
    assert [document.doc_id for _, document in read_trec(tmp_path, intake)] == ["FT-1"]
    assert dict(intake.notes) == {
        "excluded folder not read": 1,
        "excluded file not read": 1,
        "hidden file not read": 1,
    }
    intake = Intake(include=("CR/",))
    assert [document.doc_id for _, document in read_trec(tmp_path, intake)] == ["CR-1"]


def test_a_folder_as_on_the_discs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Read-me files and tables are noted; files of compress(1) are unpacked."""
    (tmp_path / "FT").mkdir()
    (tmp_path / "FT" / "FT911_1").write_text(
        "<DOC>\n<DOCNO>FT911-1</DOCNO>\n<HEADLINE>\nFT  14 MAY 91 / Bees\n</HEADLINE>\n<TEXT>\n"
        "They dance.\n</TEXT>\n</DOC>\n"
    )
    (tmp_path / "FT" / "READMEFT").write_text("Nothing but words.\n")
    intake = Intake()
    documents = [document for _, document in read_trec(tmp_path, intake)]
    assert [(d.doc_id, d.text) for d in documents] == [("FT911-1", "They dance.")]
    assert dict(intake.notes) == {"file without <DOC> not read": 1}
    ncompress = pytest.importorskip("ncompress")
    whole = ncompress.compress(b"<DOC>\n<DOCNO>LA1</DOCNO>\n<TEXT>\nBark.\n</TEXT>\n</DOC>\n" * 9)
    (tmp_path / "FT" / "la010189.0z").write_bytes(whole)
    assert "LA1" in {document.doc_id for _, document in read_trec(tmp_path, Intake(skip_bad=True))}
    (tmp_path / "FT" / "la010189.0z").write_bytes(whole[:9] + b"\xff" * 9)
    with pytest.raises(InputError, match=r"la010189\.0z.*broken \.Z stream"):
        list(read_trec(tmp_path, Intake()))
    (tmp_path / "FT" / "la010189.0z").write_bytes(whole)
    with monkeypatch.context() as patched:
        patched.setattr(lines, "MAX_FILE", 50)
        with pytest.raises(InputError, match=r"la010189\.0z.*too large.*50 bytes, unpacked"):
            list(read_trec(tmp_path, Intake()))
    monkeypatch.setitem(sys.modules, "ncompress", None)
    with pytest.raises(MissingPackageError, match=r"birchbark\[files\].*gunzip"):
        list(read_trec(tmp_path, Intake()))


@pytest.mark.parametrize(
    "text",
    [
        "<DOC><DOCNO>1</DOCNO><TEXT>t</TEXT></DOC>\n",
        "\n" * 2000 + "<doc>\n<DOCNO>1</DOCNO>\n</doc>",
    ],
)
def test_every_file_with_a_document_is_read_or_refused(tmp_path: Path, text: str) -> None:
    """This holds however the file begins."""
    (tmp_path / "a").write_text(text)
    intake = Intake()
    with contextlib.suppress(InputError):
        assert list(read_trec(tmp_path, intake))
    assert not intake.notes


def test_a_web_page_is_read_whole() -> None:
    """An image's <text> is no element of TREC's; the header of the transfer is left out."""
    page = (
        "<DOCNO>G</DOCNO><DOCHDR>\nhttp://a.b/ Server: Apache\n</DOCHDR>\n<html><head><title>T"
        '</title></head><body>Tropical storm <svg><text x="1">logo</text></svg> hurricanes</body>'
        "</html>"
    )
    document = parse_document(page)
    assert document.title == "T"
    assert " ".join(document.text.split()) == "Tropical storm logo hurricanes"
