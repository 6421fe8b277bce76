"""Which reader reads a collection, and what must hold for every collection, whatever its format?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from birchbark.collection.cord19 import METADATA, read_cord19
from birchbark.collection.folder import read_folder
from birchbark.collection.intake import Intake
from birchbark.collection.irds import named, read_documents
from birchbark.collection.jsonl import read_jsonl
from birchbark.collection.nyt import read_nyt
from birchbark.collection.pydocs import read_pydocs, standard_library
from birchbark.collection.trec import read_trec
from birchbark.collection.tsv import read_tsv
from birchbark.collection.wapo import read_wapo
from birchbark.errors import InputError
from birchbark.records import Document

Reader = Callable[[Path, Intake], Iterator[tuple[str, Document]]]

READERS: dict[str, Reader] = {
    "jsonl": read_jsonl,
    "tsv": read_tsv,
    "trec": read_trec,
    "folder": read_folder,
    "pydocs": read_pydocs,
    "nyt": read_nyt,
    "wapo": read_wapo,
    "cord19": read_cord19,
}
SUFFIXES = {
    ".jsonl": "jsonl",
    ".json": "jsonl",
    ".ndjson": "jsonl",
    ".tsv": "tsv",
    ".trec": "trec",
    ".sgml": "trec",
    ".sgm": "trec",
    ".tgz": "nyt",
    ".jl": "wapo",
}


def read_collection(
    collection: str, intake: Intake, format_name: str | None = None
) -> Iterator[Document]:
    """Documents of `collection`: a file, a folder, `ir_datasets:ID`, or the word `pydocs`.

    The format is guessed from the name where `format_name` is not given. A doc_id that is empty or
    appears twice is a bad record; a collection without any document is an InputError.
    """
    if not collection:
        raise InputError("no collection was named")
    path = Path(collection)
    if named(path):
        return _checked(read_documents(path, intake), collection, intake)
    if collection == "pydocs" and format_name in (None, "pydocs"):
        path, format_name = standard_library(), "pydocs"
    name = format_name or detect_format(path)
    if name not in READERS:
        raise InputError(f"unknown format {name!r}", remedy=f"one of {', '.join(READERS)}")
    if not path.exists():
        raise InputError("no such file or folder", where=collection)
    return _checked(READERS[name](path, intake), collection, intake)


def _checked(
    found: Iterable[tuple[str, Document]], collection: str, intake: Intake
) -> Iterator[Document]:
    """What must hold for every collection."""
    seen: set[str] = set()
    for place, document in found:
        fault = document.fault
        if document.doc_id in seen:
            fault = f"a second document with the id {document.doc_id}"
        if fault:
            intake.bad(InputError(fault, where=place))
        else:
            seen.add(document.doc_id)
            if not document.contents.strip():
                intake.note("document without text")
            yield document
    if not seen:
        raise InputError(
            "no documents",
            where=collection,
            found=f"{len(intake.skipped)} bad records" if intake.skipped else "",
            remedy="; ".join(intake.notes) or "check the path and --format",
        )


def detect_format(path: Path) -> str:
    """The format that the name of `path` stands for; InputError if it stands for none."""
    if path.is_dir():
        return "folder"
    if not path.exists():
        raise InputError("no such file or folder", where=str(path))
    if path.name == METADATA:
        return "cord19"
    suffixes = [s.lower() for s in path.suffixes]
    suffix = next((s for s in reversed(suffixes) if s != ".gz"), "")
    if suffix not in SUFFIXES:
        raise InputError(
            "cannot tell the format from the name",
            where=str(path),
            remedy=f"give --format: one of {', '.join(READERS)}",
        )
    return SUFFIXES[suffix]
