"""What is in a recipe's collections?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from birchbark.collection.documents import read_collection
from birchbark.collection.folds import read_folds
from birchbark.collection.intake import Intake
from birchbark.collection.irds import place
from birchbark.collection.qrels import read_qrels
from birchbark.collection.queries import read_queries
from birchbark.collection.runs import read_run
from birchbark.errors import InputError
from birchbark.records import Document, Qrels, Query, Run


@dataclass(frozen=True, slots=True)
class CollectionFiles:
    """A test collection as a recipe declares it: its name, and paths below the data root.

    documents, queries: empty where neither texts are read, nor queries asked.
    run: a first-stage run that others made, where it is to be used instead of ours; else empty.
    folds: those that others used; else empty. format: of the documents, where their name does not
    tell; else empty.
    """

    name: str
    documents: str
    queries: str
    qrels: str
    topic_fields: tuple[str, ...] = ("title",)
    run: str = ""
    folds: str = ""
    format: str = ""

    @property
    def files(self) -> tuple[str, ...]:
        """All paths."""
        named = self.documents, self.queries, self.qrels, self.run, self.folds
        return tuple(filter(None, named))


@dataclass(frozen=True, slots=True)
class TestCollection:
    """Documents to read, and the judged queries. Queries without judgments are left out.

    run: the first stage that the recipe names, None if it is ours to make. folds: of queries, None
    if they are ours to deal.
    """

    name: str
    source: Path | None
    queries: tuple[Query, ...]
    qrels: Qrels
    run: Run | None = None
    folds: tuple[tuple[str, ...], ...] | None = None
    format: str = ""

    def documents(self, intake: Intake) -> Iterator[Document]:
        """The documents, read anew at each call; InputError where the recipe names none."""
        if self.source is None:
            raise InputError("this study needs documents", where=f"collection {self.name}")
        return read_collection(str(self.source), intake, self.format or None)


def open_collection(files: CollectionFiles, root: Path) -> TestCollection:
    """Read queries and judgments; the documents are left for later."""
    qrels = read_qrels(place(root, files.qrels))
    if files.queries:
        queries = read_queries(place(root, files.queries), files.topic_fields)
    else:
        queries = [Query(query_id, "") for query_id in qrels.grades]
    judged = tuple(query for query in queries if query.query_id in qrels.grades)
    if not judged:
        raise InputError(
            "no query is judged", where=str(place(root, files.queries)), wanted=files.qrels
        )
    run = read_run(root / files.run) if files.run else None
    folds = read_folds(root / files.folds, qrels.grades) if files.folds else None
    source = place(root, files.documents) if files.documents else None
    return TestCollection(files.name, source, judged, qrels, run, folds, files.format)
