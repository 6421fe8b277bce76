"""Is a file of any type read or refused, whatever is changed in it?"""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import zipfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import ncompress
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_mail import message
from test_office import docx, paragraph, text_box
from test_pdf import drawn, pdf

from birchbark.collection.file_readers.file import Contents, File
from birchbark.collection.file_readers.file_types import file_type, type_by_contents
from birchbark.collection.files import isolated_reader
from birchbark.collection.files.file_documents import parts_of
from birchbark.collection.files.isolated_reader import IsolatedReader
from birchbark.collection.parsing.intake import Intake
from birchbark.collection.parsing.lines import read_decompressed
from birchbark.records import Document
from fuzzing import broken, fuzz, is_read, long_bytes
from growth import FASTER_THAN_SQUARE, growth
from office_files import OPEN, odp, ods, pptx, shape, xlsx, zipped

PAGE = (
    "<!DOCTYPE html><html><head><title>Birch &amp; bark</title><meta charset=utf-8><style>p{}"
    "</style></head><body><nav>Home</nav><h1>Canoes</h1><p id=a>Of <b>birch</b>.<br>It rides.</p>"
    "<table><tr><th>River<td>1</table><ul><li>one<li>two</ul><script>x</script><!-- no --></body>"
)
MARKDOWN = (
    "---\ntitle: Birch\ntags: [a, 'b c']\nabout: >\n  folded\n  text\n---\n\n# Uses of *bark*\n\n"
    "See [it](x.md), ![a canoe](y.png) &eacute;.\n\n```py\n# code\n```\n\nBark\n====\n- one\n"
)
CELLS = (
    "<table:table-row><table:table-cell><text:p>River</text:p></table:table-cell></table:table-row>"
)
NOTEBOOK = {
    "cells": [
        {"cell_type": "markdown", "metadata": {}, "source": ["Load the *bark*."]},
        {"cell_type": "code", "execution_count": 1, "metadata": {}, "outputs": [], "source": "x"},
    ],
    "metadata": {},
    "nbformat": 4,
    "nbformat_minor": 5,
}  # fmt: skip


def mails() -> Iterator[bytes]:
    """Yield a message with a page, a table and a message attached, and a plain one."""
    plain, whole = message("Größe"), message("Baskets", "See the page.\n")
    whole.add_alternative(PAGE, subtype="html")
    whole.add_attachment("a,b\n1,2\n", subtype="csv", filename="ä.csv")
    whole.add_attachment(plain)
    yield from (whole.as_bytes(), plain.as_bytes())


def odt() -> bytes:
    """Return a text with a heading, a box and an annotation."""
    body = (
        "<text:h>Birch</text:h><text:p>Bark.<office:annotation><text:p>Why?</text:p>"
        "</office:annotation><draw:text-box><text:p>A box.</text:p></draw:text-box></text:p>"
    )
    content = f"<office:body><office:text>{body}</office:text></office:body>"
    return zipped(
        {
            "mimetype": "application/vnd.oasis.opendocument.text",
            "content.xml": f"<office:document-content {OPEN}>{content}</office:document-content>",
            "styles.xml": f"<office:document-styles {OPEN}/>",
            "meta.xml": f"<office:document-meta {OPEN}/>",
        }
    )


def epub() -> bytes:
    """Return a book of one chapter."""
    package = (
        '<package xmlns="http://www.idpf.org/2007/opf" version="3.0"><metadata/><manifest>'
        '<item id="a" href="a.xhtml" media-type="application/xhtml+xml"/></manifest>'
        '<spine><itemref idref="a"/></spine></package>'
    )
    container = (
        '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container" version="1.0">'
        '<rootfiles><rootfile full-path="a.opf" media-type="application/oebps-package+xml"/>'
        "</rootfiles></container>"
    )
    chapter = '<html xmlns="http://www.w3.org/1999/xhtml"><body><p>Birch.</p></body></html>'
    parts = {"META-INF/container.xml": container, "a.opf": package, "a.xhtml": chapter}
    return zipped({"mimetype": "application/epub+zip", **parts})


