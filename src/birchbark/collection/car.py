"""How do TREC CAR's paragraphs and section judgments (v2.0) become training pairs?

The file of paragraphs is CBOR: a header, then one list of unknown length, as trec-car-tools
(github.com/TREMA-UNH) reads it. Older files lack the header, and are paragraphs one after another.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from io import BufferedReader
from pathlib import Path
from typing import Any

from birchbark.collection.intake import Intake
from birchbark.collection.judged import judged_pairs
from birchbark.collection.lines import opened
from birchbark.errors import InputError, MissingPackageError
from birchbark.records import Document, Pair, Qrels, Query

PARAGRAPHS = 2  # the header's number for such a file; 0 and 1 are pages and outlines
LIST, BREAK = b"\x9f", b"\xff"  # CBOR's marks around a list of unknown length
_ESCAPE = re.compile(rb"%([0-9A-Fa-f]{2})")


def section_pairs(qrels: Qrels, paragraphs: Iterable[Document], intake: Intake) -> Iterator[Pair]:
    """A pair for each judgment of a section: its heading with those above it, and a paragraph.

    qrels: of `*.hierarchical.qrels`, which name the relevant alone. The order is that of the
    paragraphs. See `judged_pairs` for what is noted and what is an InputError.
    """
    queries = [Query(section, section_text(section)) for section in qrels.grades]
    return judged_pairs(queries, qrels, paragraphs, intake)


def section_text(section: str) -> str:
    """The page and headings that a section's id spells: `enwiki:A%20b/C` is `A b C`.

    A percent sign that starts no escape stands for itself; what is no UTF-8 becomes U+FFFD.
    """
    parts = section.removeprefix("enwiki:").encode("utf-8", "surrogatepass").split(b"/")
    spelt = (_ESCAPE.sub(lambda escape: bytes([int(escape[1], 16)]), part) for part in parts)
    return " ".join(part.decode("utf-8", "replace") for part in spelt)


def read_paragraphs(path: Path, intake: Intake) -> Iterator[tuple[str, Document]]:
    """Documents of `*.cbor-paragraphs.cbor`, read one at a time, with links as their anchor texts.

    What is CBOR but no paragraph is a bad record. Raises InputError for a damaged file, and
    MissingPackageError without cbor2.
    """
    number = 0
    try:
        with opened(path) as stream:
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


def _items(stream: BufferedReader) -> Iterator[Any]:
    first = _load(stream)
    headed = isinstance(first, list) and first[:1] == ["CAR"]
    if headed:
        _check_header(first)
        if stream.read(1) != LIST:
            raise InputError("no list of paragraphs after the header")
    else:
        yield first
    while (mark := stream.peek(1)[:1]) != BREAK:
        if not mark and not headed:
            return
        yield _load(stream)


def _load(stream: BufferedReader) -> Any:
    try:
        import cbor2
    except ImportError as missing:
        raise MissingPackageError(
            "cbor2 is not installed", remedy="pip install 'birchbark[car]'"
        ) from missing
    try:
        return cbor2.load(stream)
    except OSError:
        raise
    except Exception as broken:  # its versions raise errors of many kinds
        raise InputError(
            f"broken CBOR: {broken}", remedy="the file was cut off or damaged; fetch it again"
        ) from broken


def _check_header(header: list[Any]) -> None:
    match header:
        case ["CAR", [kind, *_], *_] if kind == PARAGRAPHS:
            return
    raise InputError(
        "file of another kind",
        wanted="paragraphs",
        found=repr(header)[:80],
        remedy="take *.cbor-paragraphs.cbor",
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
        "not a text and not a link", wanted="[0, text] or [1, link]", found=repr(body)[:80]
    )
