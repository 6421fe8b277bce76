"""How are TREC's SGML collections (<DOC>…</DOC>) read as Documents?"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from birchbark.artifact import files_in
from birchbark.collection.intake import Intake
from birchbark.collection.lines import binary_lines, decode, open_decompressed
from birchbark.collection.markup import plain_text
from birchbark.errors import InputError
from birchbark.records import Document

TITLE_TAGS = ("HEADLINE", "TITLE", "HEAD", "HL", "TTL", "TI", "H3")
DOC_TAG, BLOCK_SIZE = b"<doc", 1 << 20
TEXT_TAGS = ("LP", "LEADPARA", "TEXT", "GRAPHIC")

_DOCNO = re.compile(r"<DOCNO>\s*(.*?)\s*</DOCNO>", re.S | re.I)
_ELEMENT = {
    tag: re.compile(rf"<{tag}(?:\s[^>]*)?>(.*?)</{tag}\s*>", re.S | re.I)
    for tag in (*TITLE_TAGS, *TEXT_TAGS)
}


def read_trec(path: Path, intake: Intake) -> Iterator[tuple[str, Document]]:
    """Yield location and Document of each <DOC> in a file, or in all files below a folder.

    The title is the first of HEADLINE, TITLE, HEAD, HL, TTL, TI, H3 that occurs. The text is the
    contents of all LP, LEADPARA, TEXT and GRAPHIC elements or, if none occurs, everything except
    the number and the title. Markup is removed and entities are resolved.

    The files of a folder are read in order of name. Files without <DOC> are noted but not read,
    since TREC's discs contain read-me files and tables beside the documents.
    """
    for file in files_in(path):
        try:
            if path.is_dir() and not _contains_documents(file):
                intake.note("file without <DOC> not read")
                continue
            for location, lines in _blocks(file, intake):
                try:
                    yield location, parse_document("\n".join(lines))
                except InputError as error:
                    intake.bad(error.at(location))
        except InputError as error:
            if not intake.skip_bad:
                raise error.at(str(file)) from None
            intake.bad(error.at(str(file)))


def _contains_documents(file: Path) -> bool:
    """Return whether `file` contains `<DOC` anywhere, in upper or lower case."""
    with open_decompressed(file) as stream:
        end = b""
        while block := stream.read(BLOCK_SIZE):
            if DOC_TAG in (end + block).lower():
                return True
            end = block[-len(DOC_TAG) :]
    return False


def _blocks(file: Path, intake: Intake) -> Iterator[tuple[str, list[str]]]:
    """Yield the location and the lines of each <DOC>.

    Text between documents (except <?xml and <! lines), a document that is not closed,
    and a document with a line that cannot be decoded are bad records.
    """
    block: list[str] | None = None
    fault: InputError | None = None
    location = ""
    for number, raw in binary_lines(file):
        tag = raw.strip().upper()
        if tag == b"<DOC>":
            if block is not None:
                intake.bad(InputError("<DOC> is not closed before the next <DOC>", where=location))
            block, fault, location = [], None, f"{file}:{number}"
        elif block is None:
            if tag and not tag.startswith((b"<?XML", b"<!")):
                intake.bad(_stray(raw).at(f"{file}:{number}"))
        elif tag == b"</DOC>":
            if fault:
                intake.bad(fault)
            else:
                yield location, block
            block = None
        else:
            try:
                block.append(decode(raw, intake.encoding))
            except InputError as error:
                fault = fault or error.at(f"{file}:{number}")
    if block is not None:
        intake.bad(InputError("<DOC> is not closed at the end of the file", where=location))


def _stray(raw: bytes) -> InputError:
    return InputError(
        "text outside any document",
        wanted="<DOC> on a line of its own",
        found=repr(raw[:40].decode("utf-8", "replace")),
    )


def parse_document(sgml: str) -> Document:
    """Return the Document in the text between <DOC> and </DOC>."""
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
    """Return the matches in order, leaving out each that lies inside another."""
    outer: list[re.Match[str]] = []
    for match in sorted(matches, key=lambda m: (m.start(), -m.end())):
        if not outer or match.start() >= outer[-1].end():
            outer.append(match)
    return outer
