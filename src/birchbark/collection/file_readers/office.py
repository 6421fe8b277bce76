"""What do .docx and .odt files hold that pandoc does not read?

Pandoc leaves out comments, headers, footers and diagrams of .docx, and a paragraph that holds a
text box: only the box is read, or nothing. Here, the XML of .docx is read with regular expressions,
which take linear time and build no tree; it is written by programs, with the usual prefixes.
"""

from __future__ import annotations

import io
import re
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from html import unescape

from birchbark.collection.file_readers.file import stated_title
from birchbark.collection.file_readers.slide_text import PageText
from birchbark.collection.file_readers.xml_parts import xml_parts
from birchbark.errors import InputError

MOST_NESTED = 20  # text boxes
PROPERTIES = ("docProps/core.xml", "meta.xml")
_DOCUMENT = re.compile(r"word/document\d*\.xml")
_NOTES = re.compile(r"word/(?:footnotes|endnotes)\.xml")
_OMITTED = re.compile(r"word/(?:header\d*|footer\d*|comments|diagrams/data\d*)\.xml")
OF_ODT = {  # part of a file → names of its elements, without their namespaces
    "content.xml": ("text-box", "annotation"),
    "styles.xml": tuple(
        f"{at}{of}" for at in ("header", "footer") for of in ("", "-left", "-first")
    ),
}
_TITLE = re.compile(r"<dc:title(?:\s[^<>]*)?>([^<]*)</dc:title>")
_BOX_TAG = re.compile(r"<(/?)(w:p|w:txbxContent|mc:Fallback)(\s[^<>]*|/)?>")
_AROUND = re.compile(r"</?w:(?:fldSimple|customXml|bdo|dir)(?:\s[^<>]*)?>")
_GAP = re.compile(r"<w:(?:ptab|cr)(?:\s[^<>]*)?/>")
_TEXT = re.compile(
    r"<[wa]:t(?:\s[^<>]*)?>([^<]*)<|(<(?:w:tab|w:ptab|w:br|w:cr|a:br)[\s/>])|(</[wa]:p>)", re.ASCII
)
_WORD = re.compile(r"\w+")


def readable_parts(raw: bytes) -> dict[str, str]:
    """Return name → XML of the parts; empty if the file is damaged or too large for them.

    Then pandoc says what is wrong, or reads what it reads.
    """
    try:
        return {name: xml.decode("utf-8-sig") for name, xml in xml_parts(raw).items()}
    except (InputError, UnicodeDecodeError):
        return {}


def property_title(parts: Mapping[str, str]) -> str:
    """Return the title among the properties of a file; empty if there is none."""
    found = (_TITLE.search(parts.get(name, "")) for name in PROPERTIES)
    return next((stated_title(unescape(title[1])) for title in found if title), "")


def as_pandoc_reads(parts: Mapping[str, str], raw: bytes) -> bytes:
    """Return a .docx file without what makes pandoc leave out text.

    The paragraphs of each text box follow the one that holds it, and there is no element around
    text that pandoc does not know, such as the field of a form letter.
    """
    changed: dict[str, str] = {}
    for name, xml in parts.items():
        if _DOCUMENT.fullmatch(name) or _NOTES.fullmatch(name):
            plain = _GAP.sub("<w:tab/>", _AROUND.sub("", xml))
            plain = unboxed(plain) if "<w:txbxContent" in plain else plain
            changed |= {name: plain} if plain != xml else {}
    if not changed:
        return raw
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, xml in {**parts, **changed}.items():
            archive.writestr(name, xml)
    return file.getvalue()


def unboxed(xml: str) -> str:
    """Return the XML with the contents of each text box after the paragraph that holds it.

    Office writes a box twice, the second time as a fallback for old programs, which is left out.
    """
    pieces: list[list[str]] = [[]]  # of the document, and of each text box that is open
    boxes: list[list[str]] = [[]]  # within the open paragraph of each of these
    fallbacks, position = 0, 0
    for tag in _BOX_TAG.finditer(xml):
        closes, name, rest = tag.groups(default="")
        pieces[-1] += [] if fallbacks else [xml[position : tag.start()]]
        position = tag.end()
        if rest.endswith("/") and name != "w:p":
            continue
        if name == "mc:Fallback":
            fallbacks += -1 if closes else 1
        elif not fallbacks and name == "w:p":
            pieces[-1] += [tag[0], *(boxes[-1] if closes else [])]
            boxes[-1] = [] if closes else boxes[-1]
        elif not fallbacks and not closes:
            if len(pieces) > MOST_NESTED:
                return xml
            pieces.append([])
            boxes.append([])
        elif not fallbacks:
            boxes.pop()
            if not boxes:
                return xml
            boxes[-1].append("".join(pieces.pop()))
    if fallbacks or len(pieces) > 1 or boxes[0]:
        return xml  # not as office programs write it
    return "".join([*pieces[0], xml[position:]])


def text_pandoc_omits(parts: Mapping[str, str], text: str) -> str:
    """Return what pandoc leaves out of a file whose text it has read, a paragraph a line.

    Headers, footers, comments and diagrams of .docx; text boxes, too, of .odt.
    """
    texts = [_paragraphs(unboxed(xml)) for name, xml in parts.items() if _OMITTED.fullmatch(name)]
    texts += _of_odt(parts)
    lines = (" ".join(line.split()) for text in texts for line in text.split("\n"))
    known = {"", *text.split("\n")}
    return "\n".join(dict.fromkeys(line for line in lines if line not in known))


def _of_odt(parts: Mapping[str, str]) -> Iterator[str]:
    for name, within in OF_ODT.items():
        with suppress(InputError):  # of damage, of which pandoc tells
            if name in parts:
                yield PageText.read_page(parts[name].encode(), within)


def lacks_words(parts: Mapping[str, str], text: str) -> bool:
    """Whether a .docx file has words, in its body and notes, that its text lacks."""
    held = Counter[str]()
    for name, xml in parts.items():
        if _DOCUMENT.fullmatch(name) or _NOTES.fullmatch(name):
            held.update(_WORD.findall(_paragraphs(unboxed(xml))))
    return bool(held - Counter(_WORD.findall(text)))


def _paragraphs(xml: str) -> str:
    """Return the text of the paragraphs in a part of an office file, each on a line."""
    found = _TEXT.finditer(xml)
    pieces = ("\n" if part[3] else " " if part[2] else unescape(part[1]) for part in found)
    return "".join(pieces)
