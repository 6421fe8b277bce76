"""What can be chosen in a study of fields? The table [fields] of a recipe."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from birchbark.errors import InputError
from birchbark.evaluate.ranks import parse_rank_measure
from birchbark.evaluate.tune import simplex
from birchbark.retrieve.match import Match, parse_match
from birchbark.section import Section
from birchbark.study.outcome import check_run_names
from birchbark.text.analyzer import NORMALISERS

TUNED = "tuned weights"


@dataclass(frozen=True, slots=True)
class FieldChoices:
    """The choices of this kind.

    names: indexed field → the documents' fields it joins. joint: name of one field of them all.
    tune: the measure that weights are chosen by. step: of the grid of weights, which sum to 1.
    folds: their number. match: which candidates are tried. baseline: the row compared with.
    """

    names: Mapping[str, tuple[str, ...]]
    joint: str
    analyzer: str
    tune: str
    step: float
    folds: int
    match: Mapping[str, Match]
    baseline: str

    @classmethod
    def read(cls, section: Section) -> FieldChoices:
        """From the table [fields] of a recipe."""
        table = section.section("names")
        names = {name: table.texts(name) for name in table.keys}
        joint = section.text("joint", "contents")
        found = cls(
            names,
            joint,
            section.one_of("analyzer", tuple(NORMALISERS), "english"),
            section.text("tune"),
            section.number("step", 0.1),
            section.whole("folds", 5, least=2),
            {name: _match(section, name) for name in section.texts("match", ("or", "and"))},
            section.text("baseline", joint),
        )
        found._check(section)
        section.end()
        return found

    def _check(self, section: Section) -> None:
        """Raise InputError now for what would go wrong after the work has begun."""
        if len(self.names) < 2 or len(set(self.rows)) < len(self.rows):
            raise InputError(
                "wrong fields",
                where=section.where("names"),
                wanted=f"two or more, none of them called like another row: {', '.join(self.rows)}",
            )
        check_run_names(self.rows, section.where("names"))
        section.one_of("baseline", self.rows, self.joint)
        try:
            parse_rank_measure(self.tune)
            simplex(len(self.names), self.step)
        except InputError as fault:
            raise fault.at(section.where("step" if "step" in fault.what else "tune")) from None

    @property
    def rows(self) -> tuple[str, ...]:
        """What is compared: single fields, their sum, their tuned sum, and the joint field."""
        return (*self.names, self.added, TUNED, self.joint)

    @property
    def added(self) -> str:
        """What the sum with weight 1 each is called."""
        return " + ".join(self.names)


def _match(section: Section, word: str) -> Match:
    try:
        return parse_match(word)
    except InputError as fault:
        raise fault.at(section.where("match")) from None
