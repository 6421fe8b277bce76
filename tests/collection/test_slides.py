"""Is all text of slides read, in their order, with the notes of the speaker?"""

from __future__ import annotations

import io
import zipfile
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from birchbark.collection.file_readers import xml_parts
from birchbark.collection.file_readers.file import File
from birchbark.collection.file_readers.pdf import PAGE_BREAK
from birchbark.collection.file_readers.slides import read_odp, read_pptx
from birchbark.collection.files.folder import read_folder
from birchbark.collection.parsing.intake import Intake
from birchbark.errors import InputError
from birchbark.records import Document
from office_files import SLIDE, odp, pptx, relations, shape, zipped

TABLE = (
    "<p:graphicFrame><a:tbl><a:tr><a:tc><a:txBody><a:p><a:r><a:t>Lamp</a:t></a:r></a:p></a:txBody>"
    "</a:tc><a:tc><a:txBody><a:p><a:r><a:t>12</a:t></a:r></a:p></a:txBody></a:tc></a:tr></a:tbl>"
    "</p:graphicFrame>"
)
TEXT = "<draw:frame><draw:text-box>{}</draw:text-box></draw:frame>"


def read(folder: Path, raw: bytes, name: str = "a.pptx") -> Document:
    """Return the one presentation that is written to `folder`."""
    (folder / name).write_bytes(raw)
    ((_, document),) = read_folder(folder, Intake(skip_bad=False))
    return document


def test_shapes_groups_tables_and_notes(tmp_path: Path) -> None:
    """Slides are read in their order, not that of their file names; alternatives are read once."""
    group = f"<p:grpSp>{shape('Grouped')}<p:grpSp>{shape('Nested')}</p:grpSp></p:grpSp>"
    runs = "<p:sp><a:p><a:r><a:t>Big </a:t></a:r><a:r><a:t>lam</a:t></a:r><a:r><a:t>ps</a:t></a:r>"
    more = f"{runs}<a:br/><a:r><a:t>and chairs</a:t></a:r></a:p></p:sp>"
    either = (
        f"<mc:AlternateContent><mc:Choice>{shape('New')}</mc:Choice>"
        f"<mc:Fallback>{shape('New, for old programs')}</mc:Fallback></mc:AlternateContent>"
    )
    number = '<p:sp><a:p><a:fld type="slidenum"><a:t>7</a:t></a:fld></a:p></p:sp>'
    first = shape("Our shop") + group + TABLE + more + either + number
    raw = pptx([first, shape("Second")], notes=shape("Say hello.") + number)
    document = read(tmp_path, raw)
    assert (document.title, document.fields["type"]) == ("Our shop", "powerpoint")
    one, two = document.text.split(PAGE_BREAK)
    assert one.strip().split("\n\n") == [
        "Grouped", "Nested", "Lamp; 12", "Big lamps\nand chairs", "New", "Say hello.",
    ]  # fmt: skip
    assert two == "Second"


def test_sections_list_the_slides_a_second_time() -> None:
    """They count neither as slides nor against the limit."""
    with zipfile.ZipFile(io.BytesIO(pptx([shape("One"), shape("Two")]))) as archive:
        parts = {name: archive.read(name).decode() for name in archive.namelist()}
    listed = '<p14:sectionLst xmlns:p14="urn:p14"><p14:section><p14:sldIdLst>'
    listed += '<p14:sldId id="256"/><p14:sldId id="257"/></p14:sldIdLst></p14:section>'
    parts["ppt/presentation.xml"] = parts["ppt/presentation.xml"].replace(
        "</p:presentation>", f"{listed}</p14:sectionLst></p:presentation>"
    )
    assert read_pptx(File(Path("a.pptx"), zipped(parts), Intake())) == {
        "title": "One",
        "text": f"\n{PAGE_BREAK}Two",
    }


@pytest.mark.parametrize(
    ("stated", "title"), [("Plan", "Plan"), ("PowerPoint Presentation", "One")]
)
def test_the_title_is_that_of_the_properties(tmp_path: Path, stated: str, title: str) -> None:
    """If a program wrote that title, the first line of the slides is the title instead."""
    document = read(tmp_path, pptx([shape("One", "Two")], title=stated))
    assert document.title == title
    assert document.text == ("One\n\nTwo" if title == "Plan" else "Two")


