"""Does the recommendation follow from the judgments, and does it say when there is none?"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
import pytest

from birchbark.bench.verdict import (
    DRAFTED_MEASURE,
    FEWEST,
    JUDGED_MEASURE,
    Comparison,
    compare_drafted,
    compare_judged,
    shown_time,
    verdict,
)
from birchbark.records import Qrels, Query, Ranking, Run

QUESTIONS = [Query(f"q{n}", f"question {n}") for n in range(20)]
SECONDS = {"BM25": 0.01, "large": 1.25, "small": 0.4}


def run(tag: str, ranks: list[int]) -> Run:
    """A run whose relevant document, `good`, has these ranks, from 1 to 5; else it is not there."""
    rankings = {}
    for query, rank in zip(QUESTIONS, ranks, strict=True):
        doc_ids = [f"bad{n}" for n in range(1, 5)]
        doc_ids.insert(rank - 1, "good") if rank <= 5 else doc_ids.append("bad5")
        rankings[query.query_id] = Ranking.of(doc_ids, [5.0, 4.0, 3.0, 2.0, 1.0])
    return Run(rankings, tag)


def judged(
    *runs: Run, grade: int = 3, names: Mapping[str, str] = MappingProxyType({})
) -> Comparison | None:
    ids = [names.get(q.query_id, q.query_id) for q in QUESTIONS]
    pooled = {q: sorted({d for r in runs for d in r.rankings[q].doc_ids}) for q in ids}
    grades = {q: {d: grade if d == "good" else 0 for d in pool} for q, pool in pooled.items()}
    return compare_judged(Qrels(grades), pooled, runs)


LATE = [4, 5, 3, 4, 5, 4, 3, 5, 4, 4, 5, 3, 4, 5, 4, 3, 5, 4, 4, 5]
EARLY = [1, 2, 1, 1, 1, 1, 2, 1, 1, 1, 1, 1, 2, 1, 1, 1, 1, 1, 2, 1]


def test_a_better_model_is_recommended_with_its_gain_and_its_time() -> None:
    (told,) = verdict(judged(run("BM25", LATE), run("large", EARLY)), None, SECONDS)
    assert told.startswith("Re-rank with large: on the 20 judged questions, its nDCG@5 is .926")
    mean = np.mean(1 / np.log2(1 + np.array(EARLY)) - 1 / np.log2(1 + np.array(LATE)))
    assert f"(+{mean:.3f}".replace("0.", ".") in told
    assert told.endswith("A question takes 1.2 s instead of 10 ms.")


def test_a_faster_model_of_which_no_difference_is_seen_is_named() -> None:
    nearly = [*EARLY[:-1], 2]
    runs = run("BM25", LATE), run("large", EARLY), run("small", nearly)
    (told,) = verdict(judged(*runs), None, SECONDS)
    assert "small takes 400 ms, and these questions show no difference between the two" in told


def test_drafted_questions_among_the_judged_ones_are_told() -> None:
    names = {q.query_id: f"drafted-{q.query_id}" for q in QUESTIONS[:5]}

    def renamed(made: Run) -> Run:
        return Run({names.get(q, q): ranking for q, ranking in made.rankings.items()}, made.tag)

    (told,) = verdict(
        judged(renamed(run("BM25", LATE)), renamed(run("large", EARLY)), names=names), None, SECONDS
    )
    assert "on the 20 judged questions (5 of them drafted, which favour BM25), its nDCG@5" in told


def test_it_is_told_if_nothing_is_relevant() -> None:
    (told,) = verdict(judged(run("BM25", LATE), run("large", EARLY), grade=0), None, SECONDS)
    assert told == (
        "None of the documents that the systems found is relevant, on the 20 judged questions."
    )


def test_a_faster_model_that_is_behind_is_not_named() -> None:
    middle = [min(3, rank + 1) for rank in EARLY]
    runs = run("BM25", LATE), run("large", EARLY), run("small", middle)
    (told,) = verdict(judged(*runs), None, SECONDS)
    assert told.startswith("Re-rank with large")
    assert "small" not in told


def test_models_that_are_worse_are_not_recommended() -> None:
    (told,) = verdict(judged(run("BM25", EARLY), run("large", LATE)), None, SECONDS)
    assert told.startswith("Do not re-rank: on the 20 judged questions, BM25 is better than large")
    assert "--model none" in told


def test_systems_that_are_not_told_apart_are_not_recommended() -> None:
    (told,) = verdict(judged(run("BM25", LATE), run("large", [*LATE[1:], 4])), None, SECONDS)
    assert told.startswith("Not told apart on the 20 judged questions: large ")
    assert re.search(r"A difference of \.\d\d would probably be seen\. Judge more", told)


def test_a_model_that_is_a_little_worse_is_not_told_apart() -> None:
    (told,) = verdict(judged(run("BM25", EARLY), run("large", [*EARLY[:-1], 2])), None, SECONDS)
    assert told.startswith("Not told apart on the 20 judged questions: large −.")


def test_one_worse_and_one_equal_model_tell_nothing_apart() -> None:
    runs = run("BM25", EARLY), run("large", EARLY), run("small", LATE)
    (told,) = verdict(judged(*runs), None, SECONDS)
    assert told.startswith("Not told apart")


def test_few_judged_questions_are_not_recommended_from() -> None:
    runs = run("BM25", LATE), run("large", EARLY)
    pooled = {q.query_id: ["good", *(f"bad{n}" for n in range(1, 6))] for q in QUESTIONS}
    grades = {q: {d: 3 * (d == "good") for d in pool} for q, pool in pooled.items()}
    for left_out in list(grades)[FEWEST - 1 :]:
        del grades[left_out]["bad1"]  # so that the question is not judged completely
    found = compare_judged(Qrels(grades), pooled, runs)
    assert found and found.questions == FEWEST - 1
    (told,) = verdict(found, None, SECONDS)
    assert told.startswith("No recommendation yet: 9 questions judged, and 10 are the fewest")
    grades[QUESTIONS[FEWEST - 1].query_id]["bad1"] = 0
    (told,) = verdict(compare_judged(Qrels(grades), pooled, runs), None, SECONDS)
    assert told.startswith("Re-rank with large: on the 10 judged questions")
    assert compare_judged(Qrels({}), pooled, runs) is None
    (told,) = verdict(None, None, SECONDS)
    assert told.startswith("No recommendation yet: 0 questions judged")


def test_only_documents_to_judge_count() -> None:
    """A grade of another document, such as one that was deleted, changes nothing."""
    runs = [run("BM25", LATE)]
    pooled = {"q0": list(runs[0].rankings["q0"].doc_ids)}
    grades = {"q0": {d: 3 * (d == "good") for d in pooled["q0"]}}
    known = compare_judged(Qrels(grades), pooled, runs)
    more = compare_judged(Qrels({"q0": grades["q0"] | {"gone": 3}}), pooled, runs)
    assert known == more
    assert known and known.differences == []  # of one question


def test_grades_count() -> None:
    """With grades, the order of two relevant documents matters."""
    rankings = {"q0": Ranking.of(["part", "whole"], [2.0, 1.0])}
    pooled = {"q0": ["part", "whole"]}
    grades = Qrels({"q0": {"part": 1, "whole": 3}})
    found = compare_judged(grades, pooled, [Run(rankings, "BM25")])
    ideal = 3 + 1 / np.log2(3)
    assert found
    assert found.results[0].means[JUDGED_MEASURE] == pytest.approx((1 + 3 / np.log2(3)) / ideal)


def test_a_drafted_question_is_answered_by_the_document_that_it_is_from() -> None:
    sources = {"q0": "good", "q1": "good", "gone": "good"}
    found = compare_drafted(sources, QUESTIONS, [run("BM25", LATE), run("large", EARLY)])
    assert found and found.questions == 2
    assert len(found.differences) == 1
    means = [result.means[DRAFTED_MEASURE] for result in found.results]
    assert means == pytest.approx([(1 / 4 + 1 / 5) / 2, (1 + 1 / 2) / 2])
    assert compare_drafted({}, QUESTIONS, [run("BM25", LATE)]) is None


@pytest.mark.parametrize(
    ("seconds", "shown"), [(0.0123, "12 ms"), (0.999, "999 ms"), (1.0, "1.0 s"), (12.34, "12.3 s")]
)
def test_times_have_units(seconds: float, shown: str) -> None:
    assert shown_time(seconds) == shown


@pytest.mark.parametrize(
    ("before", "after", "outcome"),
    [
        (LATE, EARLY, "a model finds the document earlier than BM25"),
        (EARLY, LATE, "a model finds the document later than BM25"),
        (EARLY, EARLY, "no system is told apart from BM25"),
        ([*EARLY[:-1], 2], EARLY, "no system is told apart from BM25"),
        (EARLY, [*EARLY[:-1], 2], "no system is told apart from BM25"),
    ],
)
def test_what_drafted_questions_show_is_told(
    before: list[int], after: list[int], outcome: str
) -> None:
    sources = {q.query_id: "good" for q in QUESTIONS}
    drafted = compare_drafted(sources, QUESTIONS, [run("BM25", before), run("large", after)])
    none, told = verdict(None, drafted, SECONDS)
    assert none.startswith("No recommendation yet")
    assert told.startswith(f"On the 20 drafted questions {outcome}")
