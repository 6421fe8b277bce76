"""How are collections, queries and qrels read through the package ir_datasets (`ir_datasets:ID`)?

The package downloads hundreds of test collections, and reads licensed collections from their
original files. See https://ir-datasets.com.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from birchbark.collection.parsing.intake import Intake
from birchbark.errors import InputError, MissingPackageError, first_line
from birchbark.records import Document, Query

PREFIX = "ir_datasets:"
TITLE_FIELDS, TEXT_FIELDS = ("title", "headline"), ("body", "text", "abstract", "contents")


def dataset_id(path: Path | str) -> str:
    """Return the ID in `ir_datasets:ID`; an empty string for any other path."""
    text = str(path)
    return text.removeprefix(PREFIX) if text.startswith(PREFIX) else ""


def is_installed() -> bool:
    """Return whether ir_datasets is installed."""
    return find_spec("ir_datasets") is not None


def check_installed(name: str) -> None:
    """Raise MissingPackageError for the data set `name` unless ir_datasets is installed."""
    if not is_installed():
        raise MissingPackageError(
            f"{name} needs ir_datasets", remedy="pip install 'birchbark[datasets]'"
        )


def read_documents(path: Path, intake: Intake) -> Iterator[tuple[str, Document]]:
    """Yield location and Document of each record, in the order of ir_datasets.

    The title is the first non-empty field of `title` and `headline`, the text the first non-empty
    field of `body`, `text`, `abstract` and `contents`. A record without such a text has the default
    text of ir_datasets, and no title.

    Raises MissingPackageError if the package is not installed, InputError for an unknown ID, for a
    data set without documents, and for files that ir_datasets cannot read.
    """
    for number, record in enumerate(_records(path, "docs"), 1):
        values = record._asdict()
        title = next((values[name] for name in TITLE_FIELDS if _has_text(values.get(name))), "")
        text = next((values[name] for name in TEXT_FIELDS if _has_text(values.get(name))), None)
        if text is None:
            title, text = "", record.default_text()
        fields = {"title": " ".join(title.split()), "text": text}
        where = f"{path}, document {number}"
        if isinstance(text, str):
            yield where, Document(record.doc_id, fields)
        else:
            intake.bad(InputError("document has no text", where=where, found=type(text).__name__))


def _has_text(value: object) -> bool:
    return isinstance(value, str) and bool(value)


def read_queries(path: Path, topic_fields: Sequence[str]) -> Iterator[tuple[str, Query]]:
    """Yield location and Query of each record; its text is the `topic_fields`, joined by a space.

    If `topic_fields` is empty, it is their title, or their default text if the queries have no such
    field or have `headings`, too (TREC CAR). Raises InputError for a field that does not exist, and
    what `read_documents` raises.
    """
    for number, record in enumerate(_records(path, "queries"), 1):
        values, where = record._asdict(), f"{path}, query {number}"
        whole = "title" not in values or "headings" in values
        names = topic_fields or ("title",)
        if not topic_fields and whole:
            parts = [record.default_text()]
        elif absent := [name for name in names if name not in values]:
            raise InputError(
                f"no field {absent[0]}", where=where, wanted=f"one of {', '.join(values)}"
            )
        else:
            fields = [values[name] or "" for name in names]
            parts = [field if isinstance(field, str) else " ".join(field) for field in fields]
        yield where, Query(record.query_id, " ".join(" ".join(parts).split()))


def read_judgments(path: Path) -> Iterator[tuple[str, tuple[str, str, int]]]:
    """Yield the location of each judgment, and its (query_id, doc_id, grade).

    Raises what `read_documents` raises.
    """
    for number, record in enumerate(_records(path, "qrels"), 1):
        yield f"{path}, judgment {number}", (record.query_id, record.doc_id, record.relevance)


def _records(path: Path, kind: str) -> Iterator[Any]:
    """Yield the records of the data set. kind: `docs`, `queries` or `qrels`."""
    check_installed(str(path))
    import ir_datasets

    try:
        dataset: Any = ir_datasets.load(dataset_id(path))
        has = getattr(dataset, f"has_{kind}")()
    except KeyError:
        raise InputError(
            "ir_datasets has no such data set",
            where=str(path),
            remedy="see https://ir-datasets.com",
        ) from None
    if not has:
        raise InputError(
            f"this data set has no {kind}", where=str(path), remedy="see https://ir-datasets.com"
        )
    try:
        yield from getattr(dataset, f"{kind}_iter")()
    except Exception as error:  # ir_datasets raises errors of many kinds
        raise InputError(
            f"ir_datasets cannot read it: {first_line(error) or type(error).__name__}",
            where=str(path),
            remedy=f"see https://ir-datasets.com/{dataset_id(path).split('/')[0]}",
        ) from error
