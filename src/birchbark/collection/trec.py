"""How are TREC's SGML collections (<DOC>…</DOC>) read as Documents?"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from birchbark.collection.files.walk import chosen_files
from birchbark.collection.parsing.elements import Element, elements, first_element
from birchbark.collection.parsing.intake import Intake
from birchbark.collection.parsing.lines import (
    LINE_BYTES,
    MAX_FILE,
    OpenFile,
    binary_lines,
    decode,
    open_decompressed,
    parse_records,
)
from birchbark.collection.parsing.markup import plain_text
from birchbark.errors import InputError
from birchbark.records import Document

TITLE_TAGS = ("HEADLINE", "TITLE", "HEAD", "HL", "TTL", "TI", "H3")
DOC_TAG, BLOCK_SIZE = b"<doc", 1 << 20
TEXT_TAGS = ("LP", "LEADPARA", "TEXT", "GRAPHIC")
# Entities of the Federal Register that HTML lacks or maps to another character.
ENTITIES = {"&hyph;": "-", "&blank;": " "}
_ENTITY = re.compile("|".join(ENTITIES), re.IGNORECASE)


def read_trec(path: Path, intake: Intake) -> Iterator[tuple[str, Document]]:
    """Yield location and Document of each <DOC> in a file, or in all files below a folder.

    The title is the first of HEADLINE, TITLE, HEAD, HL, TTL, TI, H3 that occurs. The text is the
    contents of all LP, LEADPARA, TEXT and GRAPHIC elements or, if none occurs, everything except
    the number, DOCHDR and the title, as it is of a web page. Markup is removed and entities are
    resolved.

    The files of a folder are read in order of path, except hidden ones and those that the intake
    excludes. Files without <DOC> are noted but not read, since TREC's discs contain read-me files
    and tables beside the documents.
    """
    for file, open_file in chosen_files(path, intake):
        try:
            if path.is_dir() and not _contains_documents(file, open_file):
                intake.note("file without <DOC> not read")
                continue
            blocks = _blocks(file, open_file, intake)
            yield from parse_records(blocks, lambda b: parse_document("\n".join(b)), intake)
        except InputError as error:
            intake.bad(error.at(str(file)))


def _contains_documents(file: Path, open_file: OpenFile) -> bool:
    """Return whether `file` contains `<DOC` anywhere, in upper or lower case."""
    with open_decompressed(file, open_file) as stream:
        end = b""
        while block := stream.read(BLOCK_SIZE):
            if DOC_TAG in (end + block).lower():
                return True
            end = block[-len(DOC_TAG) :]
    return False


def _blocks(file: Path, open_file: OpenFile, intake: Intake) -> Iterator[tuple[str, list[str]]]:
    """Yield the location and the lines of each <DOC>.

    Text between documents (except <?xml and <! lines), a document that is not closed,
    and a document with a line that cannot be decoded are bad records.
    """
    block: list[str] | None = None
    fault: InputError | None = None
    location, remaining = "", MAX_FILE
    for number, raw in binary_lines(file, open_file):
        tag = raw.strip().upper()
        if tag == b"<DOC>":
            if block is not None:
                intake.bad(InputError("<DOC> is not closed before the next <DOC>", where=location))
            remaining = MAX_FILE
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
        elif not fault:
            remaining -= len(raw) + LINE_BYTES
            try:
                if remaining < 0:
                    wanted = f"at most {MAX_FILE:,} bytes"
                    raise InputError("the document is too large", wanted=wanted)
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
    sgml = _ENTITY.sub(lambda entity: ENTITIES[entity[0].lower()], sgml)
    number = first_element(sgml, "DOCNO", any_case=True)
    doc_id = number.inner.strip() if number else ""
    if number is None or not doc_id:
        raise InputError("document has no number", wanted="<DOCNO>…</DOCNO>")
    titles = (first_element(sgml, tag, any_case=True) for tag in TITLE_TAGS)
    title = next((element for element in titles if element), None)
    page = first_element(sgml, "HTML", any_case=True)  # which may contain <text> of an image
    tags = () if page else TEXT_TAGS
    texts = _outermost(e for tag in tags for e in elements(sgml, tag, any_case=True))
    if texts:
        body = "\n\n".join(element.inner for element in texts)
    else:
        own = [e for tag in ("DOCNO", "DOCHDR") for e in elements(sgml, tag, any_case=True)]
        left_out = _outermost(filter(None, (*own, title)))
        edges = [0, *(edge for e in left_out for edge in (e.start, e.end)), len(sgml)]
        body = "".join(sgml[i:j] for i, j in zip(edges[::2], edges[1::2], strict=True))
    name = " ".join(plain_text(title.inner)[1].split()) if title else ""
    return Document(doc_id, {"title": name, "text": plain_text(body)[1]})


def _outermost(found: Iterable[Element]) -> list[Element]:
    """Return the elements in order, leaving out each that lies inside another."""
    outer: list[Element] = []
    for element in sorted(found, key=lambda e: (e.start, -e.end)):
        if not outer or element.start >= outer[-1].end:
            outer.append(element)
    return outer
