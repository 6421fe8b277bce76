"""What do the questions say about the systems, in plain words?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from birchbark import defaults
from birchbark.bench.draft import PREFIX
from birchbark.bench.rank_questions import JUDGED, RANKED
from birchbark.evaluate.measures import Results, measure
from birchbark.evaluate.significance import Difference, compare
from birchbark.records import Qrels, Query, Run
from birchbark.show.format_numbers import format_bounds, format_signed, format_value
from birchbark.show.plural import plural
from birchbark.show.table import Style

DRAFTED_MEASURE, JUDGED_MEASURE = f"RR@{RANKED}", f"nDCG@{JUDGED}"
FEWEST = 10  # judged questions of which a recommendation is made


@dataclass(frozen=True, slots=True)
class Comparison:
    """Systems compared on the same questions.

    Attributes:
        measure: The measure.
        results: Of each system; the first is the baseline.
        differences: Of each of the others from the baseline; none for fewer than two questions.
    """

    measure: str
    results: Sequence[Results]
    differences: Sequence[Difference]

    @property
    def questions(self) -> int:
        """The number of questions."""
        return len(self.results[0].values[self.measure])

    @property
    def drafted(self) -> int:
        """The number of questions that were drafted."""
        return sum(q.startswith(PREFIX) for q in self.results[0].values[self.measure])


def compare_drafted(
    sources: Mapping[str, str], questions: Sequence[Query], runs: Sequence[Run]
) -> Comparison | None:
    """Compare how early each system finds the document that a drafted question is from."""
    asked = [query.query_id for query in questions if query.query_id in sources]
    return _compare({q: {sources[q]: 1} for q in asked}, runs, DRAFTED_MEASURE)


def compare_judged(
    judgments: Qrels, pooled: Mapping[str, Sequence[str]], runs: Sequence[Run]
) -> Comparison | None:
    """Compare the systems on the questions of which every pooled document is judged."""
    grades = judgments.grades
    complete = {q for q, pool in pooled.items() if pool and set(pool) <= grades.get(q, {}).keys()}
    judged = {q: {d: grades[q][d] for d in pooled[q]} for q in pooled if q in complete}
    return _compare(judged, runs, JUDGED_MEASURE)


def _compare(
    grades: Mapping[str, Mapping[str, int]], runs: Sequence[Run], name: str
) -> Comparison | None:
    """Return the comparison; None without questions."""
    if not grades:
        return None
    results = [measure(Qrels(grades), run, [name]) for run in runs]
    if len(grades) < 2:
        return Comparison(name, results, [])
    differences = compare(results[0], results[1:], seed=defaults.SEED)
    return Comparison(name, results, [of_system[name] for of_system in differences])


def verdict(
    judged: Comparison | None, drafted: Comparison | None, seconds: Mapping[str, float]
) -> list[str]:
    """Return a recommendation, and what it rests on, in sentences.

    seconds: tag of each system → seconds of a question.
    """
    told = []
    if judged and judged.questions >= FEWEST:
        told.append(_on_judged(judged, seconds))
    else:
        count = plural(judged.questions if judged else 0, "question")
        told.append(
            f"No recommendation yet: {count} judged, and {FEWEST} are the fewest that say "
            "something."
        )
    if drafted and drafted.differences:
        told.append(_on_drafted(drafted))
    return told


def _on_judged(judged: Comparison, seconds: Mapping[str, float]) -> str:
    baseline, *others = judged.results
    name, on = judged.measure, f"on the {judged.questions} judged questions"
    if not any(result.means[name] for result in judged.results):
        return f"None of the documents that the systems found is relevant, {on}."
    if judged.drafted:
        on += f" ({judged.drafted} of them drafted, which favour BM25)"
    pairs = list(zip(others, judged.differences, strict=True))
    better = [(r, d) for r, d in pairs if d.significant and d.mean > 0]
    if better:
        best, difference = max(better, key=lambda pair: pair[0].means[name])
        told = (
            f"Re-rank with {best.tag}: {on}, its {name} is {_value(best, name)}, BM25's "
            f"{_value(baseline, name)} ({_bounds(difference)}). A question takes "
            f"{shown_time(seconds[best.tag])} instead of {shown_time(seconds[baseline.tag])}."
        )
        faster = [r for r in others if seconds[r.tag] < seconds[best.tag]]
        for result in sorted(faster, key=lambda r: seconds[r.tag])[:1]:
            (differences,) = compare(best, [result], seed=defaults.SEED)
            behind = differences[name]
            if not behind.significant:
                told += (
                    f" {result.tag} takes {shown_time(seconds[result.tag])}, and these questions "
                    f"show no difference between the two ({_bounds(behind)})."
                )
        return told
    if all(d.significant and d.mean < 0 for _, d in pairs):
        return f"Do not re-rank: {on}, BM25 is better than {_listed(judged)}. Use --model none."
    detectable = max((d.detectable for _, d in pairs if d.detectable is not None), default=None)
    shown = f"{detectable or 0:.2f}".lstrip("0")
    seen = f" A difference of {shown} would probably be seen." if detectable else ""
    return f"Not told apart {on}: {_listed(judged)}.{seen} Judge more, or keep what is faster."


def _on_drafted(drafted: Comparison) -> str:
    worse = [d for d in drafted.differences if d.significant and d.mean < 0]
    better = [d for d in drafted.differences if d.significant and d.mean > 0]
    outcome = "no system is told apart from BM25"
    if better and not worse:
        outcome = "a model finds the document earlier than BM25"
    elif worse:
        outcome = "a model finds the document later than BM25, so it loses questions in its words"
    return (
        f"On the {drafted.questions} drafted questions {outcome}: {_listed(drafted)} in "
        f"{drafted.measure}. They have the words of the document that they are from, so they "
        "favour BM25, and cannot show what models gain on questions in other words."
    )


def _listed(comparison: Comparison) -> str:
    return ", ".join(
        f"{result.tag} {_bounds(difference)}"
        for result, difference in zip(comparison.results[1:], comparison.differences, strict=True)
    )


def _bounds(difference: Difference) -> str:
    return f"{format_signed(difference.mean)} {format_bounds(difference)}"


def _value(result: Results, name: str) -> str:
    return format_value(result.means[name], Style.MEASURE)


def shown_time(seconds: float) -> str:
    """Return a time with its unit."""
    return f"{1000 * seconds:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"
