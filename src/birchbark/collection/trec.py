"""How are TREC's SGML collections (<DOC>…</DOC>) turned into Documents?"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from birchbark.artifact import files_in
from birchbark.collection.intake import Intake
from birchbark.collection.lines import binary_lines, decode, opened
from birchbark.collection.markup import plain_text
from birchbark.errors import InputError
from birchbark.records import Document

TITLE_TAGS = ("HEADLINE", "TITLE", "HEAD", "HL", "TTL", "TI", "H3")
MARK, LOOKED_AT = b"<doc", 1 << 20
TEXT_TAGS = ("LP", "LEADPARA", "TEXT", "GRAPHIC")

_DOCNO = re.compile(r"<DOCNO>\s*(.*?)\s*</DOCNO>", re.S | re.I)
_ELEMENT = {
    tag: re.compile(rf"<{tag}(?:\s[^>]*)?>(.*?)</{tag}\s*>", re.S | re.I)
    for tag in (*TITLE_TAGS, *TEXT_TAGS)
}


def read_trec(path: Path, intake: Intake) -> Iterator[tuple[str, Document]]:
    """Documents of a TREC SGML file, or of every file below a folder, in the order of the names.

    Files of a folder in which no document begins are noted, not read: TREC's discs bring read-me
    files and tables beside the documents.
    The title is the first of HEADLINE, TITLE, HEAD, HL, TTL, TI, H3 that is there. The text is
    everything inside LP, LEADPARA, TEXT and GRAPHIC, or, where none of them is there, everything
    but the number and the title. Markup is taken out and entities are resolved.
    """
    for file in files_in(path):
        try:
            if path.is_dir() and not _holds_documents(file):
                intake.note("file without <DOC> not read")
                continue
            for place, lines in _blocks(file, intake):
                try:
                    yield place, parse_document("\n".join(lines))
                except InputError as error:
                    intake.bad(error.at(place))
        except InputError as error:
            if not intake.skip_bad:
                raise error.at(str(file)) from None
            intake.bad(error.at(str(file)))


def _holds_documents(file: Path) -> bool:
    """Whether there is anything like the beginning of a document in it."""
    with opened(file) as stream:
        end = b""
        while block := stream.read(LOOKED_AT):
            if MARK in (end + block).lower():
                return True
            end = block[-len(MARK) :]
    return False


def _blocks(file: Path, intake: Intake) -> Iterator[tuple[str, list[str]]]:
    """Where each <DOC> starts, and its lines; anything but blanks between them is a fault.

    A document with a line that cannot be decoded is a bad record.
    """
    block: list[str] | None = None
    fault: InputError | None = None
    place = ""
    for number, raw in binary_lines(file):
        mark = raw.strip().upper()
        if mark == b"<DOC>":
            if block is not None:
                intake.bad(InputError("<DOC> is not closed before the next <DOC>", where=place))
            block, fault, place = [], None, f"{file}:{number}"
        elif block is None:
            if mark and not mark.startswith((b"<?XML", b"<!")):
                intake.bad(_stray(raw).at(f"{file}:{number}"))
        elif mark == b"</DOC>":
            if fault:
                intake.bad(fault)
            else:
                yield place, block
            block = None
        else:
            try:
                block.append(decode(raw, intake.encoding))
            except InputError as error:
                fault = fault or error.at(f"{file}:{number}")
    if block is not None:
        intake.bad(InputError("<DOC> is not closed at the end of the file", where=place))


def _stray(raw: bytes) -> InputError:
    return InputError(
        "text outside of any document",
        wanted="<DOC> on a line of its own",
        found=repr(raw[:40].decode("utf-8", "replace")),
    )


def parse_document(sgml: str) -> Document:
    """The Document between <DOC> and </DOC>."""
    number = _DOCNO.search(sgml)
    if number is None or not number[1]:
        raise InputError("document has no number", wanted="<DOCNO>…</DOCNO>")
    title_match = next((m for tag in TITLE_TAGS if (m := _ELEMENT[tag].search(sgml))), None)
    texts = _outermost(m for tag in TEXT_TAGS for m in _ELEMENT[tag].finditer(sgml))
    if texts:
        body = "\n\n".join(match[1] for match in texts)
    else:
        body = _DOCNO.sub("", sgml)
        if title_match:
            body = body.replace(title_match[0], "")
    title = " ".join(plain_text(title_match[1])[1].split()) if title_match else ""
    return Document(number[1], {"title": title, "text": plain_text(body)[1]})


def _outermost(matches: Iterable[re.Match[str]]) -> list[re.Match[str]]:
    """In order, without those that lie inside another."""
    kept: list[re.Match[str]] = []
    for match in sorted(matches, key=lambda m: (m.start(), -m.end())):
        if not kept or match.start() >= kept[-1].end():
            kept.append(match)
    return kept
