"""What is compared: an index's questions, what each system found for them, and the grades."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from birchbark.bench.bench_folder import BenchFolder
from birchbark.bench.rank_questions import pool
from birchbark.bench.report import Report
from birchbark.bench.verdict import compare_drafted, compare_judged, verdict
from birchbark.records import Query, Run


@dataclass(frozen=True, slots=True)
class Bench:
    """Systems on an index.

    Attributes:
        name: Of the index.
        folder: Where judgments are stored.
        questions: The questions that the systems have answered.
        runs: Of each system; the first is the baseline.
    """

    name: str
    folder: BenchFolder
    questions: Sequence[Query]
    runs: Sequence[Run]

    @property
    def pooled(self) -> dict[str, list[str]]:
        """Query id → ids of the documents to judge, in an order that tells nothing."""
        return pool(self.runs, self.questions)

    @property
    def unjudged(self) -> int:
        """The number of documents to judge that have no grade yet."""
        grades = self.folder.judgments.grades
        return sum(len(set(ids) - grades.get(q, {}).keys()) for q, ids in self.pooled.items())

    def report(self) -> Report:
        """Compare the systems on what is judged by now."""
        judged = compare_judged(self.folder.judgments, self.pooled, self.runs)
        drafted = compare_drafted(self.folder.sources, self.questions, self.runs)
        seconds = {run.tag: self.folder.seconds(run.tag) for run in self.runs}
        found = {"Judged questions": judged, "Drafted questions": drafted}
        comparisons = {heading: comparison for heading, comparison in found.items() if comparison}
        told = verdict(judged, drafted, seconds)
        return Report(self.name, told, comparisons, seconds, self.questions)
