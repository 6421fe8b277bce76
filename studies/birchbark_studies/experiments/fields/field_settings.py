"""Which settings does a study of fields have? The table [fields] of a recipe."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from birchbark import FirstStage, InputError, defaults
from birchbark.evaluate.rank_measures import parse_rank_measure
from birchbark.evaluate.tune import simplex_grid
from birchbark.retrieve.match import Match, parse_match
from birchbark.section import Section
from birchbark.text.analyzer import NORMALISERS
from birchbark_studies.outcome import check_run_names

TUNED = "tuned weights"


@dataclass(frozen=True, slots=True)
class FieldSettings:
    """The settings of a study of fields.

    Attributes:
        names: Indexed field → the document fields that it joins.
        joint: The name of the indexed field that joins all of them.
        analyzer: The name of the analyzer.
        weights: Name of a row → the weights of the fields that it sums.
        tune: The measure for which weights are tuned.
        step: The spacing of the grid of weights, which sum to 1.
        folds: The number of folds.
        match: Name → the candidate sets to compare.
        baseline: The row with which the others are compared.
        counted: The document fields whose values are counted, such as sources and dates.
        judgments: Whether to count the judged and the relevant documents of each query.
    """

    names: Mapping[str, tuple[str, ...]]
    joint: str
    analyzer: str
    weights: Mapping[str, Mapping[str, float]]
    tune: str
    step: float
    folds: int
    match: Mapping[str, Match]
    baseline: str
    counted: tuple[str, ...] = ()
    judgments: bool = False

    @classmethod
    def read(cls, section: Section) -> FieldSettings:
        """Read the table [fields] of a recipe."""
        table = section.section("names")
        names = {name: table.texts(name) for name in table.keys}
        joint = section.text("joint", "contents")
        settings = cls(
            names,
            joint,
            section.one_of("analyzer", tuple(NORMALISERS), defaults.ANALYZER),
            {_sum(weights): weights for weights in _weights(section, names)},
            section.text("tune"),
            section.number("step", defaults.TUNING_STEP),
            section.integer("folds", defaults.TUNING_FOLDS, minimum=2),
            {name: _match(section, name) for name in section.texts("match", ("or", "and"))},
            section.text("baseline", joint),
            section.texts("counted", ()),
            section.boolean("judgments", False),
        )
        settings._check(section)
        section.reject_unknown_keys()
        return settings

    def _check(self, section: Section) -> None:
        """Raise InputError for settings that would otherwise fail after work has begun."""
        if len(self.names) < 2:
            raise InputError(
                "too few fields",
                where=section.where("names"),
                wanted="two or more",
                found=str(len(self.names)),
            )
        if len(set(self.rows)) < len(self.rows):
            raise InputError(
                "a field has the name of another row",
                where=section.where("names"),
                wanted="distinct names",
                found=", ".join(self.rows),
            )
        check_run_names(self.rows, section.where("names"))
        section.one_of("baseline", self.rows, self.joint)
        try:
            parse_rank_measure(self.tune)
        except InputError as fault:
            raise fault.at(section.where("tune")) from None
        try:
            simplex_grid(len(self.names), self.step)
        except InputError as fault:
            raise fault.at(section.where("step")) from None

    @property
    def rows(self) -> tuple[str, ...]:
        """The names of the rows: single fields, their sum, weighted sums, and the joint field."""
        return (*self.names, self.sum_row, *self.weights, TUNED, self.joint)

    @property
    def sum_row(self) -> str:
        """The name of the row that sums all fields with weight 1."""
        return " + ".join(self.names)


def _sum(weights: Mapping[str, float]) -> str:
    """Return the name of a row: the sum of its fields, with the weights that are not 1."""
    shown = {name: f"{weight:g}".removeprefix("0") or "0" for name, weight in weights.items()}
    return " + ".join(name if shown[name] == "1" else f"{shown[name]} {name}" for name in shown)


def _weights(section: Section, names: Mapping[str, object]) -> Iterator[dict[str, float]]:
    for table in section.table_or_tables("weights"):
        if unknown := [name for name in table.keys if name not in names]:
            raise InputError(
                f"no field {unknown[0]!r}", where=table.where(), wanted=", ".join(names)
            )
        weights = {name: table.number(name) for name in table.keys}
        try:
            FirstStage(fields=weights)  # raises InputError
        except InputError as fault:
            raise fault.at(table.where()) from None
        yield weights


def _match(section: Section, name: str) -> Match:
    try:
        return parse_match(name)
    except InputError as fault:
        raise fault.at(section.where("match")) from None
