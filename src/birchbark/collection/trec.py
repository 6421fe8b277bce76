"""How are TREC's SGML collections (<DOC>…</DOC>) turned into Documents?"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from birchbark.collection.intake import Intake
from birchbark.collection.lines import binary_lines, decode
from birchbark.collection.markup import plain_text
from birchbark.errors import InputError
from birchbark.records import Document

TITLE_TAGS = ("HEADLINE", "TITLE", "HEAD", "HL", "TTL", "TI", "H3")
TEXT_TAGS = ("LP", "LEADPARA", "TEXT", "GRAPHIC")

_DOCNO = re.compile(r"<DOCNO>\s*(.*?)\s*</DOCNO>", re.S | re.I)
_ELEMENT = {
    tag: re.compile(rf"<{tag}(?:\s[^>]*)?>(.*?)</{tag}\s*>", re.S | re.I)
    for tag in (*TITLE_TAGS, *TEXT_TAGS)
}


def read_trec(path: Path, intake: Intake) -> Iterator[tuple[str, Document]]:
    """Documents of a TREC SGML file, or of every file below a folder, in the order of the names.

    The title is the first of HEADLINE, TITLE, HEAD, HL, TTL, TI, H3 that is there. The text is
    everything inside LP, LEADPARA, TEXT and GRAPHIC, or, where none of them is there, everything
    but the number and the title. Markup is taken out and entities are resolved.
    """
    files = sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]
    for file in files:
        for place, lines in _blocks(file, intake):
            try:
                yield place, parse_document("\n".join(decode(x, intake.encoding) for x in lines))
            except InputError as error:
                intake.bad(error.at(place))


def _blocks(file: Path, intake: Intake) -> Iterator[tuple[str, list[bytes]]]:
    """Where each <DOC> starts, and its lines; anything but blanks between them is a fault."""
    block: list[bytes] | None = None
    place = ""
    for number, line in binary_lines(file):
        mark = line.strip().upper()
        if mark == b"<DOC>":
            if block is not None:
                intake.bad(InputError("<DOC> is not closed before the next <DOC>", where=place))
            block, place = [], f"{file}:{number}"
        elif block is None:
            if mark and not mark.startswith((b"<?XML", b"<!")):
                shown = line[:40].decode("utf-8", "replace")
                fault = InputError("text outside of any document", where=f"{file}:{number}")
                fault.wanted, fault.found = "<DOC> on a line of its own", repr(shown)
                intake.bad(fault)
        elif mark == b"</DOC>":
            yield place, block
            block = None
        else:
            block.append(line)
    if block is not None:
        intake.bad(InputError("<DOC> is not closed at the end of the file", where=place))


def parse_document(sgml: str) -> Document:
    """The Document between <DOC> and </DOC>."""
    number = _DOCNO.search(sgml)
    if number is None or not number[1]:
        raise InputError("document has no number", wanted="<DOCNO>…</DOCNO>")
    title_match = next((m for tag in TITLE_TAGS if (m := _ELEMENT[tag].search(sgml))), None)
    texts = sorted((m.start(), m[1]) for tag in TEXT_TAGS for m in _ELEMENT[tag].finditer(sgml))
    if texts:
        body = "\n".join(text for _, text in texts)
    else:
        body = _DOCNO.sub("", sgml)
        if title_match:
            body = body.replace(title_match[0], "")
    title = " ".join(plain_text(title_match[1])[1].split()) if title_match else ""
    return Document(number[1], {"title": title, "text": plain_text(body)[1]})
