"""Is nothing in the files of word processors lost, and do they have titles?"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from birchbark.collection.file_readers.office import (
    MOST_NESTED,
    readable_parts,
    text_pandoc_omits,
    unboxed,
)
from birchbark.collection.files.folder import read_folder
from birchbark.collection.parsing.intake import Intake
from office_files import OPEN

pypandoc = pytest.importorskip("pypandoc")

SCHEMAS = "http://schemas.openxmlformats.org"
NAMESPACES = (
    f'xmlns:w="{SCHEMAS}/wordprocessingml/2006/main" '
    f'xmlns:mc="{SCHEMAS}/markup-compatibility/2006" '
    f'xmlns:r="{SCHEMAS}/officeDocument/2006/relationships" '
    'xmlns:wps="http://schemas.microsoft.com/office/word/2010/wordprocessingShape" '
    f'xmlns:a="{SCHEMAS}/drawingml/2006/main" '
    f'xmlns:wp="{SCHEMAS}/drawingml/2006/wordprocessingDrawing" '
    'xmlns:v="urn:schemas-microsoft-com:vml"'
)
TYPES = (
    f'<Types xmlns="{SCHEMAS}/package/2006/content-types">'
    '<Default Extension="rels" '
    'ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    '<Default Extension="xml" ContentType="application/xml"/>'
    '<Override PartName="/word/document.xml" ContentType='
    '"application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/></Types>'
)
RELATIONSHIPS = (
    f'<Relationships xmlns="{SCHEMAS}/package/2006/relationships"><Relationship Id="rId1" '
    f'Type="{SCHEMAS}/officeDocument/2006/relationships/officeDocument" '
    'Target="word/document.xml"/></Relationships>'
)


def paragraph(text: str, *runs: str) -> str:
    """Return a paragraph of a .docx file."""
    return f"<w:p><w:r><w:t>{text}</w:t></w:r>{''.join(runs)}</w:p>"


def text_box(text: str) -> str:
    """Return a text box as Word writes it, with a copy for older programs."""
    contents = f"<w:txbxContent>{paragraph(text)}</w:txbxContent>"
    return (
        '<w:r><mc:AlternateContent><mc:Choice Requires="wps"><w:drawing><wp:anchor><a:graphic>'
        f'<a:graphicData uri="shape"><wps:wsp><wps:txbx>{contents}</wps:txbx></wps:wsp>'
        "</a:graphicData></a:graphic></wp:anchor></w:drawing></mc:Choice><mc:Fallback><w:pict>"
        f"<v:shape><v:textbox>{contents}</v:textbox></v:shape></w:pict></mc:Fallback>"
        "</mc:AlternateContent></w:r>"
    )


def old_text_box(text: str) -> str:
    """Return a text box as old programs write it."""
    contents = f"<w:txbxContent>{paragraph(text)}</w:txbxContent>"
    return f"<w:r><w:pict><v:shape><v:textbox>{contents}</v:textbox></v:shape></w:pict></w:r>"


def docx(*body: str, **parts: str) -> bytes:
    """Return a .docx file. parts: name, such as header1 → contents of a part beside the body."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("[Content_Types].xml", TYPES)
        archive.writestr("_rels/.rels", RELATIONSHIPS)
        document = f"<w:document {NAMESPACES}><w:body>{''.join(body)}</w:body></w:document>"
        archive.writestr("word/document.xml", document)
        for name, contents in parts.items():
            archive.writestr(f"word/{name}.xml", f"<w:part {NAMESPACES}>{contents}</w:part>")
    return file.getvalue()


def read(folder: Path, name: str, raw: bytes) -> tuple[str, str, dict[str, int]]:
    """Return title, text and notes of a file."""
    (folder / name).write_bytes(raw)
    intake = Intake(skip_bad=False)
    ((_, document),) = read_folder(folder, intake)
    return document.title, document.text, dict(intake.notes)


def converted(folder: Path, markdown: str, to: str, *options: str) -> bytes:
    """Return Markdown as a file of a word processor."""
    file = folder / "converted"
    pypandoc.convert_text(markdown, to, "markdown", outputfile=str(file), extra_args=[*options])
    raw = file.read_bytes()
    file.unlink()
    return raw


