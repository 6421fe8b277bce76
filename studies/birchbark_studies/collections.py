"""Which test collections does a recipe declare, and how are they read?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from birchbark import (
    Document,
    InputError,
    Qrels,
    Query,
    Run,
    defaults,
    read_collection,
    read_qrels,
    read_queries,
    read_run,
)
from birchbark.collection.data_files import data_path
from birchbark.collection.folds import read_folds
from birchbark.collection.parsing.intake import Intake
from birchbark.evaluate.folds import Folds, make_folds


@dataclass(frozen=True, slots=True)
class CollectionFiles:
    """A test collection as declared in a recipe: its name, and paths below the data root.

    Attributes:
        documents: Empty if the study reads no documents.
        queries: Empty if the study searches for no queries.
        qrels: The judgments.
        relevant: The lowest grade that counts as relevant, but in measures of grades such as nDCG.
        topic_fields: The fields of a TREC topic that make up the query text.
        run: A first-stage run, used instead of ranking with BM25; empty for none.
        folds: A file of folds, used instead of random folds; empty for none.
        format: The format of the documents; empty to infer it from the file name.
        encoding: The encoding of documents and queries.
        skip_bad: Whether bad records are skipped and counted; None to skip only files of a folder.
        read_fields: The document fields that models read after the title.
        include, exclude: Which files of a folder of documents are read; see `Intake`.
    """

    name: str
    documents: str
    queries: str
    qrels: str
    topic_fields: tuple[str, ...] = defaults.TOPIC_FIELDS
    run: str = ""
    folds: str = ""
    format: str = ""
    encoding: str = defaults.ENCODING
    skip_bad: bool | None = None
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    read_fields: tuple[str, ...] = defaults.READ_FIELDS
    relevant: int = 1

    @property
    def files(self) -> tuple[str, ...]:
        """The paths of all files."""
        paths = self.documents, self.queries, self.qrels, self.run, self.folds
        return tuple(filter(None, paths))


@dataclass(frozen=True, slots=True)
class TestCollection:
    """A test collection with its judged queries. Queries without judgments are left out.

    Attributes:
        files: What the recipe declares.
        source: The file or folder of documents; None if the recipe names none.
        run: The first-stage run named by the recipe; None to compute one.
        folds: The folds named by the recipe, as query ids; None to draw them at random.
    """

    files: CollectionFiles
    source: Path | None
    queries: tuple[Query, ...]
    qrels: Qrels
    run: Run | None = None
    folds: Folds | None = None

    @property
    def name(self) -> str:
        """The name of the collection in tables."""
        return self.files.name

    def folds_or_random(self, count: int, seed: int) -> Folds:
        """Return the folds named by the recipe, or else `count` random folds of all judged queries.

        Raises what `make_folds` raises.
        """
        return self.folds or make_folds(self.qrels.grades, count, seed)

    def documents(self) -> tuple[Iterator[Document], Intake]:
        """Return the documents, which are read as they are iterated, and what was noted of them.

        Every call reads them again. Raises InputError if the recipe names none.
        """
        if self.source is None:
            raise InputError("this study needs documents", where=f"collection {self.name}")
        remedy = 'correct it, or set "skip_bad" or "encoding" of the collection in the recipe'
        files = self.files
        intake = Intake(files.skip_bad, files.encoding, remedy, files.include, files.exclude)
        return read_collection(str(self.source), intake, files.format or None), intake


def open_collection(files: CollectionFiles, root: Path) -> TestCollection:
    """Read the queries and judgments. `TestCollection.documents` reads the documents later.

    Without a queries file, each judged query gets an empty text. Raises InputError if no query is
    judged, or none of those in the run.
    """
    qrels = replace(read_qrels(data_path(root, files.qrels)), relevant=files.relevant)
    if files.queries:
        path = data_path(root, files.queries)
        queries = read_queries(path, files.topic_fields, files.encoding)
    else:
        queries = [Query(query_id, "") for query_id in qrels.grades]
    judged = tuple(query for query in queries if query.query_id in qrels.grades)
    if not judged:
        raise InputError(
            "no query is judged",
            where=str(data_path(root, files.queries)),
            remedy=f"check that its query ids match those in {files.qrels}",
        )
    run = read_run(root / files.run) if files.run else None
    if run and run.rankings.keys().isdisjoint(query.query_id for query in judged):
        raise InputError(
            "the run ranks no judged query",
            where=str(root / files.run),
            remedy=f"check that its query ids match those in {files.qrels}",
        )
    folds = read_folds(root / files.folds, qrels.grades) if files.folds else None
    source = data_path(root, files.documents) if files.documents else None
    return TestCollection(files, source, judged, qrels, run, folds)