def test_words_of_charts_and_diagrams(tmp_path: Path) -> None:
    """They are in other parts; the numbers of a chart mean little without it."""
    chart = (
        '<c:chart xmlns:c="http://schemas.openxmlformats.org/drawingml/2006/chart"><c:strCache>'
        "<c:pt><c:v>Lamps</c:v></c:pt></c:strCache><c:numCache><c:pt><c:v>7</c:v></c:pt>"
        "</c:numCache></c:chart>"
    )
    with zipfile.ZipFile(io.BytesIO(pptx([shape("Sales")]))) as archive:
        parts = {name: archive.read(name).decode() for name in archive.namelist()}
    parts["ppt/slides/_rels/slide1.xml.rels"] = relations(
        [("chart", "../charts/chart1.xml"), ("diagramData", "/ppt/diagrams/data1.xml")]
    )
    parts["ppt/charts/chart1.xml"] = chart
    parts["ppt/diagrams/data1.xml"] = f"<d {SLIDE}>{shape('Buy', 'Sell')}</d>"
    assert read(tmp_path, zipped(parts)).text == "Lamps\n\nBuy\n\nSell"


def test_opendocument(tmp_path: Path) -> None:
    """Spans do not divide words; spaces, line breaks, tables and notes are read."""
    span = "<text:p>Bi<text:span>rch</text:span><text:s/>bark<text:line-break/>canoe</text:p>"
    table = (
        "<table:table><table:table-row><table:table-cell><text:p>Lamp</text:p></table:table-cell>"
        "<table:table-cell><text:p>12</text:p></table:table-cell></table:table-row></table:table>"
    )
    notes = f"<presentation:notes>{TEXT.format('<text:p>Say hello.</text:p>')}</presentation:notes>"
    number = "<text:p><text:page-number>&lt;number&gt;</text:page-number></text:p>"
    first = TEXT.format("<text:p>Our shop</text:p>") + TEXT.format(span) + table + notes + number
    document = read(tmp_path, odp([first, TEXT.format("<text:p>Second</text:p>")]), "a.odp")
    assert (document.title, document.fields["type"]) == ("Our shop", "opendocument")
    one, two = document.text.split(PAGE_BREAK)
    assert one.strip().split("\n\n") == ["Birch bark\ncanoe", "Lamp; 12", "Say hello."]
    assert two == "Second"


def test_a_presentation_that_unpacks_to_too_much(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No more of it is unpacked than the limit."""
    monkeypatch.setattr(xml_parts, "MOST_BYTES", 100_000)
    with pytest.raises(InputError, match=r"too large for one document: .* and 100,000 bytes"):
        read(tmp_path, odp([" " * 1_000_000]), "a.odp")


def test_entities_are_refused(tmp_path: Path) -> None:
    """A small file could become large by them."""
    entities = '<!DOCTYPE d [<!ENTITY a "aaaaaaaaaa">]><d>&a;</d>'
    with pytest.raises(InputError, match="declares a document type"):
        read(tmp_path, zipped({"content.xml": entities}), "a.odp")


@pytest.mark.parametrize("parts", [{}, {"ppt/presentation.xml": "<p"}, {"content.xml": "x"}])
def test_damaged_presentations_are_errors(parts: dict[str, str]) -> None:
    """Parts are missing, or are no XML."""
    for reader in (read_odp, read_pptx):
        with pytest.raises(InputError):
            reader(File(Path("a"), zipped(parts), Intake()))


@given(st.data())
def test_any_change_of_bytes_is_read_or_an_error(data: st.DataObject) -> None:
    """This holds for whatever strangers send."""
    raw = bytearray(pptx([shape("One")], notes=shape("Two")))
    for place in data.draw(st.lists(st.integers(0, len(raw) - 1), min_size=1, max_size=3)):
        raw[place] = data.draw(st.integers(0, 255))
    with suppress(InputError):
        assert set(read_pptx(File(Path("a"), bytes(raw), Intake()))) == {"title", "text"}
