"""What does the analysis of text do to BM25? Tables 1–3 of the uva paper."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from birchbark.checkpoint.named import DEFAULT_MODEL, load_vocabulary, open_named
from birchbark.collection.intake import Intake
from birchbark.errors import InputError
from birchbark.evaluate.measures import measure
from birchbark.index.build import Schema
from birchbark.index.describe import describe
from birchbark.index.layout import CONTENTS
from birchbark.index.reader import Index
from birchbark.records import Run
from birchbark.retrieve.first_stage import FirstStage, rank_queries
from birchbark.section import Section
from birchbark.show.table import Cell, Column, Group, Row, Style, Table
from birchbark.study.bench import Bench
from birchbark.study.comparison import FIGURES, compared, difference_dots, measure_columns
from birchbark.study.data import TestCollection
from birchbark.study.outcome import Outcome, check_run_names
from birchbark.study.recipe import Recipe
from birchbark.text.analyzer import NAMES, WORDPIECE, Analyzer, analyzer

SIZES = (
    Column("documents", Style.COUNT),
    Column("terms", Style.COUNT),
    Column("distinct terms", Style.COUNT),
    Column("terms a document", Style.DECIMAL),
    Column("queries", Style.COUNT),
    Column("terms a query", Style.DECIMAL),
)
UNKNOWN = (
    Column("words", Style.COUNT),
    Column("unknown", Style.COUNT),
    Column("distinct unknown", Style.COUNT),
    Column("split", Style.COUNT),
    Column("distinct split", Style.COUNT),
    Column("unknown in queries", Style.COUNT),
    Column("distinct unknown in queries", Style.COUNT),
    Column("split in queries", Style.COUNT),
)
UNKNOWN_NOTE = (
    "Unknown words cannot be spelled by the vocabulary and leave no term in the index; split ones "
    "are spelled by two pieces or more. Words are what stands between white space and punctuation "
    "and holds a letter or digit; distinct ones are counted as the vocabulary is asked for them, "
    "after stemming where there is any."
)


@dataclass(frozen=True, slots=True)
class AnalyzerStudy:
    """The choices of this kind.

    names: of the analyzers; the first is the baseline. vocabulary: model whose WordPieces the
    analyzers take that need any. example: a text to show what each makes of it.
    """

    names: tuple[str, ...]
    vocabulary: str
    example: str

    @classmethod
    def read(cls, section: Section) -> AnalyzerStudy:
        """From the table [analyzers] of a recipe."""
        names = section.texts("names")
        for name in names:
            if name not in NAMES:
                raise InputError(
                    f"unknown analyzer {name!r}",
                    where=section.where("names"),
                    remedy=f"one of {', '.join(NAMES)}",
                )
        check_run_names(names, section.where("names"))
        found = cls(
            names,
            section.text("vocabulary", DEFAULT_MODEL),
            section.text("example", "orchestrating"),
        )
        section.end()
        return found

    @property
    def models(self) -> tuple[str, ...]:
        """The model of the vocabulary, where it is needed."""
        return (self.vocabulary,) if self._wordpiece else ()

    @property
    def _wordpiece(self) -> tuple[str, ...]:
        return tuple(name for name in self.names if name in WORDPIECE)

    @property
    def files(self) -> tuple[str, ...]:
        """None besides the collections."""
        return ()

    def layout(self, measures: tuple[str, ...]) -> Mapping[str, tuple[Column, ...]]:
        """Name → columns of the tables."""
        unknown = {"unknown": UNKNOWN} if self._wordpiece else {}
        example = Column(f"terms of “{self.example}”", Style.TEXT)
        return {
            "example": (example,),
            "sizes": SIZES,
            **unknown,
            "measures": measure_columns(measures),
        }

    def run(self, recipe: Recipe, bench: Bench) -> Outcome:
        """Index each collection by each analysis, rank, measure, count."""
        pieces = load_vocabulary(self.vocabulary) if self._wordpiece else None
        schemas = {n: Schema(n, pieces if n in WORDPIECE else None) for n in self.names}
        family = len(recipe.collections) * (len(self.names) - 1) * len(recipe.measures)
        rows: dict[str, list[Group]] = {"sizes": [], "unknown": [], "measures": []}
        runs: dict[str, Run] = {}
        for files in recipe.collections:
            collection = bench.open(files)
            indexes = {n: bench.index(collection, schema) for n, schema in schemas.items()}
            ranked = [_rank(recipe, bench, collection, n, i) for n, i in indexes.items()]
            results = [measure(collection.qrels, run, recipe.measures) for run in ranked]
            runs |= {f"{collection.name}.{run.tag}": run for run in ranked}
            rows["sizes"].append(_sizes(collection, indexes))
            rows["unknown"].append(_unknown(collection, {n: indexes[n] for n in self._wordpiece}))
            measured = compared(results, self.names[0], recipe.seed, family)
            rows["measures"].append(Group(collection.name, measured))
        groups = {"example": [self._example(schemas)], **rows}
        plots = tuple(
            difference_dots(f"differences-{n}", group, recipe.measures, self.names[0])
            for n, group in enumerate(rows["measures"], 1)
        )
        models = {m: open_named(m).fingerprint for m in self.models}
        return Outcome(self._tables(recipe, groups, family), plots, runs, models)

    def _example(self, schemas: Mapping[str, Schema]) -> Group:
        made = {name: analyzer(name, schema.vocabulary) for name, schema in schemas.items()}
        rows = [Row(n, (Cell("  ".join(a.terms(self.example)) or "–"),)) for n, a in made.items()]
        return Group("", tuple(rows))

    def _tables(
        self, recipe: Recipe, groups: Mapping[str, list[Group]], family: int
    ) -> tuple[Table, ...]:
        titles = {
            "example": ("One text, analysed", ""),
            "sizes": ("What is indexed", "Terms after the analysis, repeated as they occur."),
            "unknown": ("Words that are not in the vocabulary", UNKNOWN_NOTE),
            "measures": ("BM25 by analysis", FIGURES.format(baseline=self.names[0], family=family)),
        }
        return tuple(
            Table(name, titles[name][0], "analysis", columns, tuple(groups[name]), titles[name][1])
            for name, columns in self.layout(recipe.measures).items()
        )


def _rank(recipe: Recipe, bench: Bench, collection: TestCollection, name: str, index: Index) -> Run:
    bench.tell(f"{collection.name}: ranking, {name}")
    stage = FirstStage(recipe.bm25)
    return rank_queries(index, collection.queries, stage, depth=recipe.depth, tag=name)


def _sizes(collection: TestCollection, indexes: Mapping[str, Index]) -> Group:
    rows = []
    for name, index in indexes.items():
        totals, queries = index.totals(CONTENTS), collection.queries
        asked = sum(len(index.analyzer.terms(query.text)) for query in queries)
        figures = (
            len(index),
            totals.tokens,
            describe(index)[f"{CONTENTS}: distinct terms"],
            totals.tokens / len(index),
            len(queries),
            asked / len(queries),
        )
        rows.append(Row(name, tuple(map(Cell, figures))))
    return Group(collection.name, tuple(rows))


def _unknown(collection: TestCollection, indexes: Mapping[str, Index]) -> Group:
    rows = []
    for name, index in indexes.items():
        texts = (document.contents for document in collection.documents(Intake()))
        words = _words(index.analyzer, texts)
        asked = _words(index.analyzer, (query.text for query in collection.queries))
        unknown, split = _spelled(index.analyzer, words)
        unknown_asked, split_asked = _spelled(index.analyzer, asked)
        counts = (unknown.total(), len(unknown), split.total(), len(split))
        figures = (
            words.total(),
            *counts,
            unknown_asked.total(),
            len(unknown_asked),
            split_asked.total(),
        )
        rows.append(Row(name, tuple(map(Cell, figures))))
    return Group(collection.name, tuple(rows))


def _words(analysis: Analyzer, texts: Iterable[str]) -> Counter[str]:
    words: Counter[str] = Counter()
    for text in texts:
        words.update(analysis.tokens(text))
    return words


def _spelled(analysis: Analyzer, words: Counter[str]) -> tuple[Counter[str], Counter[str]]:
    """The unknown ones among `words`, and those that are split; stemmed as for the vocabulary."""
    unknown: Counter[str] = Counter()
    split: Counter[str] = Counter()
    for word, count in words.items():
        pieces = len(analysis.normalise(word))
        if pieces != 1:
            (split if pieces else unknown)[WORDPIECE[analysis.name](word)] += count
    return unknown, split