@pytest.mark.parametrize("box", [text_box, old_text_box])
def test_a_paragraph_with_a_text_box_stays(tmp_path: Path, box: Callable[[str], str]) -> None:
    """The box follows it, once; each is a paragraph."""
    holder = paragraph("Holder.", box("In the box."), "<w:r><w:t> Rest.</w:t></w:r>")
    raw = docx(paragraph("Before."), holder, paragraph("After."))
    expected = "Before.\n\nHolder. Rest.\n\nIn the box.\n\nAfter."
    assert read(tmp_path, "a.docx", raw) == ("", expected, {})


def test_text_boxes_within_text_boxes() -> None:
    """The outer one comes first; more than a few within one another are left as they are."""
    inner = f"<w:p>b<w:txbxContent>{'<w:p>c</w:p>'}</w:txbxContent></w:p>"
    assert unboxed(f"<w:p>a<w:txbxContent>{inner}</w:txbxContent></w:p>") == (
        "<w:p>a</w:p><w:p>b</w:p><w:p>c</w:p>"
    )
    deep = MOST_NESTED + 1
    xml = "<w:p><w:txbxContent>" * deep + "x" + "</w:txbxContent></w:p>" * deep
    assert unboxed(xml) == xml


@pytest.mark.parametrize(
    "xml",
    ["<w:txbxContent>", "</w:txbxContent>", "<w:p/>", "</w:p>", "<mc:Fallback>", "</mc:Fallback>",
     "<w:p>a<w:txbxContent>b</w:p>", "<w:p", "<w:p><w:p>"],
)  # fmt: skip
@pytest.mark.parametrize("times", [1, 200_000])
def test_damaged_xml_stays_as_it_is(xml: str, times: int) -> None:
    """Pandoc then says what is wrong; floods end soon."""
    assert unboxed(xml * times) == xml * times


def test_headers_footers_and_comments_are_read(tmp_path: Path) -> None:
    """They follow the text, and equal ones are read once."""
    header = paragraph("Walrus &amp; Sons")
    raw = docx(
        paragraph("Text."),
        header1=header,
        header2=header,
        footer1=paragraph("Contract 4711"),
        comments=f"<w:comment>{paragraph('Is it true?')}</w:comment>",
    )
    expected = "Text.\n\nWalrus & Sons\nContract 4711\nIs it true?"
    assert read(tmp_path, "a.docx", raw) == ("", expected, {})


def test_words_that_pandoc_does_not_read_are_told(tmp_path: Path) -> None:
    """Words of an element that pandoc does not know are told, for example."""
    raw = docx(paragraph("Text."), "<w:unknown><w:p><w:r><w:t>lost</w:t></w:r></w:p></w:unknown>")
    _, text, notes = read(tmp_path, "a.docx", raw)
    assert (text, notes) == ("Text.", {"word file with words that pandoc does not read": 1})


def test_no_words_are_missed_where_none_are(tmp_path: Path) -> None:
    """Lists, tables, notes, links, formulas and code are text."""
    markdown = (
        "# A\n\n1. one\n2. *two*[^1]\n\n| a | b |\n|---|---|\n| c | d |\n\n$x^2$ `code` [e](f)\n\n"
        "[^1]: Note.\n"
    )
    title, text, notes = read(tmp_path, "a.docx", converted(tmp_path, markdown, "docx"))
    assert (title, notes) == ("A", {})
    assert {"one", "two", "c", "d", "code", "e", "Note."} <= set(text.split())


@pytest.mark.parametrize("to", ["docx", "odt", "epub", "rtf"])
def test_marks_of_footnotes_are_not_glued_to_words(tmp_path: Path, to: str) -> None:
    """They are left out, and the note stays."""
    raw = converted(tmp_path, "A word[^1] and more.\n\n[^1]: A note.\n", to, "-s")
    text = read(tmp_path, f"a.{to}", raw)[1]
    assert text.startswith("A word and more.")
    assert text.removeprefix("A word and more.").strip() in (
        {"A note.", ""} if to == "rtf" else {"A note."}
    )


