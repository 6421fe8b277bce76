"""Does every text file of a folder become a Document, and is every other file noted?"""

from __future__ import annotations

import gzip
import os
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from birchbark.collection.file_readers.file_types import OF_SUFFIX
from birchbark.collection.files import folder as folder_module
from birchbark.collection.files.folder import read_folder
from birchbark.collection.parsing import lines
from birchbark.collection.parsing.intake import Intake
from birchbark.errors import InputError
from birchbark.records import Document

BY_PANDOC = {".docx", ".pptx", ".odt", ".rtf", ".epub", ".ipynb", ".tex", ".org"}  # slow
LINE = st.text(st.characters(codec="utf-8", exclude_characters="\r\n\ufeff"), max_size=6)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for one file, rewritten by each example."""
    return tmp_path_factory.mktemp("folder")


def fill(folder: Path, files: Mapping[str, str | bytes]) -> Path:
    """Write `files` (name → contents) below `folder`."""
    for name, contents in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(contents if isinstance(contents, bytes) else contents.encode())
    return folder


def read(folder: Path, intake: Intake | None = None) -> list[Document]:
    """Return the documents below `folder`, with nothing but title and text."""
    documents = [document for _, document in read_folder(folder, intake or Intake())]
    return [Document(d.doc_id, {"title": d.title, "text": d.text}) for d in documents]


@given(st.lists(LINE, min_size=1).map("\n".join))
def test_plain_text_is_unchanged(folder: Path, text: str) -> None:
    """Blank and indented lines stay; only the last line break of the file is removed."""
    fill(folder, {"a.txt": f"{text}\n"})
    assert read(folder) == [Document("a.txt", {"title": "", "text": text})]


@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")  # test_lines: closed
@given(st.sampled_from(sorted({*OF_SUFFIX, "", ".1"} - BY_PANDOC)), st.binary())
def test_any_bytes_are_a_document_or_an_input_error(folder: Path, suffix: str, raw: bytes) -> None:
    """Each file is one document or one error, whatever its contents."""
    for old in folder.iterdir():
        old.unlink()
    fill(folder, {f"a{suffix}": raw})
    intake = Intake()
    documents = read(folder, intake)
    not_read = len(intake.skipped) + sum(c for n, c in intake.notes.items() if "not read" in n)
    assert len(documents) + not_read == 1


@given(
    st.lists(st.sampled_from(["a.txt", "b/a.md", "b.zip", ".c.txt", "d", ".git/x.md"]), unique=True)
)
def test_every_file_is_a_document_or_a_note(
    tmp_path_factory: pytest.TempPathFactory, names: list[str]
) -> None:
    """No file is ignored silently."""
    intake = Intake()
    documents = read(fill(tmp_path_factory.mktemp("files"), dict.fromkeys(names, "x")), intake)
    assert len(documents) + intake.notes.total() == len(names)


def test_files_of_other_types_are_noted(tmp_path: Path) -> None:
    """Each type has its own count, and so do hidden files."""
    files = dict.fromkeys(["a.zip", "b.zip", ".hidden.txt", ".git/a.txt", "README", "c.txt"], "x")
    intake = Intake()
    found = [d.doc_id for d in read(fill(tmp_path, {**files, "core": b"\0\1"}), intake)]
    assert found == ["README", "c.txt"]
    assert dict(intake.notes) == {
        "file of another type not read: .zip": 2,
        "file of another type not read: no suffix": 1,
        "hidden file not read": 1,
        "hidden folder not read": 1,
    }


def test_ids_are_paths_below_the_folder_in_order(tmp_path: Path) -> None:
    """Sorted by name, with slashes for nested folders; the place is the file."""
    fill(tmp_path, dict.fromkeys(["b.txt", "a/z.txt", "a/b/c.md"], "x"))
    located = list(read_folder(tmp_path, Intake()))
    assert [document.doc_id for _, document in located] == ["a/b/c.md", "a/z.txt", "b.txt"]
    assert located[0][0] == str(tmp_path / "a/b/c.md")


def test_white_space_in_names_is_percent_encoded(tmp_path: Path) -> None:
    """Runs and qrels are separated by white space; % is encoded, too, so that ids differ."""
    names = ["my notes/of may.txt", "tab\there.txt", "line\nend.txt", "tab%09here.txt"]
    fill(tmp_path, dict.fromkeys(names, "x"))
    ids = {document.doc_id for document in read(tmp_path)}
    assert ids == {
        "my%20notes/of%20may.txt",
        "tab%09here.txt",
        "line%0Aend.txt",
        "tab%2509here.txt",
    }


@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")  # test_lines: closed
def test_gzipped_files_are_decompressed(tmp_path: Path) -> None:
    """The suffix before .gz is the type; gzipped files of other types are noted as those types."""
    html = gzip.compress(b"<title>T</title>x")
    fill(
        tmp_path, {"a.html.gz": html, "b.txt": gzip.compress(b"y"), "c.tar.gz": b"", "d.gz": b"\0"}
    )
    intake = Intake()
    assert read(tmp_path, intake) == [
        Document("a.html.gz", {"title": "T", "text": "x"}),
        Document("b.txt", {"title": "", "text": "y"}),
    ]
    assert intake.notes.total() == 2


def test_suffixes_are_case_insensitive(tmp_path: Path) -> None:
    """.HTM and .TXT are read like .htm and .txt."""
    fill(tmp_path, {"A.HTM": "<title>T</title>x", "B.TXT": "y", "C.MD": "# H\nz"})
    assert [document.title for document in read(tmp_path)] == ["T", "", "H"]


def test_html_loses_its_markup(tmp_path: Path) -> None:
    """The title is separate, scripts are left out, blocks are separated by blank lines."""
    page = (
        "<!DOCTYPE html><html><head><title>Birch &amp; bark</title><style>p {}</style></head>"
        "<body><h1>One</h1><p>two <b>th</b>ree</p><script>if (a < b) {}</script><p>four</body>"
    )
    assert read(fill(tmp_path, {"a.html": page})) == [
        Document("a.html", {"title": "Birch & bark", "text": "One\n\ntwo three\n\nfour"})
    ]


@pytest.mark.parametrize(
    ("text", "title", "rest"),
    [
        ("# Birch bark\n\nA text.\n", "Birch bark", "A text."),
        ("\n\n##  Birch ##\nA text.", "Birch", "A text."),
        ("# Birch", "Birch", ""),
        ("#hashtag\nA text.", "", "#hashtag\nA text."),
        ("A text.", "", "A text."),
        ("# C#\nA text.", "C#", "A text."),
        ("# [Birch](b.md) [![CI](c.svg)](d) bark ![e](f)\nA text.", "Birch bark", "A text."),
        ("# [![Birch bark](logo.svg)](home)\nA text.", "Birch bark", "A text."),
    ],
)
def test_the_first_heading_of_markdown_is_its_title(
    tmp_path: Path, text: str, title: str, rest: str
) -> None:
    """The heading is not part of the text, so that no word counts twice."""
    assert read(fill(tmp_path, {"a.md": text})) == [
        Document("a.md", {"title": title, "text": rest})
    ]


@pytest.mark.parametrize("before", ["A word first.\n\n", "---\nlayout: post\n---\n"])
def test_a_heading_further_down_is_the_title_too(tmp_path: Path, before: str) -> None:
    """It may follow front matter or a paragraph."""
    assert read(fill(tmp_path, {"a.md": f"{before}# Birch\nA text."}))[0].title == "Birch"


def test_byte_order_mark_and_carriage_returns_are_removed(tmp_path: Path) -> None:
    """A heading after the mark is recognised."""
    fill(tmp_path, {"a.md": b"\xef\xbb\xbf# T\r\nx\r\ny\r\n"})
    assert read(tmp_path) == [Document("a.md", {"title": "T", "text": "x\ny"})]


def test_the_given_encoding_is_used(tmp_path: Path) -> None:
    """It applies to all files of the folder."""
    fill(tmp_path, {"a.txt": b"caf\xe9", "b.html": b"<p>caf\xe9"})
    assert [d.text for d in read(tmp_path, Intake(encoding="latin-1"))] == ["café", "café"]


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("cp1252", "Die Rinde der Birke ist weiß und läßt sich leicht abschälen."),
        ("cp1252", "It’s white — “peels easily”, people say, and it is sold for £2."),
        ("cp1251", "Кора берёзы белая и легко отделяется от ствола."),
        ("koi8-r", "Кора берёзы белая и легко отделяется от ствола."),
        ("shift_jis", "白樺の樹皮は白く、簡単に剥がれます。"),
        ("gb18030", "白桦树的树皮是白色的，很容易剥落。"),
        ("utf-16-le", "The bark of the birch is white."),  # without a byte order mark
        ("utf-16-be", "Кора берёзы белая и легко отделяется от ствола."),
    ],
)
def test_other_encodings_are_detected(tmp_path: Path, encoding: str, text: str) -> None:
    """The note tells which one, since it may be wrong."""
    fill(tmp_path, {"a.txt": text.encode(encoding), "b.txt": "weiß"})
    intake = Intake()
    assert [d.text for d in read(tmp_path, intake)] == [text, "weiß"]
    assert [note.startswith("not in UTF-8; read as") for note in intake.notes] == [True]


def test_a_stray_nul_is_no_evidence_of_utf_16(tmp_path: Path) -> None:
    """The words around it are found; a file in another encoding that has one is refused."""
    text = b"A \0canoe of birch bark.\n\nIt rides\tthe ri\xad\nver."
    fill(tmp_path, {"a.txt": text.replace(b"\xad", b""), "b.txt": text})
    intake = Intake(skip_bad=True)
    [document] = read(tmp_path, intake)
    assert document.text == text.decode("ascii", "ignore")
    assert [str(error).count("b.txt:3: wrong encoding") for error in intake.skipped] == [1]


def test_a_few_bytes_may_be_in_windows_1252(tmp_path: Path) -> None:
    """Texts of several sources may be joined in one file; otherwise the encoding is detected."""
    lines = ["Die Rinde der Birke ist weiß."] * 3 + ["Sie läßt sich abschälen."]
    mixed = [*(line.encode() for line in lines[:3]), lines[3].encode("cp1252")]
    fill(tmp_path, {"a.txt": b"\n".join(mixed)})
    intake = Intake()
    assert [d.text for d in read(tmp_path, intake)] == ["\n".join(lines)]
    assert dict(intake.notes) == {
        "file in UTF-8 with some bytes in another encoding, which were read as Windows-1252": 1
    }
    fill(tmp_path, {"a.txt": b"\n".join(mixed[2:])})
    intake = Intake()
    read(tmp_path, intake)
    assert [note.startswith("not in UTF-8; read as") for note in intake.notes] == [True]


def test_wrong_encoding_names_file_and_line(tmp_path: Path) -> None:
    """The position is within a line, so the error names the line."""
    fill(tmp_path, {"a.txt": b"one\ntwo\ncaf\xe9\n"})
    with pytest.raises(
        InputError, match=r"a\.txt:3: wrong encoding.*0xe9 at position 4 of the line"
    ):
        read(tmp_path, Intake(skip_bad=False, encoding="ascii"))


@pytest.mark.parametrize(
    "raw",
    [
        b'<meta charset="iso-8859-1"><p>caf\xe9 \x80',
        b"<META HTTP-EQUIV=Content-Type CONTENT='text/html; charset=latin1'><p>caf\xe9 \x80",
        b'<?xml version="1.0" encoding="windows-1252"?>\n<html><p>caf\xe9 \x80</p></html>',
        '<meta charset="utf-8"><p>caf\u00e9 \u20ac'.encode(),
        '<meta charset="shift_jis"><p>caf\u00e9 \u20ac'.encode("utf-8-sig"),  # the mark is right
        '<meta charset="utf-8"><p>caf\u00e9 \u20ac'.encode("utf-16"),
        '<meta charset="utf-16"><p>caf\u00e9 \u20ac'.encode(),  # cannot be true
        '<meta charset="unicode_escape"><p>caf\u00e9 \u20ac'.encode(),
        '<meta charset="no-such"><p>caf\u00e9 \u20ac'.encode(),
    ],
)
def test_html_is_read_in_the_encoding_that_it_declares(tmp_path: Path, raw: bytes) -> None:
    """ISO-8859-1 is Windows-1252, as in browsers; impossible and unknown encodings are not used."""
    fill(tmp_path, {"a.html": raw})
    assert [document.text.strip() for document in read(tmp_path)] == ["caf\u00e9 \u20ac"]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
@given(text=st.lists(LINE, min_size=1).map("\n".join))
def test_a_byte_order_mark_tells_the_encoding(folder: Path, encoding: str, text: str) -> None:
    """It takes precedence over the given encoding."""
    for old in folder.iterdir():
        old.unlink()
    fill(folder, {"a.txt": text.encode(encoding)})
    expected = [Document("a.txt", {"title": "", "text": text.removesuffix("\n")})]
    assert read(folder, Intake(encoding="latin-1")) == expected


def test_damage_after_a_byte_order_mark_is_told(tmp_path: Path) -> None:
    """An odd number of bytes cannot be UTF-16."""
    fill(tmp_path, {"a.txt": "one\ntwo".encode("utf-16") + b"x"})
    with pytest.raises(InputError, match=r"a\.txt: wrong encoding: expected UTF-16.*position 17"):
        read(tmp_path, Intake(skip_bad=False))


def test_a_false_declaration_does_not_prevent_another_encoding(tmp_path: Path) -> None:
    """Windows-1252 has no byte 0x81, and UTF-8 no single 0xe9."""
    page = '<meta charset="{}"><p>caf\u00e9 \x81'
    for name in ("iso-8859-1", "utf-8"):
        fill(tmp_path, {"a.html": page.format(name).encode("latin-1")})
        assert "caf\u00e9" in read(tmp_path, Intake(encoding="latin-1"))[0].text


def test_a_declaration_holds_for_markup_only(tmp_path: Path) -> None:
    """A text about HTML declares nothing."""
    fill(tmp_path, {"a.md": 'Write <meta charset="latin1">: caf\u00e9'})
    assert read(tmp_path)[0].text.endswith("caf\u00e9")


@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")  # test_lines: closed
def test_a_bad_file_is_skipped_and_listed(tmp_path: Path) -> None:
    """One damaged file does not prevent reading the others, unless that is asked for."""
    cut = gzip.compress(b"one\ntwo\n")[:-4]
    fill(tmp_path, {"a.txt": "x", "b.txt": b"\0\xff\1", "c.txt.gz": cut, "d.txt": "y"})
    with pytest.raises(InputError, match=r"b\.txt.*: wrong encoding"):
        read(tmp_path, Intake(skip_bad=False))
    intake = Intake()
    assert [document.doc_id for document in read(tmp_path, intake)] == ["a.txt", "d.txt"]
    assert [Path(error.where).name.split(".")[0] for error in intake.skipped] == ["b", "c"]


def test_a_file_that_unpacks_to_too_much_is_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No more of it is unpacked than the limit."""
    monkeypatch.setattr(lines, "MAX_FILE", 1000)
    zeros = gzip.compress(bytes(1_000_000))
    fill(tmp_path, {"a.txt.gz": zeros, "b.txt": "y" * 1000, "c.txt": "z" * 1001})
    (tmp_path / "d.txt.gz").write_bytes(gzip.compress(b"d"))
    os.truncate(tmp_path / "d.txt.gz", 1 << 40)  # zeros that need no space
    intake = Intake()
    assert [document.doc_id for document in read(tmp_path, intake)] == ["b.txt"]
    assert [error.wanted for error in intake.skipped] == 3 * ["at most 1,000 bytes, unpacked"]


