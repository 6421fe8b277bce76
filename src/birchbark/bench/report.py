"""How is a bench reported? As a page of its own: recommendation, tables, single questions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from birchbark.bench.draft import PREFIX
from birchbark.bench.verdict import Comparison, shown_time
from birchbark.records import Query
from birchbark.show.draw_plot import colours
from birchbark.show.format_numbers import format_difference
from birchbark.show.page import load_template


@dataclass(frozen=True, slots=True)
class QuestionRow:
    """A question, whether it was drafted, and each system's value of the measure."""

    text: str
    drafted: bool
    values: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Report:
    """What a bench has shown so far.

    Attributes:
        name: Of the index.
        verdict: A recommendation, and what it rests on, in sentences.
        comparisons: Heading → comparison.
        seconds: Tag of each system → median seconds of a question.
        questions: All questions.
    """

    name: str
    verdict: Sequence[str]
    comparisons: Mapping[str, Comparison]
    seconds: Mapping[str, float]
    questions: Sequence[Query]

    def page(self) -> str:
        """Render a self-contained HTML page. Raises MissingPackageError without Jinja2."""
        from markupsafe import Markup

        shown = {
            heading: (comparison, _rows(comparison, self.questions))
            for heading, comparison in self.comparisons.items()
        }
        page: str = load_template(__package__, "report.html").render(
            name=self.name,
            verdict=self.verdict,
            comparisons=shown,
            seconds={tag: shown_time(taken) for tag, taken in self.seconds.items()},
            questions=len(self.questions),
            format_difference=format_difference,
            colours=Markup(colours()),
        )
        return page

    def to_dict(self) -> dict[str, Any]:
        """Return the report for programs."""
        return {
            "verdict": list(self.verdict),
            "seconds": dict(self.seconds),
            "comparisons": {
                heading: {
                    "measure": comparison.measure,
                    "questions": comparison.questions,
                    "means": {r.tag: r.means[comparison.measure] for r in comparison.results},
                    "differences": {
                        r.tag: asdict(d)
                        for r, d in zip(
                            comparison.results[1:], comparison.differences, strict=False
                        )
                    },
                }
                for heading, comparison in self.comparisons.items()
            },
        }


def _rows(comparison: Comparison, questions: Sequence[Query]) -> list[QuestionRow]:
    """Return a row for each question, first those on which the systems differ most."""
    by_system = [result.values[comparison.measure] for result in comparison.results]
    rows = [
        QuestionRow(
            query.text,
            query.query_id.startswith(PREFIX),
            tuple(values[query.query_id] for values in by_system),
        )
        for query in questions
        if query.query_id in by_system[0]
    ]
    return sorted(rows, key=lambda row: max(row.values) - min(row.values), reverse=True)
