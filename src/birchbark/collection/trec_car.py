"""How are TREC CAR's paragraphs and queries read?

The paragraph file is CBOR: a header and a list of indefinite length (see trec-car-tools at
github.com/TREMA-UNH). Older files are a sequence of paragraphs without a header. The queries of its
judgments are ids of sections, which spell out the title of the page and the headings.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from io import BufferedReader, RawIOBase
from pathlib import Path
from typing import Any

from birchbark.collection.parsing.intake import Intake
from birchbark.collection.parsing.lines import open_decompressed, uncompressed_name
from birchbark.errors import InputError, extra
from birchbark.records import Document

PARAGRAPHS = 2  # the file type in the header; 0 and 1 stand for pages and outlines
LIST, BREAK = b"\x9f", b"\xff"  # start and end of a CBOR list of indefinite length
SECTION_JUDGMENTS = "hierarchical.qrels"  # how the names of files with judgments of sections end
_ESCAPE = re.compile(rb"%([0-9A-Fa-f]{2})")


def has_sections(path: Path) -> bool:
    """Return whether the queries of these judgments are sections, as the file name tells."""
    return uncompressed_name(path).endswith(SECTION_JUDGMENTS)


def section_text(section: str) -> str:
    """Return the page title and headings that a section id encodes: `enwiki:A%20b/C` is `A b C`.

    A percent sign that does not start an escape is literal. Invalid UTF-8 becomes U+FFFD.
    """
    parts = section.removeprefix("enwiki:").encode("utf-8", "surrogatepass").split(b"/")
    decoded = (_ESCAPE.sub(lambda escape: bytes([int(escape[1], 16)]), part) for part in parts)
    return " ".join(part.decode("utf-8", "replace") for part in decoded)


def read_car(path: Path, intake: Intake) -> Iterator[tuple[str, Document]]:
    """Yield the paragraphs of `*.cbor-paragraphs.cbor` as Documents, with their locations.

    A link is replaced by its anchor text. CBOR that is not a paragraph is a bad record. Raises
    InputError for a damaged file, and MissingPackageError without cbor2.
    """
    number = 0
    try:
        with open_decompressed(path) as stream:
            for number, item in enumerate(_items(stream), 1):
                try:
                    document = _document(item)
                except InputError as error:
                    intake.bad(error.at(f"{path}, paragraph {number}"))
                else:
                    yield f"{path}, paragraph {number}", document
    except InputError as error:
        error.at(f"{path}, paragraph {number + 1}")
        raise


class _Unseekable(RawIOBase):
    """A file that can only be read: cbor2 reads others ahead and seeks back, slowly in gzip."""

    def __init__(self, stream: BufferedReader) -> None:
        self._stream = stream

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        return self._stream.read(size)


def _items(stream: BufferedReader) -> Iterator[Any]:
    first = _load(stream)
    has_header = isinstance(first, list) and first[:1] == ["CAR"]
    if has_header:
        _check_header(first)
        if stream.read(1) != LIST:
            raise InputError("no list of paragraphs after the header")
    else:
        yield first
    while (mark := stream.peek(1)[:1]) != BREAK:
        if not mark and not has_header:
            return
        yield _load(stream)


def _load(stream: BufferedReader) -> Any:
    with extra("car"):
        import cbor2
    forward: Any = _Unseekable(stream)
    try:
        return cbor2.load(forward)
    except OSError:
        raise
    except Exception as error:  # cbor2 raises different errors in different versions
        raise InputError(
            f"damaged CBOR: {error}", remedy="the file is incomplete or damaged; download it again"
        ) from error


def _check_header(header: list[Any]) -> None:
    match header:
        case ["CAR", [kind, *_], *_] if kind == PARAGRAPHS:
            return
    raise InputError(
        "wrong type of file",
        wanted="paragraphs",
        found=repr(header)[:80],
        remedy="use *.cbor-paragraphs.cbor",
    )


def _document(item: Any) -> Document:
    match item:
        case [0, bytes() as name, [*bodies]] if name.isascii():
            return Document(name.decode(), {"text": "".join(map(_text, bodies))})
    raise InputError("not a paragraph", wanted="[0, id, bodies]", found=repr(item)[:80])


def _text(body: Any) -> str:
    match body:
        case [0, str() as text]:
            return text
        case [1, [_, _, _, _, str() as anchor, *_]]:
            return anchor
    raise InputError(
        "neither a text nor a link", wanted="[0, text] or [1, link]", found=repr(body)[:80]
    )
