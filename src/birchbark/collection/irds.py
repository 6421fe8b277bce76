"""How does what ir_datasets offers (`ir_datasets:ID`) become Documents, Queries and Qrels?

The package knows where hundreds of collections lie or are fetched from, those under a licence, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from birchbark.artifact import fingerprint_all
from birchbark.collection.intake import Intake
from birchbark.errors import InputError, MissingPackageError, first_line
from birchbark.records import Document, Query

PREFIX = "ir_datasets:"
TITLES, TEXTS = ("title", "headline"), ("body", "text", "abstract", "contents")


def named(path: Path | str) -> str:
    """The ID in `path`; empty if it is the path of a file."""
    text = str(path)
    return text.removeprefix(PREFIX) if text.startswith(PREFIX) else ""


def is_installed() -> bool:
    """Whether such names can be read here."""
    return find_spec("ir_datasets") is not None


def check_installed(name: str) -> None:
    """Raise MissingPackageError where `name` cannot be read."""
    if not is_installed():
        raise MissingPackageError(
            f"{name} needs ir_datasets", remedy="pip install 'birchbark[datasets]'"
        )


def place(root: Path, file: str) -> Path:
    """Where `file` lies: below `root`, unless ir_datasets is to be asked for it."""
    return Path(file) if named(file) else root / file


def fingerprint(path: Path) -> str:
    """Of the file or folder at `path`, or the version of ir_datasets where that reads it."""
    if named(path):
        return f"ir_datasets {version('ir_datasets')}"
    return fingerprint_all(path)


def read_documents(path: Path, intake: Intake) -> Iterator[tuple[str, Document]]:
    """Documents in the order of ir_datasets: title or headline, and body, text or abstract.

    One whose text has another name, or is in parts, gives its default text instead. Raises
    MissingPackageError without the package, InputError for an ID it does not know, for one without
    documents, and for what the package itself cannot read.
    """
    for number, found in enumerate(_ask(path, "docs"), 1):
        values = found._asdict()
        title = next((values[name] for name in TITLES if _is_text(values.get(name))), "")
        text = next((values[name] for name in TEXTS if _is_text(values.get(name))), None)
        if text is None:
            title, text = "", found.default_text()
        fields = {"title": " ".join(title.split()), "text": text}
        where = f"{path}, document {number}"
        if isinstance(text, str):
            yield where, Document(found.doc_id, fields)
        else:
            intake.bad(InputError("document has no text", where=where, found=type(text).__name__))


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value)


def read_queries(path: Path, topic_fields: Sequence[str]) -> Iterator[tuple[str, Query]]:
    """Queries: their `topic_fields`, joined by a space.

    Where that is the title alone, and they have none, their default text. Errors as
    `read_documents`, and InputError for a field that they have not.
    """
    for number, found in enumerate(_ask(path, "queries"), 1):
        values, where = found._asdict(), f"{path}, query {number}"
        if tuple(topic_fields) == ("title",) and "title" not in values:
            parts = [found.default_text()]
        elif absent := [name for name in topic_fields if name not in values]:
            raise InputError(
                f"no field {absent[0]}", where=where, remedy=f"one of {', '.join(values)}"
            )
        else:
            parts = [values[name] or "" for name in topic_fields]
        yield where, Query(found.query_id, " ".join(" ".join(parts).split()))


def read_judgments(path: Path) -> Iterator[tuple[str, tuple[str, str, int]]]:
    """Query, document and grade of each judgment. Errors as `read_documents`."""
    for number, found in enumerate(_ask(path, "qrels"), 1):
        yield f"{path}, judgment {number}", (found.query_id, found.doc_id, found.relevance)


def _ask(path: Path, what: str) -> Iterator[Any]:
    """Documents, queries or judgments of the data set, as ir_datasets gives them."""
    check_installed(str(path))
    import ir_datasets

    try:
        dataset: Any = ir_datasets.load(named(path))
        has = getattr(dataset, f"has_{what}")()
    except KeyError:
        raise InputError(
            "ir_datasets has no such data set",
            where=str(path),
            remedy="see https://ir-datasets.com",
        ) from None
    if not has:
        raise InputError(
            f"this data set has no {what}", where=str(path), remedy="see https://ir-datasets.com"
        )
    try:
        yield from getattr(dataset, f"{what}_iter")()
    except Exception as fault:  # whatever the package raises for files that it cannot get
        raise InputError(
            f"ir_datasets cannot read it: {first_line(fault) or type(fault).__name__}",
            where=str(path),
            remedy=f"see https://ir-datasets.com/{named(path).split('/')[0]}",
        ) from fault