MAILS = list(mails())
OWN: dict[str, list[bytes]] = {  # files that are read by code of this package, in Python
    "a.txt": [b"A canoe of birch bark.\n\nIt rides\tthe ri\xad\nver.", "Größe".encode("utf-16")],
    "a.md": [MARKDOWN.encode(), b'+++\ntitle = "Birch"\n[x]\ny = 1\n+++\n\nText.'],
    "a.rst": [b"====\nBark\n====\n\nA text.\n\n.. note:: no\n\nMore\n----\nabc"],
    "a.html": [PAGE.encode()],
    "a.csv": [b'shop;city\n"Birch; Sons";Bonn\n;Trier\n', b"sep=,\na,b\n1,\"x\ny\"\n"],
    "a.py": [b"# coding: latin-1\ndef bark():\n    return 'birch'\n"],
    "a.eml": MAILS,
    "a.mbox": [b"From a@b Fri\n" + b"\n\nFrom c@d Sat\n".join(MAILS)],
    "README": [b"# Read me\n\nFrom here on.\n", b"From a\nSubject: one\n\nText.\n"],
    "a.pptx": [pptx([shape("Birch", "Bark"), shape("More")], notes=shape("Say"), title="Uses")],
    "a.odp": [odp(["<draw:text-box><text:p>Birch<text:s/>bark</text:p></draw:text-box>"])],
}  # fmt: skip
OTHERS: dict[str, list[bytes]] = {  # by libraries, in a process of its own
    "a.pdf": [pdf(drawn((60, 700, "Birch bark")), drawn((60, 700, "More")))],
    "a.xlsx": [xlsx({"March": {"A1": "Item", "B1": "Count", "A2": "Lamp", "B2": 12.0}, "B": {}})],
    "a.ods": [ods(CELLS)],
    "a.docx": [docx(paragraph("Birch", text_box("Box")), header1=paragraph("Bark"))],
    "a.odt": [odt()],
    "a.epub": [epub()],
    "a.rtf": [rb"{\rtf1\ansi{\info{\title Birch}}\b Bark\b0\par It\'e9 \u9731? rides.\par}"],
    "a.ipynb": [json.dumps(NOTEBOOK).encode()],
    "a.tex": [rb"\documentclass{article}\title{Birch}\begin{document}\section{A}$x$\end{document}"],
    "a.org": [b"#+TITLE: Birch\n* Uses\n- one /two/ [[x][y]]\n| a | b |\n"],
    "ls.1": [b".TH LS 1 2026\n.SH NAME\nls \\- \\fIlist\\fR\n", b".Dd May 1\n.Dt CAT 1\n"],
}  # fmt: skip
ALL = OWN | OTHERS


@st.composite
def broken_file(draw: st.DrawFn, seeds: list[bytes]) -> bytes:
    """A file with changes: of an archive, mostly in one of its members."""
    raw = draw(st.sampled_from(seeds))
    if not raw.startswith(b"PK") or draw(st.integers(0, 4)) == 0:
        return draw(broken([raw]))
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    name = draw(st.sampled_from(sorted(parts)))
    parts[name] = draw(broken([parts[name]]))
    return zipped(parts)


def read(name: str, raw: bytes) -> list[object]:
    """Read a file and those in it by the readers of their types."""
    kind = file_type(Path(name))
    assert kind
    kind = type_by_contents(kind, raw)
    if kind.accepts and not kind.accepts(raw):
        return []
    found = kind.read(File(Path(name), raw, Intake()))
    contents = found if isinstance(found, Contents) else Contents(found)
    if contents.fields is not None:
        Document("d", contents.fields).fields  # noqa: B018
    return [contents.fields, *contents.files]


@pytest.mark.parametrize("name", OWN)
@fuzz(12)
@given(data=st.data())
def test_readers_of_our_own(name: str, data: st.DataObject) -> None:
    """None raises an error of Python for `parts_of` to catch, which would not say what is wrong."""
    raw = data.draw(broken_file(OWN[name]))
    is_read(lambda: read(name, raw), "")
    parts = is_read(
        lambda: list(parts_of(File(Path(name), raw, Intake()), name, KINDS[name], {})), ""
    )
    assert parts is not None, "parts_of refuses"
    for part in parts:
        assert part.doc_id == name or part.doc_id.startswith(f"{name}/")
        assert isinstance(part.found, Document) or name in str(part.found)


