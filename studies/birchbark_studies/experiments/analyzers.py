"""How does text analysis affect BM25? Tables 1 to 3 of the uva paper."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from birchbark import FirstStage, Index, InputError, Run, defaults, rank_queries
from birchbark.checkpoint.locate import load_vocabulary, open_named
from birchbark.index.build_index import Schema
from birchbark.index.describe import describe
from birchbark.index.layout import CONTENTS
from birchbark.section import Section
from birchbark.show.table import Column, Group, Heading, Row, Style, build_tables, columns
from birchbark.text.analyzer import NAMES, WORDPIECE, Analyzer, analyzer
from birchbark_studies.collections import TestCollection
from birchbark_studies.comparison import measure_columns
from birchbark_studies.outcome import Outcome, check_run_names
from birchbark_studies.recipe import Experiment, Recipe
from birchbark_studies.workspace import Workspace

SIZES = (
    *columns(Style.COUNT, "documents", "terms", "distinct terms"),
    Column("terms per document", Style.DECIMAL),
    Column("queries", Style.COUNT),
    Column("terms per query", Style.DECIMAL),
)
UNKNOWN = columns(
    Style.COUNT,
    "words",
    "unknown",
    "distinct unknown",
    "split",
    "distinct split",
    "unknown in queries",
    "distinct unknown in queries",
    "split in queries",
)
UNKNOWN_NOTE = (
    "Unknown words cannot be segmented with the vocabulary and are not indexed. Split words "
    "consist of two or more WordPieces. Words are delimited by white space and punctuation and "
    "contain at least one letter or digit. Distinct words are counted in the form that is looked "
    "up in the vocabulary: after stemming, if the analyzer stems."
)


@dataclass(frozen=True, slots=True)
class AnalyzerExperiment(Experiment):
    """The settings of a study of analyzers.

    Attributes:
        names: The names of the analyzers; the first is the baseline.
        vocabulary: The model whose vocabulary the WordPiece analyzers use.
        example: A text for which the output of each analyzer is shown.
    """

    names: tuple[str, ...]
    vocabulary: str
    example: str

    @classmethod
    def read(cls, section: Section) -> AnalyzerExperiment:
        """Read the table [analyzers] of a recipe."""
        names = section.texts("names")
        for name in names:
            if name not in NAMES:
                raise InputError(
                    f"unknown analyzer {name!r}",
                    where=section.where("names"),
                    wanted=f"one of {', '.join(NAMES)}",
                )
        check_run_names(names, section.where("names"))
        vocabulary = section.text("vocabulary", defaults.MODEL)
        example = section.text("example", "orchestrating")
        section.reject_unknown_keys()
        return cls(names, vocabulary, example)

    @property
    def models(self) -> tuple[str, ...]:
        """The model that provides the vocabulary, if an analyzer needs one."""
        return (self.vocabulary,) if self._wordpiece else ()

    @property
    def _wordpiece(self) -> tuple[str, ...]:
        return tuple(name for name in self.names if name in WORDPIECE)

    def layout(self, measures: tuple[str, ...]) -> Mapping[str, tuple[Column, ...]]:
        """Map the name of each table to its columns."""
        unknown = {"unknown": UNKNOWN} if self._wordpiece else {}
        return {
            "example": columns(Style.TEXT, f"terms of “{self.example}”"),
            "sizes": SIZES,
            **unknown,
            "measures": measure_columns(measures),
        }

    def run(self, recipe: Recipe, workspace: Workspace) -> Outcome:
        """Index each collection with each analyzer, rank with BM25, evaluate and count terms."""
        vocabulary = load_vocabulary(self.vocabulary) if self._wordpiece else None
        schemas = {n: Schema(n, vocabulary if n in WORDPIECE else None) for n in self.names}
        comparison = recipe.comparison(self.names[0])
        groups: dict[str, list[Group]] = {"sizes": [], "unknown": [], "measures": []}
        runs: dict[str, Run] = {}
        for files in recipe.collections:
            collection = workspace.open(files)
            indexes = {n: workspace.index(collection, schema) for n, schema in schemas.items()}
            ranked = [_rank(recipe, workspace, collection, n, i) for n, i in indexes.items()]
            runs |= {f"{collection.name}.{run.tag}": run for run in ranked}
            wordpiece = {n: indexes[n] for n in self._wordpiece}
            groups["sizes"].append(_sizes(collection, indexes))
            groups["unknown"].append(_unknown(collection, wordpiece))
            groups["measures"].append(comparison.group(collection.name, collection.qrels, ranked))
        headings = {
            "example": Heading("Example text", "analyzer"),
            "sizes": Heading("Index sizes", "analyzer", "Terms are counted with repetitions."),
            "unknown": Heading("Words missing from the vocabulary", "analyzer", UNKNOWN_NOTE),
            "measures": Heading("BM25 by analyzer", "analyzer", comparison.note()),
        }
        tables = build_tables(
            self.layout(recipe.measures), headings, {"example": [self._example(schemas)], **groups}
        )
        models = {m: open_named(m).fingerprint for m in self.models}
        return Outcome(tables, comparison.plots(groups["measures"]), runs, models)

    def _example(self, schemas: Mapping[str, Schema]) -> Group:
        rows = []
        for name, schema in schemas.items():
            terms = analyzer(name, schema.vocabulary).terms(self.example)
            rows.append(Row.of(name, ["  ".join(terms) or "–"]))
        return Group("", tuple(rows))


def _rank(
    recipe: Recipe, workspace: Workspace, collection: TestCollection, name: str, index: Index
) -> Run:
    workspace.progress(f"{collection.name}: ranking, {name}")
    stage = FirstStage(recipe.bm25)
    return rank_queries(index, collection.queries, stage, depth=recipe.depth, tag=name)


def _sizes(collection: TestCollection, indexes: Mapping[str, Index]) -> Group:
    rows = []
    for name, index in indexes.items():
        totals, queries = index.totals(CONTENTS), collection.queries
        query_terms = sum(len(index.analyzer.terms(query.text)) for query in queries)
        values = (
            len(index),
            totals.tokens,
            describe(index)[f"{CONTENTS}: distinct terms"],
            totals.tokens / len(index),
            len(queries),
            query_terms / len(queries),
        )
        rows.append(Row.of(name, values))
    return Group(collection.name, tuple(rows))


def _unknown(collection: TestCollection, indexes: Mapping[str, Index]) -> Group:
    rows = []
    for name, index in indexes.items():
        texts = (document.contents for document in collection.documents()[0])
        words = _words(index.analyzer, texts)
        query_words = _words(index.analyzer, (query.text for query in collection.queries))
        unknown, split = _unknown_and_split(index.analyzer, words)
        query_unknown, query_split = _unknown_and_split(index.analyzer, query_words)
        in_documents = (unknown.total(), len(unknown), split.total(), len(split))
        in_queries = (query_unknown.total(), len(query_unknown), query_split.total())
        rows.append(Row.of(name, (words.total(), *in_documents, *in_queries)))
    return Group(collection.name, tuple(rows))


def _words(analysis: Analyzer, texts: Iterable[str]) -> Counter[str]:
    words: Counter[str] = Counter()
    for text in texts:
        words.update(analysis.tokens(text))
    return words


def _unknown_and_split(
    analysis: Analyzer, words: Counter[str]
) -> tuple[Counter[str], Counter[str]]:
    """Count unknown words and split words, each in the form looked up in the vocabulary."""
    unknown: Counter[str] = Counter()
    split: Counter[str] = Counter()
    for word, count in words.items():
        pieces = len(analysis.normalise(word))
        if pieces != 1:
            (split if pieces else unknown)[WORDPIECE[analysis.name](word)] += count
    return unknown, split
