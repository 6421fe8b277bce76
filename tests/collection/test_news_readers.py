"""How does the text of our NYT and Washington Post readers differ from that of ir_datasets?

The same fabricated articles, in the original file formats, go through both.
"""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from birchbark.collection.documents import read_collection
from birchbark.collection.ir_datasets import PREFIX
from birchbark.records import Document

ir_datasets = pytest.importorskip("ir_datasets", reason="ir_datasets is not installed")
pytest.importorskip("bs4", reason="ir_datasets needs beautifulsoup4 for these collections")

WAPO_FILE = "WashingtonPost.v2/data/TREC_Washington_Post_collection.v2.jl"
NITF = """<?xml version="1.0" encoding="UTF-8"?>
<nitf>
  <head><docdata><doc-id id-string="1000002"/></docdata></head>
  <body>
    <body.head>
      <hedline><hl1>Canoes &amp; Bees</hl1><hl2>OF THE RIVER</hl2></hedline>
      {abstract}
    </body.head>
    <body.content>
      <block class="lead_paragraph"><p>Bark floats.</p></block>
      {blocks}
    </body.content>
  </body>
</nitf>
"""
ABSTRACT = "<abstract><p>On bark; photo (S)</p></abstract>"
BLOCK = '<block class="full_text">\n  <p>Bark floats.</p>\n  <p>Bees &lt;fly&gt;.</p>\n</block>'

Read = Callable[[Any], Document]


def archive(name: str, content: bytes) -> bytes:
    """A .tgz with one file."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        member = tarfile.TarInfo(name)
        member.size = len(content)
        tar.addfile(member, io.BytesIO(content))
    return packed.getvalue()


class LocalFile:
    """Stands in for ir_datasets' download of a file."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    @contextmanager
    def stream(self) -> Iterator[io.BytesIO]:
        yield io.BytesIO(self._content)


class LocalDataset:
    """The part of ir_datasets' data sets that our reader uses."""

    def __init__(self, docs: Any) -> None:
        self.docs_iter = docs._docs_iter

    def has_docs(self) -> bool:
        return True


def through_ir_datasets(docs: Any) -> Document:
    """The document that `ir_datasets:ID` gives."""
    known = ir_datasets.registry._registered
    known["birchbark-news"] = LocalDataset(docs)
    try:
        (document,) = read_collection(f"{PREFIX}birchbark-news")
    finally:
        del known["birchbark-news"]
    return document


def their_nyt(nitf: str) -> Document:
    """An article of the New York Times, read by ir_datasets."""
    from ir_datasets.datasets.nyt import NytDocs

    day = archive("01/1000002.xml", nitf.encode())
    return through_ir_datasets(NytDocs(LocalFile(archive("nyt_corpus/data/1998/01.tgz", day))))


@pytest.fixture
def our_nyt(tmp_path: Path) -> Read:
    """An article of the New York Times, read by us."""

    def read(nitf: str) -> Document:
        (tmp_path / "1000002.xml").write_text(nitf)
        (document,) = read_collection(str(tmp_path / "1000002.xml"), format_name="nyt")
        return document

    return read


def test_nyt_without_abstract_has_the_same_words(our_nyt: Read) -> None:
    """Id, title and words agree; only the white space between paragraphs differs."""
    nitf = NITF.format(abstract="", blocks=BLOCK)
    ours, theirs = our_nyt(nitf), their_nyt(nitf)
    assert (
        (ours.doc_id, ours.title) == (theirs.doc_id, theirs.title) == ("1000002", "Canoes & Bees")
    )
    assert ours.text.split() == theirs.text.split()
    assert ours.text == "Bark floats.\n\nBees <fly>."
    assert theirs.text == "Bark floats.\nBees <fly>."


def test_nyt_abstract_is_ours_alone(our_nyt: Read) -> None:
    """ir_datasets reads the headline and the full text, but no abstract."""
    nitf = NITF.format(abstract=ABSTRACT, blocks=BLOCK)
    assert our_nyt(nitf).text == "On bark; photo (S)\n\n" + our_nyt(nitf.replace(ABSTRACT, "")).text
    assert "photo" not in their_nyt(nitf).text


