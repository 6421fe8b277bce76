"""How much is there to train on? Tables 3.1 to 3.3 of the Birch paper."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from birchbark import InputError
from birchbark.collection.parsing.intake import Intake
from birchbark.pairs.holdout import split_for_validation
from birchbark.pairs.sources import split_into_chunks
from birchbark.records import Pair
from birchbark.section import Section
from birchbark.segment.by_name import parse_segmenter
from birchbark.show.table import Column, Group, Heading, Row, Style, build_tables, columns
from birchbark.train.config import DataSetConfig, TrainingConfig
from birchbark.train.dataset import held_out_texts
from birchbark.train.read_config import read_training
from birchbark_studies.outcome import Outcome
from birchbark_studies.recipe import Experiment, Recipe
from birchbark_studies.training_chains import training_files
from birchbark_studies.workspace import Workspace

PAIRS = (
    *columns(Style.COUNT, "queries", "pairs"),
    Column("relevant", Style.SHARE),
    *columns(Style.DECIMAL, "words per query", "words per text"),
)


@dataclass(slots=True)
class Counts:
    """The pairs of some queries: how many, and how many words their texts have."""

    pairs: int = 0
    relevant: int = 0
    words: int = 0

    def add(self, pairs: int, relevant: int, words: int) -> None:
        """Count further pairs."""
        self.pairs += pairs
        self.relevant += relevant
        self.words += words


@dataclass(frozen=True, slots=True)
class TrainingDataExperiment(Experiment):
    """The settings of a study of training data.

    Attributes:
        configurations: Path → the training configuration whose data sets are counted.
    """

    uses_measures = False
    uses_collections = False
    configurations: Mapping[str, TrainingConfig]

    @classmethod
    def read(cls, section: Section) -> TrainingDataExperiment:
        """Read the table [training-data] of a recipe.

        Raises InputError for a data set without queries, and if two have the same name.
        """
        configurations = {}
        for name in section.texts("configs"):
            path = section.path.parent / name
            configurations[name] = read_training(Section.table(path), path)
        section.reject_unknown_keys()
        datasets = [data for training in configurations.values() for data in training.data]
        names = list(map(_name, datasets))
        if len(set(names)) < len(names):
            raise InputError(
                "two data sets share a name", where=section.where("configs"), found=", ".join(names)
            )
        if without := [data.name for data in datasets if not data.source.has_queries]:
            raise InputError(
                "data sets without queries have no pairs",
                where=section.where("configs"),
                found=", ".join(without),
            )
        return cls(configurations)

    @property
    def files(self) -> tuple[str, ...]:
        """The files of all data sets."""
        return training_files([tuple(self.configurations.values())])

    @property
    def trainings(self) -> Mapping[str, Any]:
        """The settings of the configurations."""
        return {name: training.values for name, training in self.configurations.items()}

    def layout(self, measures: tuple[str, ...]) -> Mapping[str, tuple[Column, ...]]:
        """Map the name of the only table to its columns."""
        return {"pairs": PAIRS}

    def run(self, recipe: Recipe, workspace: Workspace) -> Outcome:
        """Read the pairs of each data set, split them as training does, and count them."""
        groups, remarks = [], []
        for training in self.configurations.values():
            by_query = []
            for data in training.data:
                workspace.progress(f"{_name(data)}: counting pairs")
                intake = data.source.intake()
                by_query.append(_count(data, workspace.root, intake))
                if bad := len(intake.skipped):
                    remarks.append(f" {bad:,} bad records of {_name(data)} are left out.")
                for text, times in intake.notes.most_common():
                    remarks.append(f" {_name(data)}: {text} ({times:,} times).")
            groups += _groups(training, by_query, held_out_texts(training, workspace.root))
        note = (
            "Pairs of a query and a text, as training configurations read them. Queries are held "
            "out for validation by a hash of their text. Words are delimited by white space."
        )
        headings = {"pairs": Heading("Training data", "part", note + "".join(remarks))}
        return Outcome(build_tables(self.layout(()), headings, {"pairs": groups}), ())


def _name(data: DataSetConfig) -> str:
    return data.name if data.chunk is None else f"{data.name}, in parts of {data.chunk} words"


def _count(data: DataSetConfig, root: Path, intake: Intake) -> dict[str, tuple[Counts, Counts]]:
    """Return, for each query, its pairs for training and for validation.

    They differ if texts are split into chunks to train on. Bad records and observations go to
    `intake`.
    """
    by_query: dict[str, tuple[Counts, Counts]] = defaultdict(lambda: (Counts(), Counts()))
    for pair in data.source.read_pairs(root, parse_segmenter(data.segments), intake):
        trained, whole = by_query[pair.query]
        _add(trained, split_into_chunks([pair], data.chunk))
        _add(whole, [pair])
    return by_query


def _add(counts: Counts, pairs: Iterable[Pair]) -> None:
    for pair in pairs:
        counts.add(1, pair.relevance > 0, len(pair.text.split()))


def _groups(
    training: TrainingConfig,
    by_query: list[dict[str, tuple[Counts, Counts]]],
    unused: Collection[str],
) -> list[Group]:
    """Return a group per data set, with rows for its two parts. unused: texts held out of both."""
    queries = [list(counts) for counts in by_query]
    shares = [data.validation for data in training.data]
    splits = split_for_validation(queries, shares, [None] * len(queries), unused)
    groups = []
    for data, texts, counts, split in zip(training.data, queries, by_query, splits, strict=True):
        rows = []
        for part, name in enumerate(("training", "validation")):
            chosen = [query for query, taken in zip(texts, split[part], strict=True) if taken]
            if chosen:
                rows.append(_row(name, {query: counts[query][part] for query in chosen}))
        groups.append(Group(_name(data), tuple(rows)))
    return groups


def _row(name: str, counts: Mapping[str, Counts]) -> Row:
    total, query_words = Counts(), sum(len(query.split()) for query in counts)
    for one in counts.values():
        total.add(one.pairs, one.relevant, one.words)
    shares = (total.relevant / total.pairs, query_words / len(counts), total.words / total.pairs)
    return Row.of(name, (len(counts), total.pairs, *shares))