KINDS = {name: kind for name in ALL if (kind := file_type(Path(name)))}


@pytest.mark.parametrize("name", OWN)
@fuzz(2)
@given(data=st.data())
def test_time_grows_with_the_length_of_a_file(name: str, data: st.DataObject) -> None:
    """Files of 20 and 80 KB are compared, most of which are one piece that is repeated."""
    if OWN[name][0].startswith(b"PK"):
        archives = [zipfile.ZipFile(io.BytesIO(raw)) for raw in OWN[name]]
        parts = {part: archives[0].read(part) for part in archives[0].namelist()}
        part = data.draw(st.sampled_from(sorted(parts)))
        short, long = (
            zipped(parts | {part: raw}) for raw in data.draw(long_bytes([parts[part]], 20_000))
        )
    else:
        short, long = data.draw(long_bytes(OWN[name], 20_000))
    ratio = growth(lambda raw: is_read(lambda: read(name, raw), ""), short, long)
    assert ratio < FASTER_THAN_SQUARE


@pytest.mark.parametrize("name", ALL)
@fuzz(1)
@given(data=st.data())
def test_a_process_of_its_own_reads_the_same(
    name: str, data: st.DataObject, reader: IsolatedReader
) -> None:
    """The process reads the next file as well, whatever was wrong with the one before."""
    raw = data.draw(broken_file(ALL[name]))
    found = list(reader.begin(Path(name), raw, name, {}, Counter()))
    if name in OWN:
        same = list(parts_of(File(Path(name), raw, Intake()), name, KINDS[name], {}))
        assert list(map(str, found)) == list(map(str, same))
    for part in found:
        assert isinstance(part.found, Document) or name in str(part.found)
    [(_, document)] = reader.begin(Path("b.txt"), b"Bark.", "b.txt", {}, Counter())
    assert isinstance(document, Document)
    assert document.text == "Bark."


@pytest.fixture(scope="module")
def reader() -> Iterator[IsolatedReader]:
    """A reader in a process with less memory and time than usual, so that tests are quick."""
    with pytest.MonkeyPatch.context() as patch, IsolatedReader() as made:
        patch.setattr(isolated_reader, "MOST_MEMORY", 1_500_000_000)
        patch.setattr(isolated_reader, "MOST_SECONDS", 20)
        yield made


TEXT = b"A canoe of birch bark. " * 20
COMPRESSED = {
    "gzip": gzip.compress(TEXT),
    "bzip2": bz2.compress(TEXT),
    "xz": lzma.compress(TEXT),
    "zstd": b"(\xb5/\xfd`\xcc\x00\xf5\x00\x00\xb8A canoe of birch bark. \x01\x00eU\x9dM",
    ".Z": ncompress.compress(TEXT),
}


@pytest.mark.parametrize("kind", COMPRESSED)
@fuzz(8)
@given(data=st.data())
def test_compressed_files(kind: str, data: st.DataObject, tmp_path: Path) -> None:
    """What is damaged is told; the checksum of .Z, which has none, cannot tell."""
    path = tmp_path / "a"
    path.write_bytes(data.draw(broken([COMPRESSED[kind]])))
    is_read(lambda: read_decompressed(path), path)


@pytest.mark.parametrize("name", ["a.txt", "a.py", "a.csv", "README", "a.rst", "a.md"])
@fuzz(8)
@given(data=st.data())
def test_no_word_of_a_text_is_lost(name: str, data: st.DataObject) -> None:
    """A word between blanks, anywhere in the file, is in the title, the text or another field."""
    raw = data.draw(broken_file(OWN[name][:1]))
    at = data.draw(st.integers(0, len(raw)))
    fields = is_read(lambda: read(name, raw[:at] + b" Zyx " + raw[at:]), "")
    if fields:
        assert "zyx" in str(fields[0]).lower()
