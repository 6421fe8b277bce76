"""What is compared: an index's questions, what each system finds for them, and the grades."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import count
from threading import Lock

from birchbark._version import __version__
from birchbark.bench.bench_folder import BenchFolder
from birchbark.bench.rank_questions import (
    SystemRun,
    check_questions,
    pool,
    rank_questions,
)
from birchbark.bench.report import Report
from birchbark.bench.verdict import compare_drafted, compare_judged, verdict
from birchbark.errors import InputError
from birchbark.pipeline.searcher import Searcher
from birchbark.records import Query

OWN = "own-"  # beginning of the ids of questions in a person's words


class Bench:
    """Systems on an index.

    Attributes:
        name: Of the index.
        folder: Where questions, runs and judgments are stored.
        questions: The questions, in their order.
    """

    def __init__(self, name: str, folder: BenchFolder, searchers: Mapping[str, Searcher]) -> None:
        """searchers: tag → system; the first is the baseline. `rank` each before anything else."""
        self.name, self.folder, self.questions = name, folder, folder.questions
        self._searchers, self._changing = searchers, Lock()
        self._runs = dict[str, SystemRun]()

    def rank(self, tag: str, on_question: Callable[[], object] = lambda: None) -> None:
        """Have a system rank the questions that it has not ranked in these words.

        on_question: called for each question, also for those that were ranked before.
        """
        self._runs[tag] = self._ranked(tag, self.questions, on_question)

    def _ranked(
        self, tag: str, questions: Sequence[Query], on_question: Callable[[], object]
    ) -> SystemRun:
        searcher = self._searchers[tag]
        made_from = {
            "birchbark": __version__,
            "index": searcher.index.fingerprint,
            "models": [ranker.scorer.fingerprint for ranker in searcher.rankers],
        }
        found = self.folder.run(tag, made_from).of(questions)
        for _ in found.asked:
            on_question()
        new = [query for query in questions if query.query_id not in found.asked]
        if new:
            added = rank_questions(searcher, new, tag, self.folder.sources, on_question)
            found = found.joined(added).of(questions)
            self.folder.write_run(tag, made_from, found)
        return found

    def reword(self, query_id: str, text: str) -> Query:
        """Replace a question by one in other words, and have all systems rank it.

        It gets an id of its own, so that what was judged for the other one stays apart. Raises
        InputError for an unknown question, for words that are those of another, and for a question
        that a system refuses; nothing has changed then.
        """
        with self._changing:
            text = " ".join(text.split())
            if not text or any(query.text == text for query in self.questions):
                raise InputError("the question has no words, or those of another", found=text)
            known = self.folder.judgments.grades.keys() | {q.query_id for q in self.questions}
            new = Query(next(i for n in count(1) if (i := f"{OWN}{n}") not in known), text)
            questions = [new if q.query_id == query_id else q for q in self.questions]
            if new not in questions:
                raise InputError("no such question", found=query_id)
            check_questions(self._searchers.values(), [new])
            runs = {tag: self._ranked(tag, questions, lambda: None) for tag in self._searchers}
            self.folder.write_questions(questions)
            self.questions, self._runs = questions, runs
            return new

    @property
    def pooled(self) -> dict[str, list[str]]:
        """Query id → ids of the documents to judge, in an order that tells nothing."""
        return pool([run.run for run in self._runs.values()], self.questions)

    @property
    def unjudged(self) -> int:
        """The number of documents to judge that have no grade yet."""
        grades = self.folder.judgments.grades
        return sum(len(set(ids) - grades.get(q, {}).keys()) for q, ids in self.pooled.items())

    def report(self) -> Report:
        """Compare the systems on what is judged by now."""
        runs = [run.run for run in self._runs.values()]
        judged = compare_judged(self.folder.judgments, self.pooled, runs)
        index = next(iter(self._searchers.values())).index
        there = {q: d for q, d in self.folder.sources.items() if index.find(d) is not None}
        drafted = compare_drafted(there, self.questions, runs)
        seconds = {tag: run.median_seconds for tag, run in self._runs.items()}
        found = {"Judged questions": judged, "Drafted questions": drafted}
        comparisons = {heading: comparison for heading, comparison in found.items() if comparison}
        told = verdict(judged, drafted, seconds)
        return Report(self.name, told, comparisons, seconds, self.questions)