def test_a_link_that_cannot_be_followed_is_left_out(tmp_path: Path) -> None:
    """It does not spoil the rest, nor does a time that no calendar has."""
    fill(tmp_path, {"a.txt": "x"})
    (tmp_path / "loop.txt").symlink_to("loop.txt")
    intake = Intake()
    (document,) = read(tmp_path, intake)
    assert document.doc_id == "a.txt"
    assert intake.notes == {"link to a folder, broken link or special file not read": 1}
    assert folder_module._date(10**22) == ""
    assert folder_module._date(0) == "1970-01-01"


def test_a_folder_that_cannot_be_read_is_listed(tmp_path: Path) -> None:
    """The list has its name and the reason."""
    fill(tmp_path, {"a.txt": "x", "b/c.txt": "y"})
    (tmp_path / "b").chmod(0)
    intake = Intake()
    try:
        documents = read(tmp_path, intake)
    finally:
        (tmp_path / "b").chmod(0o755)
    if len(documents) == 2:
        pytest.skip("this user may read everything")
    assert [str(error) for error in intake.skipped] == [
        f"{tmp_path / 'b'}: cannot be read: Permission denied"
    ]


def test_fields_about_the_file(tmp_path: Path) -> None:
    """The path as it is, and a date in UTC."""
    fill(tmp_path, {"my notes/a.MD": "# T\nx"})
    os.utime(tmp_path / "my notes/a.MD", (0, 86_399))
    assert dict(next(read_folder(tmp_path, Intake()))[1].fields) == {
        "title": "T",
        "text": "x",
        "path": "my notes/a.MD",
        "folder": "my notes",
        "type": "markdown",
        "modified": "1970-01-01",
        "size": "5",
    }


def test_the_language_is_recognised(tmp_path: Path) -> None:
    """Texts with a few words have a language; source code has none."""
    pytest.importorskip("py3langid")
    texts = {
        "de.txt": "Das Kanu aus Birkenrinde gleitet den Fluss hinunter, an der Brücke vorbei.",
        "en.txt": "The birch bark canoe glides down the river, past the old bridge of the village.",
        "short.txt": "A canoe.",
        "code.py": "canoe = 1  # The birch bark canoe glides down the river, past the bridge.\n",
        "zh.txt": "桦树皮独木舟顺着河流漂流而下，经过村庄的老桥，没有人注意到它，河水很平静，" * 3,
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    documents = {d.doc_id: d for _, d in read_folder(tmp_path, Intake())}
    languages = {name: document.fields.get("language") for name, document in documents.items()}
    assert languages == {
        "de.txt": "de", "en.txt": "en", "zh.txt": "zh", "short.txt": None, "code.py": None,
    }  # fmt: skip