@pytest.mark.parametrize(
    ("to", "markdown", "title", "text"),
    [
        ("docx", "---\ntitle: Meta\n---\n# Uses\nx", "Meta", "Uses\n\nx"),
        ("odt", "---\ntitle: Meta\n---\n# Uses\nx", "Meta", "Meta\n\nUses\n\nx"),
        ("docx", "First.\n\n# Uses *of* it\nx", "Uses of it", "First.\n\nx"),
        ("odt", "First.\n\n# Uses *of* it\nx", "Uses of it", "First.\n\nx"),
        ("docx", "First.\n\n## Links\nx", "", "First.\n\nLinks\n\nx"),
        ("ipynb", "## Uses\nx", "Uses", "x"),
        ("docx", "no heading", "", "no heading"),
        ("docx", "---\nauthor: Ann\ndate: May\nabstract: In short.\n---\nx", "",
         "Ann\n\nMay\n\nAbstract\n\nIn short.\n\nx"),
    ],
)  # fmt: skip
def test_titles(tmp_path: Path, to: str, markdown: str, title: str, text: str) -> None:
    """The properties give the title, or else a heading, which then leaves the text."""
    found = read(tmp_path, f"a.{to}", converted(tmp_path, markdown, to, "-s"))
    assert found == (title, text, {})


def test_what_an_odt_has_beside_its_paragraphs() -> None:
    """Text boxes, comments, headers and footers that are not in the text, without page numbers."""
    parts = {
        "content.xml": "<text:p>a<draw:text-box><text:p>box</text:p></draw:text-box></text:p>"
        "<office:annotation><dc:date>2026</dc:date><text:p>A remark</text:p></office:annotation>"
        "<draw:text-box><text:p>a caption</text:p></draw:text-box>",
        "styles.xml": "<style:header><text:p>Sons</text:p></style:header><style:footer><text:p>Page"
        " <text:page-number>1</text:page-number></text:p></style:footer>",
    }
    assert of_odt(parts, "a\n\na caption") == "box\nA remark\nSons\nPage"


def test_the_boxes_of_an_odt_are_whole() -> None:
    """Spans, spaces and tabs cut nothing, words come twice, and boxes have boxes and comments."""
    remark = "<office:annotation><text:p>why?</text:p></office:annotation>"
    inner = "<draw:text-box><text:p>inner</text:p></draw:text-box>"
    word = "<text:span>bark</text:span>"
    line = f"of<text:s/>{word}<text:tab/>and{remark} {word}{inner}, once"
    content = f"<text:p>a<draw:text-box><text:p>{line}</text:p><text:p>end</text:p></draw:text-box>"
    found = of_odt({"content.xml": f"{content} b</text:p>"}, "a b")
    assert found == "why?\ninner\nof bark and bark, once\nend"
    box = "<draw:text-box><text:p>in a cell</text:p></draw:text-box>"
    row = f"<table:table-row><table:table-cell>{box}</table:table-cell></table:table-row>"
    assert of_odt({"content.xml": row}, "") == "in a cell"
    assert text_pandoc_omits({"content.xml": "<damaged>"}, "a") == ""


def of_odt(parts: dict[str, str], text: str) -> str:
    """Return what pandoc omits of parts, which are given without their outermost element."""
    names = f'{OPEN} xmlns:style="urn:style" xmlns:dc="urn:dc"'
    return text_pandoc_omits({n: f"<all {names}>{xml}</all>" for n, xml in parts.items()}, text)


def test_too_much_xml_is_not_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pandoc, whose memory is limited, reads such a file alone."""
    raw = docx(paragraph("x" * 10_000))
    assert "word/document.xml" in readable_parts(raw)
    monkeypatch.setattr("birchbark.collection.file_readers.xml_parts.MOST_BYTES", 5_000)
    assert readable_parts(raw) == {}
    assert readable_parts(b"PK\x03\x04 damaged") == {}
