"""Are articles of the New York Times read from files, folders and archives?"""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from birchbark.collection.documents import read_collection
from birchbark.collection.nyt import parse_article
from birchbark.collection.parsing import lines
from birchbark.collection.parsing.intake import Intake
from birchbark.errors import InputError
from birchbark.records import Document

ARTICLE = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE nitf SYSTEM "http://www.nitf.org/IPTC/NITF/3.3/specification/dtd/nitf-3-3.dtd">
<nitf change.date="June 10, 2005" version="-//IPTC//DTD NITF 3.3//EN">
  <head>
    <title>Canoes &amp; bees</title>
    <docdata><doc-id id-string="{number}"/><doc.copyright holder="Nobody" year="2000"/></docdata>
  </head>
  <body>
    <body.head>
      <hedline><hl1>Canoes
        &amp; Bees</hl1><hl2>OF THE RIVER</hl2></hedline>
      <byline class="print_byline">By A. Writer</byline>
      <abstract><p>On bark; photo (S)</p></abstract>
    </body.head>
    <body.content>
      <block class="lead_paragraph"><p>LEAD</p></block>
      <block class="full_text"><p>Bark floats.</p><p>Bees &lt;fly&gt;.</p></block>
    </body.content>
  </body>
</nitf>
"""
TEXT = "On bark; photo (S)\n\nBark floats.\n\nBees <fly>."


def test_an_article() -> None:
    """It has headline, abstract and full text.

    The lead paragraph, which repeats the text, is left out.
    """
    assert parse_article(ARTICLE.format(number="1000002")) == Document(
        "1000002", {"title": "Canoes & Bees", "text": TEXT}
    )


def test_a_folder_with_archives(tmp_path: Path) -> None:
    """All articles in the order of names; files of other types are noted."""
    with tarfile.open(tmp_path / "01.tgz", "w:gz") as archive:
        for name, text in (("01/2.xml", ARTICLE.format(number="2")), ("01/toc.txt", "contents")):
            member = tarfile.TarInfo(name)
            member.size = len(text.encode())
            archive.addfile(member, io.BytesIO(text.encode()))
    (tmp_path / "3.xml").write_text(ARTICLE.format(number="3"))
    (tmp_path / "readme.pdf").write_text("no article")
    intake = Intake()
    documents = list(read_collection(str(tmp_path), intake, "nyt"))
    assert [document.doc_id for document in documents] == ["2", "3"]
    assert list(intake.notes) == [
        "file of another type, or link, in an archive not read",
        "file of another type not read: .pdf",
    ]
    assert [d.doc_id for d in read_collection(str(tmp_path / "01.tgz"), Intake())] == ["2"]


def test_errors(tmp_path: Path) -> None:
    """A truncated archive is an error, and so is an article without a number.

    The errors name the place.
    """
    (tmp_path / "cut.tgz").write_bytes(b"\x1f\x8b broken")
    with pytest.raises(InputError, match=r"cut\.tgz: broken archive"):
        list(read_collection(str(tmp_path / "cut.tgz"), Intake()))
    (tmp_path / "a.xml").write_text("<nitf></nitf>")
    with pytest.raises(InputError, match=r"a\.xml: article has no id.*doc-id"):
        list(read_collection(str(tmp_path / "a.xml"), Intake(), "nyt"))


def test_a_member_that_is_too_large_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An archive of a few bytes can have members that fill the memory."""
    monkeypatch.setattr(lines, "MAX_FILE", 5000)
    with tarfile.open(tmp_path / "01.tgz", "w:gz") as archive:
        for name, raw in (("2.xml", bytes(9000)), ("3.xml", ARTICLE.format(number="3").encode())):
            member = tarfile.TarInfo(f"01/{name}")
            member.size = len(raw)
            archive.addfile(member, io.BytesIO(raw))
    with pytest.raises(InputError, match=r"2\.xml.*too large"):
        list(read_collection(str(tmp_path / "01.tgz"), Intake()))
    intake = Intake(skip_bad=True)
    assert [d.doc_id for d in read_collection(str(tmp_path / "01.tgz"), intake)] == ["3"]
    assert len(intake.skipped) == 1
