"""How is a collection of any supported format read and checked?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from birchbark.collection.cord19 import METADATA, is_release, read_cord19
from birchbark.collection.file_readers.file_types import file_type
from birchbark.collection.files.folder import read_folder
from birchbark.collection.ir_datasets import dataset_id, read_documents
from birchbark.collection.jsonl import read_jsonl
from birchbark.collection.nyt import read_nyt
from birchbark.collection.parquet import read_parquet
from birchbark.collection.parsing.intake import Intake
from birchbark.collection.parsing.lines import COMPRESSED
from birchbark.collection.pydocs import read_pydocs, standard_library
from birchbark.collection.trec import read_trec
from birchbark.collection.trec_car import read_car
from birchbark.collection.tsv import read_tsv
from birchbark.collection.wapo import read_wapo
from birchbark.errors import InputError
from birchbark.records import Document

Reader = Callable[[Path, Intake], Iterator[tuple[str, Document]]]

BEIR_CORPUS = "corpus.jsonl"


def _read_beir(path: Path, intake: Intake) -> Iterator[tuple[str, Document]]:
    """Yield the documents of a folder in BEIR's layout, which also has queries and qrels."""
    intake.note(f"only {BEIR_CORPUS} is read, as in BEIR; --format folder reads all files")
    return read_jsonl(path / BEIR_CORPUS, intake)


READERS: dict[str, Reader] = {
    "jsonl": read_jsonl,
    "tsv": read_tsv,
    "trec": read_trec,
    "folder": read_folder,
    "beir": _read_beir,
    "pydocs": read_pydocs,
    "nyt": read_nyt,
    "wapo": read_wapo,
    "cord19": read_cord19,
    "car": read_car,
    "parquet": read_parquet,
}
MANY_FILES = ("folder", "trec", "nyt")  # formats whose files `Intake` can choose
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
    ".cbor": "car",
    ".parquet": "parquet",
}
IR_DATASETS = "ir_datasets"  # the format of `ir_datasets:ID`


def read_collection(
    collection: Path | str, intake: Intake | None = None, format_name: str | None = None
) -> Iterator[Document]:
    """Yield the documents of a collection.

    A record that cannot be read, and an invalid or repeated id, is a bad record.

    Args:
        collection: A file, a folder, `ir_datasets:ID`, or `pydocs`: the docstrings of this Python's
            standard library.
        intake: What to do with bad records. Default `Intake()`: raise the first one.
        format_name: `jsonl`, `tsv`, `trec`, `folder`, `beir`, `pydocs`, `nyt`, `wapo`,
            `cord19`, `car` or `parquet`.
            Default None: detect the format from the path.

    Raises:
        InputError: If the collection does not exist, its format is unknown, it contains a bad
            record that `intake` does not skip, or it contains no documents.
        MissingPackageError: If `ir_datasets:ID` needs the package ir_datasets, TREC CAR
            cbor2, or Parquet pyarrow.
    """
    collection = str(collection)
    intake = Intake() if intake is None else intake
    if not collection:
        raise InputError("the name of the collection is empty")
    path = Path(collection)
    name = collection_format(collection, format_name)
    if collection == name == "pydocs":
        path = standard_library()
    dataset = bool(dataset_id(path))
    if name not in READERS and not dataset:
        raise InputError(f"unknown format {name!r}", wanted=f"one of {', '.join(READERS)}")
    if not dataset and not path.exists():
        raise InputError("no such file or folder", where=collection)
    chooses = intake.include or intake.exclude or intake.follow_links
    if chooses and not (path.is_dir() and name in MANY_FILES):
        raise InputError(
            "include, exclude and follow_links have no effect here",
            where=collection,
            wanted=f"a folder of one of the formats {', '.join(MANY_FILES)}",
        )
    read = read_documents if dataset else READERS[name]
    return checked_documents(read(path, intake), collection, intake)


def collection_format(collection: str, format_name: str | None = None) -> str:
    """Return the format of a collection: `format_name`, or what its path indicates.

    Raises InputError if the path does not exist, or does not indicate any, and if a format is named
    for a data set of ir_datasets, which has its own.
    """
    if dataset_id(Path(collection)):
        if format_name:
            raise InputError(
                "a data set of ir_datasets has a format of its own",
                where=collection,
                found=format_name,
                remedy="name no format",
            )
        return IR_DATASETS
    if format_name is None and collection == "pydocs":
        return "pydocs"
    return format_name or detect_format(Path(collection))


def checked_documents(
    located: Iterable[tuple[str, Document]],
    collection: str,
    intake: Intake,
    *,
    needed: bool = True,
) -> Iterator[Document]:
    """Yield the documents that pass the checks of `read_collection`.

    located: the location and the document of each record. collection: its name, for errors.
    needed: whether it is an error if there are none.
    """
    seen: set[str] = set()
    for location, document in located:
        fault = document.fault
        if document.doc_id in seen:
            fault = f"a second document with the id {document.doc_id}"
        if fault:
            intake.bad(InputError(fault, where=location))
        else:
            seen.add(document.doc_id)
            if not document.contents.strip():
                intake.note("document without text")
            yield document
    if needed and not seen:
        bad = intake.skipped
        raise InputError(
            "no documents",
            where=collection,
            found=f"{len(bad):,} skipped, first {bad[0]}" if bad else "",
            remedy="; ".join(intake.notes)
            or ("" if bad else "check the path; or name another format: --format"),
        )


def detect_format(path: Path) -> str:
    """Return the format that the file name of `path` indicates; InputError if there is none."""
    if path.is_dir():
        if is_release(path):
            return "cord19"
        return "beir" if (path / BEIR_CORPUS).is_file() else "folder"
    if not path.exists():
        raise InputError("no such file or folder", where=str(path))
    if path.name == METADATA:
        return "cord19"
    suffixes = [s.lower() for s in path.suffixes]
    suffix = next((s for s in reversed(suffixes) if s not in COMPRESSED), "")
    if suffix not in SUFFIXES:
        remedy = f"set --format: one of {', '.join(READERS)}"
        if file_type(path):
            remedy += "; or name its folder, whose files are read by their types"
        what = "cannot detect the format from the file name"
        raise InputError(what, where=str(path), remedy=remedy)
    return SUFFIXES[suffix]
