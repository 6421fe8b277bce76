"""Which documents does a file become, with the files that it contains?"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from birchbark.collection.file_readers.file import ContainedFile, Contents, Fields, File
from birchbark.collection.file_readers.file_types import (
    FileType,
    file_type,
    name_with_type,
    suffixes,
    type_by_contents,
)
from birchbark.collection.files.language import language_of
from birchbark.collection.parsing.lines import COMPRESSED
from birchbark.errors import InputError, first_line
from birchbark.records import SECTION_STARTS, Document
from birchbark.systems import TROUBLES

MOST_NESTED = 4  # files in files, as a PDF in an e-mail in an e-mail in a mailbox
DIVIDE = "divide it into several files"  # remedy for one that is too much
LONGEST_TITLE = 1000  # characters; the rest of it is text, since each answer shows the title
LONGEST_NAME = 60  # characters of the name of a contained file, before its suffix


class Part(NamedTuple):
    """A document of a file, or why it could not be read; doc_id is its id in either case."""

    doc_id: str
    found: Document | InputError


def parts_of(
    file: File,
    path: str,
    kind: FileType,
    about: Fields,
    begin: Callable[[str], bool] = lambda doc_id: True,
) -> Iterator[Part]:
    """Yield what a file becomes: its own document first, then those of the files in it.

    The doc_id of a contained file is that of its container, a slash and its name: no other file of
    the folder can have this path. Files that are not read are noted.

    path: below the folder. about: fields that all documents of the file have. begin: is called
    with the doc_id of each file before it is read, and returns whether to read it. Default: all.
    """
    yield from _parts(file, doc_id_of(path), kind, _Around(about, {}, 0, begin))


class _Around(NamedTuple):
    """Fields that a document may not change, those that it may, and in how many files it is.

    begin: see `parts_of`.
    """

    about: Fields
    inherited: Fields
    nested: int
    begin: Callable[[str], bool]


def _parts(file: File, doc_id: str, kind: FileType, around: _Around) -> Iterator[Part]:
    if not around.begin(doc_id):
        return
    names: Counter[str] = Counter()
    kind = type_by_contents(kind, file.raw)
    try:
        contents = _contents(file, kind)
        if contents and contents.fields is not None:
            yield Part(doc_id, _document(doc_id, contents.fields, kind, around))
        for inner in contents.files if contents else ():
            named = name_with_type(_safe_name(inner.name), inner.suffix)
            name = _unique(named, names)
            yield from _contained(file, f"{doc_id}/{doc_id_of(name)}", name, inner, around)
    except InputError as error:
        yield Part(doc_id, error.at(str(file.path)))


def _contained(
    file: File, doc_id: str, name: str, inner: ContainedFile, around: _Around
) -> Iterator[Part]:
    """Yield what a file that `file` contains becomes."""
    kind = file_type(Path(name))
    if kind is None or Path(name).suffix.lower() in COMPRESSED:
        file.intake.note(f"attachment of another type not read: {suffixes(Path(name))}")
    elif around.nested == MOST_NESTED:
        file.intake.note(f"file within {MOST_NESTED} other files not read")
    else:
        within = replace(file, path=file.path / name, raw=inner.raw)
        about = {**around.about, "size": str(len(inner.raw))}
        deeper = _Around(about, inner.fields, around.nested + 1, around.begin)
        yield from _parts(within, doc_id, kind, deeper)


def _contents(file: File, kind: FileType) -> Contents | None:
    """Read a file; None, with a note, if it is of another type than its name, or not readable."""
    if kind.accepts and not kind.accepts(file.raw):
        file.intake.note(f"file of another type not read: {suffixes(Path(file.path.name))}")
        return None
    if remedy := kind.missing():
        file.intake.note(f"{kind.name} file not read: {remedy}")
        return None
    try:
        found = kind.read(file)
    except (InputError, MemoryError):
        raise
    except Exception as error:  # libraries raise errors of many kinds for damaged files
        if isinstance(error, OSError) and error.errno in TROUBLES:
            raise
        raise InputError(f"cannot be read: {first_line(error)}") from None
    return Contents(found) if isinstance(found, dict) else found


def _document(doc_id: str, fields: Fields, kind: FileType, around: _Around) -> Document:
    """Return the document with these fields; InputError if it cannot be indexed."""
    title = fields.get("title") or around.inherited.get("title", "")
    if rest := title[LONGEST_TITLE:]:
        title = title[:LONGEST_TITLE]
        fields = {**fields, "text": f"{rest}\n{fields.get('text', '')}"}
        fields.pop(SECTION_STARTS, None)  # they are somewhere else now
    language = "" if kind.name == "code" else language_of(fields.get("text", ""))
    known = {"language": language} if language else {}
    # the time of its file says little about an e-mail, and nothing about those in a mailbox
    sent = (fields if kind.name == "email" else around.inherited).get("date")
    about = {**around.about, **({"modified": sent[:10]} if sent else {}), "type": kind.name}
    fields = {**around.inherited, **fields, "title": title, **known}
    document = Document(doc_id, {**fields, **about})
    if document.fault:
        raise InputError(document.fault)
    return document


def doc_id_of(path: str) -> str:
    """Return `path` with white space and % replaced by the hexadecimal values of their bytes."""
    return re.sub(r"[\s%]", lambda found: "".join(f"%{b:02X}" for b in found[0].encode()), path)


def _safe_name(name: str) -> str:
    """Return the last part of a path that a stranger wrote, short and printable."""
    last = re.split(r"[/\\]", name)[-1]
    printable = "".join(c for c in last if c.isprintable()).strip(" .")
    path = Path(printable)
    return path.stem[:LONGEST_NAME] + path.suffix[:20] or "attachment"


def _unique(name: str, names: Counter[str]) -> str:
    """Return the name, preceded by a number if it is not the first one."""
    names[name] += 1
    return name if names[name] == 1 else _unique(f"{names[name]}-{name}", names)
