"""Small spreadsheets and presentations, written part by part, for tests that read them."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping, Sequence
from xml.sax.saxutils import escape

RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"
SHEET = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
SLIDE = (
    'xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main" '
    'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" '
    'xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006" '
    f'xmlns:r="{RELATIONS}"'
)
OPEN = " ".join(
    f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"'
    for name in ("office", "text", "table", "draw", "presentation")
)


def zipped(parts: Mapping[str, str]) -> bytes:
    """Return an archive of these parts."""
    raw = io.BytesIO()
    with zipfile.ZipFile(raw, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in parts.items():
            archive.writestr(name, text)
    return raw.getvalue()


def relations(targets: Sequence[tuple[str, str]]) -> str:
    """Return relations with the ids r0, r1, …; targets: kind and name of each."""
    listed = "".join(
        f'<Relationship Id="r{number}" Type="{RELATIONS}/{kind}" Target="{target}"/>'
        for number, (kind, target) in enumerate(targets)
    )
    return f'<Relationships xmlns="{PACKAGE}/relationships">{listed}</Relationships>'


def xlsx(sheets: Mapping[str, Mapping[str, str | float]]) -> bytes:
    """Return a workbook; sheets: name → place of each cell, such as B2 → value."""
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{PACKAGE}/content-types"/>',
        "_rels/.rels": relations([("officeDocument", "xl/workbook.xml")]),
        "xl/_rels/workbook.xml.rels": relations(
            [("worksheet", f"worksheets/sheet{n}.xml") for n in range(len(sheets))]
            + [("styles", "styles.xml")]
        ),
        "xl/workbook.xml": f'<workbook xmlns="{SHEET}" xmlns:r="{RELATIONS}"><sheets>'
        + "".join(
            f'<sheet name="{name}" sheetId="{n + 1}" r:id="r{n}"/>' for n, name in enumerate(sheets)
        )
        + "</sheets></workbook>",
        # the second style is a date
        "xl/styles.xml": f'<styleSheet xmlns="{SHEET}"><cellXfs><xf numFmtId="0"/>'
        '<xf numFmtId="14" applyNumberFormat="1"/></cellXfs></styleSheet>',
    }
    for number, cells in enumerate(sheets.values()):
        rows: dict[str, str] = {}
        for place, value in cells.items():
            row = place.lstrip("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
            rows[row] = rows.get(row, "") + _cell(place, value)
        data = "".join(f'<row r="{row}">{cells}</row>' for row, cells in rows.items())
        parts[f"xl/worksheets/sheet{number}.xml"] = (
            f'<worksheet xmlns="{SHEET}"><sheetData>{data}</sheetData></worksheet>'
        )
    return zipped(parts)


def _cell(place: str, value: str | float) -> str:
    if isinstance(value, str) and value.startswith("day "):
        return f'<c r="{place}" s="1"><v>{value[4:]}</v></c>'
    if isinstance(value, str):
        return f'<c r="{place}" t="inlineStr"><is><t>{escape(value)}</t></is></c>'
    return f'<c r="{place}"><v>{value!r}</v></c>'


def ods(rows: str) -> bytes:
    """Return a workbook with a sheet named Prices; rows: in XML."""
    return zipped(
        {
            "mimetype": "application/vnd.oasis.opendocument.spreadsheet",
            "META-INF/manifest.xml": "<manifest/>",
            "content.xml": f"<office:document-content {OPEN}><office:body><office:spreadsheet>"
            f'<table:table table:name="Prices">{rows}</table:table>'
            "</office:spreadsheet></office:body></office:document-content>",
        }
    )


def pptx(slides: Sequence[str], notes: str = "", title: str = "") -> bytes:
    """Return a presentation; slides, and notes of the first one: in XML. Numbered backwards."""
    names = [f"slides/slide{len(slides) - n}.xml" for n in range(len(slides))]
    shown = "".join(f'<p:sldId id="{256 + n}" r:id="r{n}"/>' for n in range(len(slides)))
    parts = {
        "ppt/presentation.xml": f"<p:presentation {SLIDE}><p:sldIdLst>{shown}</p:sldIdLst>"
        "</p:presentation>",
        "ppt/_rels/presentation.xml.rels": relations([("slide", name) for name in names]),
        "docProps/core.xml": '<c xmlns:dc="http://purl.org/dc/elements/1.1/">'
        f"<dc:title>{title}</dc:title></c>",
    }
    for name, slide in zip(names, slides, strict=True):
        parts[f"ppt/{name}"] = f"<p:sld {SLIDE}>{slide}</p:sld>"
    if notes:
        parts["ppt/notesSlides/notesSlide1.xml"] = f"<p:notes {SLIDE}>{notes}</p:notes>"
        rels = names[0].replace("slides/", "slides/_rels/") + ".rels"
        parts[f"ppt/{rels}"] = relations([("notesSlide", "../notesSlides/notesSlide1.xml")])
    return zipped(parts)


def odp(pages: Sequence[str]) -> bytes:
    """Return a presentation; pages: in XML."""
    listed = "".join(f"<draw:page>{page}</draw:page>" for page in pages)
    return zipped(
        {
            "content.xml": f"<office:document-content {OPEN}><office:body><office:presentation>"
            f"{listed}</office:presentation></office:body></office:document-content>"
        }
    )


def shape(*paragraphs: str) -> str:
    """Return a text box on a slide of a .pptx file."""
    listed = "".join(f"<a:p><a:r><a:t>{text}</a:t></a:r></a:p>" for text in paragraphs)
    return f"<p:sp><p:txBody>{listed}</p:txBody></p:sp>"
