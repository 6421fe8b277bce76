"""How does what ir_datasets offers (`ir_datasets:ID`) become Documents, Queries and Qrels?

The package knows where hundreds of collections lie or are fetched from, those under a licence, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from birchbark.collection.intake import Intake
from birchbark.errors import InputError, MissingPackageError
from birchbark.records import Document, Qrels, Query

PREFIX = "ir_datasets:"
TITLES, TEXTS = ("title", "headline"), ("body", "text", "abstract", "contents")


def named(path: Path | str) -> str:
    """The ID in `path`; empty if it is the path of a file."""
    text = str(path)
    return text.removeprefix(PREFIX) if text.startswith(PREFIX) else ""


def is_installed() -> bool:
    """Whether such names can be read here."""
    return find_spec("ir_datasets") is not None


def read_documents(path: Path, intake: Intake) -> Iterator[tuple[str, Document]]:
    """Documents in the order of ir_datasets: title or headline, and body, text or abstract.

    What else a document has is left out; one that has none of these gives its default text. Raises
    MissingPackageError without the package, InputError for an ID it does not know, and for one
    without documents.
    """
    for number, found in enumerate(_ask(path, "docs"), 1):
        values = found._asdict()
        title = next((values[name] for name in TITLES if values.get(name)), "")
        text = next((values[name] for name in TEXTS if values.get(name)), None)
        if text is None and not title:
            text = found.default_text()
        fields = {"title": " ".join(title.split()), "text": text or ""}
        yield f"{path}, document {number}", Document(found.doc_id, fields)


def read_queries(path: Path, topic_fields: Iterable[str]) -> Iterator[tuple[str, Query]]:
    """Queries: the `topic_fields` that they have, joined by a space; else their default text.

    Errors as `read_documents`.
    """
    for number, found in enumerate(_ask(path, "queries"), 1):
        values = found._asdict()
        parts = [values[name] for name in topic_fields if values.get(name)]
        text = " ".join(" ".join(parts or [found.default_text()]).split())
        yield f"{path}, query {number}", Query(found.query_id, text)


def read_qrels(path: Path) -> Qrels:
    """Judgments. Errors as `read_documents`."""
    grades: dict[str, dict[str, int]] = {}
    for found in _ask(path, "qrels"):
        grades.setdefault(found.query_id, {})[found.doc_id] = found.relevance
    if not grades:
        raise InputError("no judgments", where=str(path))
    return Qrels(grades)


def _ask(path: Path, what: str) -> Iterator[Any]:
    """Documents, queries or judgments of the data set, as ir_datasets gives them."""
    if not is_installed():
        raise MissingPackageError(
            f"{path} needs ir_datasets", remedy="pip install 'birchbark[datasets]'"
        )
    import ir_datasets

    try:
        dataset: Any = ir_datasets.load(named(path))
    except KeyError:
        raise InputError(
            "ir_datasets has no such data set",
            where=str(path),
            remedy="see https://ir-datasets.com",
        ) from None
    if not getattr(dataset, f"has_{what}")():
        raise InputError(
            f"this data set has no {what}", where=str(path), remedy="see https://ir-datasets.com"
        )
    return iter(getattr(dataset, f"{what}_iter")())