def test_nyt_paragraphs_on_one_line_stay_separate(our_nyt: Read) -> None:
    """ir_datasets joins the last word of a paragraph to the first of the next."""
    nitf = NITF.format(abstract="", blocks=BLOCK.replace("\n  ", ""))
    assert their_nyt(nitf).text == "Bark floats.Bees <fly>."
    assert our_nyt(nitf).text == "Bark floats.\n\nBees <fly>."


def test_nyt_full_text_in_several_blocks(our_nyt: Read) -> None:
    """ir_datasets reads the first block only."""
    nitf = NITF.format(abstract="", blocks=BLOCK + BLOCK.replace("Bark floats", "The end"))
    assert "The end." in our_nyt(nitf).text
    assert "The end." not in their_nyt(nitf).text


def post(*contents: dict[str, Any], title: str = "Canoes") -> str:
    """An article of the Washington Post, as a line of JSON."""
    article = {"id": "b2e8", "article_url": "", "title": title, "author": ""}
    return json.dumps({**article, "contents": contents})


def paragraph(content: str, mime: str = "text/html") -> dict[str, Any]:
    return {"type": "sanitized_html", "mime": mime, "content": content}


def their_wapo(line: str) -> Document:
    """An article of the Washington Post, read by ir_datasets."""
    from ir_datasets.datasets.wapo import WapoDocs

    return through_ir_datasets(WapoDocs(LocalFile(archive(WAPO_FILE, line.encode())), WAPO_FILE))


@pytest.fixture
def our_wapo(tmp_path: Path) -> Read:
    """An article of the Washington Post, read by us."""

    def read(line: str) -> Document:
        (tmp_path / "collection.jl").write_text(line + "\n")
        (document,) = read_collection(str(tmp_path / "collection.jl"))
        return document

    return read


def test_wapo_paragraphs_have_the_same_words(our_wapo: Read) -> None:
    """Paragraphs are plain text or one element; one line break or two stand between them."""
    line = post(
        {"type": "kicker", "mime": "text/plain", "content": "Rivers"},
        paragraph("<p>Bark <a href='x'>floats</a>.</p>"),
        paragraph("Bees fly.", "text/plain"),
    )
    ours, theirs = our_wapo(line), their_wapo(line)
    assert (ours.doc_id, ours.title) == (theirs.doc_id, theirs.title) == ("b2e8", "Canoes")
    assert ours.text == "Bark floats.\n\nBees fly."
    assert theirs.text == "Bark floats.\nBees fly."


def test_wapo_captions_and_tweets_are_theirs_alone(our_wapo: Read) -> None:
    """ir_datasets adds the words of pictures, films and tweets to the body."""
    line = post(
        paragraph("<p>Bark floats.</p>"),
        {"type": "image", "imageURL": "i", "fullcaption": "A canoe"},
        {"type": "video", "contenturl": "v", "blurb": "A film"},
        {"type": "tweet", "content": {"text": "Seen", "id_str": "1", "user": {"screen_name": "x"}}},
    )
    assert our_wapo(line).text == "Bark floats."
    assert their_wapo(line).text == "Bark floats.\nA canoe\nA film\nSeen"


def test_wapo_html_is_read_as_html(our_wapo: Read) -> None:
    """ir_datasets parses it as XML: text outside an element and HTML's entities are lost."""
    line = post(
        paragraph("Bark <i>floats</i>."), paragraph("<p>A &mdash; B</p>"), title="Bees &amp; bark"
    )
    ours, theirs = our_wapo(line), their_wapo(line)
    assert ours.text == "Bark floats.\n\nA — B"
    assert "Bark" not in theirs.text and "—" not in theirs.text
    assert (ours.title, theirs.title) == ("Bees & bark", "Bees &amp; bark")
