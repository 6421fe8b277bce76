"""How often is a query said to have no answer, if it has one and if it has none?

Half of a collection's queries keep their relevant documents. Those of the other half are taken
away, so that these have none left, and queries of the other collections are asked as well. Each is
asked of the default search, on an index as it is when just built; the probability of the best hit
decides (docs/explanation/answer-probability.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from random import Random
from statistics import fmean

from birchbark import InputError, Query, Searcher, build_index, defaults
from birchbark.checkpoint.locate import open_named
from birchbark.index.build_index import Schema
from birchbark.index.sharded_writer import open_writer
from birchbark.pipeline.answers.answer_probability import UNLIKELY
from birchbark.pipeline.loaded_models import LoadedModels
from birchbark.pipeline.stored.static_vectors import static_vectors
from birchbark.pipeline.upkeep.update_index import attach
from birchbark.section import Section
from birchbark.show.plot import Curves
from birchbark.show.table import Column, Group, Heading, Row, Style, build_tables, columns
from birchbark_studies.collections import CollectionFiles, TestCollection
from birchbark_studies.outcome import Outcome
from birchbark_studies.recipe import Experiment, Recipe
from birchbark_studies.workspace import Workspace, intake_notes

ANSWERED, REMOVED, FOREIGN = KINDS = (
    "with an answer",
    "documents taken away",
    "of other collections",
)
THRESHOLDS = (0.05, 0.1, UNLIKELY, 0.2, 0.3, 0.5)
MEAN = "Mean of the collections"
NOTE = (
    "Share of the queries of each kind whose best hit is less probable than the threshold, so that "
    "they are called unanswered. Wanted are low shares of queries with an answer and high ones of "
    f"the others. The threshold of the default search is {UNLIKELY:g}."
)
Probabilities = Mapping[str, Sequence[float]]  # kind of query → probability of each best hit


@dataclass(frozen=True, slots=True)
class AnswersExperiment(Experiment):
    """The settings of a study of unanswered queries.

    Attributes:
        thresholds: Probabilities below which a query is called unanswered, ascending.
        queries: Number of queries of each kind, at most.
    """

    uses_first_stage = False
    uses_measures = False
    thresholds: tuple[float, ...]
    queries: int

    @classmethod
    def read(cls, section: Section) -> AnswersExperiment:
        """Read the table [answers] of a recipe."""
        thresholds = section.numbers("thresholds", THRESHOLDS)
        if thresholds[0] <= 0 or thresholds[-1] >= 1:
            raise InputError(
                "out of range", where=section.where("thresholds"), wanted="between 0 and 1"
            )
        queries = section.integer("queries", 150, minimum=1)
        section.reject_unknown_keys()
        return cls(thresholds, queries)

    @property
    def models(self) -> tuple[str, ...]:
        """The models of the default search."""
        return defaults.MODEL, defaults.EMBEDDING, defaults.STATIC_EMBEDDING

    def documents_read(self, collection: CollectionFiles) -> None:
        """Return None: the default search reads until it can stop."""

    def layout(self, measures: tuple[str, ...]) -> Mapping[str, tuple[Column, ...]]:
        """Map the name of the table to its columns."""
        return {"unanswered": columns(Style.SHARE, *KINDS)}

    def run(self, recipe: Recipe, workspace: Workspace) -> Outcome:
        """Ask each collection, and count the queries below each threshold."""
        if len(recipe.collections) < 2:
            raise InputError(
                "queries of other collections are asked, too",
                where=str(recipe.path),
                wanted="two collections or more",
                found="1",
            )
        collections = [workspace.open(files) for files in recipe.collections]
        loaded, shares = LoadedModels(), dict[str, list[list[float]]]()
        for collection in collections:
            others = list(chain(*(c.queries for c in collections if c is not collection)))
            foreign = Random(recipe.seed).sample(others, min(self.queries, len(others)))
            found = self._ask(collection, foreign, recipe.seed, workspace, loaded)
            shares[collection.name] = [_shares(found, limit) for limit in self.thresholds]
        mean = shares[MEAN] = _mean(shares.values())
        names = [f"{threshold:g}" for threshold in self.thresholds]
        groups = [Group(name, tuple(map(Row.of, names, of_one))) for name, of_one in shares.items()]
        series = {
            kind: tuple(zip(self.thresholds, values, strict=True))
            for kind, values in zip(KINDS, zip(*mean, strict=True), strict=True)
        }
        title = "Called unanswered, by threshold"
        return Outcome(
            build_tables(
                self.layout(()),
                {"unanswered": Heading(title, "threshold", NOTE)},
                {"unanswered": groups},
            ),
            (Curves("unanswered", title, "threshold", "share of queries", series, (UNLIKELY,)),),
            models={name: open_named(name).fingerprint for name in self.models},
        )

    def _ask(
        self,
        collection: TestCollection,
        foreign: Sequence[Query],
        seed: int,
        workspace: Workspace,
        loaded: LoadedModels,
    ) -> Probabilities:
        """Return the probability of the best hit for queries of each kind."""
        relevant = {
            query.query_id: {
                doc_id
                for doc_id, grade in collection.qrels.grades[query.query_id].items()
                if grade >= collection.qrels.relevant
            }
            for query in collection.queries
        }
        queries = [query for query in collection.queries if relevant[query.query_id]]
        half = len(queries) // 2
        drawn = Random(seed).sample(queries, len(queries))
        answered, removed = drawn[:half][: self.queries], drawn[half:][: self.queries]
        gone = set().union(*(relevant[query.query_id] for query in removed))
        asked = {
            ANSWERED: [query for query in answered if relevant[query.query_id] - gone],
            REMOVED: removed,
            FOREIGN: foreign,
        }
        if missing := [kind for kind, of_kind in asked.items() if not of_kind]:
            raise InputError(
                f"no queries {missing[0]}",
                where=f"collection {collection.name}",
                remedy="use a collection with more judged queries",
            )
        workspace.progress(f"{collection.name}: {len(gone):,} documents are taken away")
        directory = workspace.scratch / f"answers-{collection.name}"
        documents, intake = collection.documents()
        kept = (d for d in documents if d.doc_id not in gone)
        build_index(kept, directory, Schema().reading(collection.files.read_fields), replace=True)
        for note in intake_notes(intake):
            workspace.progress(f"note: {collection.name}: {note}")
        with open_writer(directory) as writer:
            attach(writer, [static_vectors()])
        searcher, found = Searcher(directory, loaded=loaded), {}
        for kind, of_kind in asked.items():
            workspace.progress(f"{collection.name}: {len(of_kind):,} queries {kind}")
            found[kind] = [_probability(searcher, query) for query in of_kind]
        return found


def _probability(searcher: Searcher, query: Query) -> float:
    """Return the probability of the best hit; 0 without hits or if it is not known."""
    hits = searcher.search(searcher.parse(query.text, literal=True), 1).hits
    return (hits[0].probability or 0.0) if hits else 0.0


def _shares(found: Probabilities, threshold: float) -> list[float]:
    return [sum(p < threshold for p in of_kind) / len(of_kind) for of_kind in found.values()]


def _mean(shares: Iterable[Sequence[Sequence[float]]]) -> list[list[float]]:
    """Return the means over the collections. shares: of each collection, threshold and kind."""
    return [
        [fmean(values) for values in zip(*of_threshold, strict=True)]
        for of_threshold in zip(*shares, strict=True)
    ]
