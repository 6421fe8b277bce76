"""Are scores joined and mixed as their definitions say, document by document?"""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from birchbark.combine.interpolate import Scale, scale_scores
from birchbark.errors import InputError
from birchbark.evaluate.mixtures import (
    cross_validated_run,
    evidence_candidates,
    evidence_grid,
    mixed_run,
    run_candidates,
    with_evidence,
)
from birchbark.evaluate.rank_measures import Float64s
from birchbark.evaluate.tune import Candidates, Tuning, check_weightings
from birchbark.records import Float32s, Qrels, Ranking, Run


def share(scores: Float32s) -> Float64s:
    return scores.astype(np.float64) / scores.max(initial=0)


def test_first_stage_scores_are_joined_with_the_best_segments() -> None:
    """A row has the scaled score and the first segments; missing segments are 0."""
    ranking = Ranking.from_pairs({"a": 8, "b": 4, "c": 2, "d": 1})
    segments = {"a": [0.75, 0.5, 0.25], "c": [0.125], "d": [1.0]}
    joined = evidence_candidates(ranking, 3, segments, 2, share)
    assert joined.doc_ids == ("c", "b", "a")
    assert joined.scores.tolist() == [[0.25, 0.125, 0], [0.5, 0, 0], [1, 0.75, 0.5]]
    assert joined.below == ("d",)


def test_only_the_scores_of_candidates_are_scaled() -> None:
    """The lowest of them becomes 0, however low the documents below are."""
    ranking = Ranking.from_pairs({"a": 9, "b": 6, "c": 5, "d": 1})
    scale = partial(scale_scores, scale=Scale.MINMAX)
    joined = evidence_candidates(ranking, 3, {"c": [0.5]}, 1, scale)
    assert joined.doc_ids == ("c", "b", "a")
    assert joined.scores.tolist() == [[0, 0.5], [0.25, 0], [1, 0]]
    assert joined.below == ("d",)


def test_candidates_are_the_documents_with_segment_scores() -> None:
    """They are among the best of the run, and only their scores are scaled; others are below."""
    first = Run(
        {
            "1": Ranking.from_pairs({"a": 8, "b": 4, "c": 2, "d": 1, "e": 0.5}),
            "2": Ranking.from_pairs({"a": 2, "b": 1}),
        }
    )
    scores = {"1": {"b": [0.25, 0.75, 0.5], "c": [0.125], "d": [], "e": [1.0], "z": [1.0]}}
    joined = with_evidence(first, scores, 2, 4, share)
    assert list(joined) == ["1", "2"]
    assert joined["1"].doc_ids == ("c", "b")
    assert joined["1"].scores.tolist() == [[0.5, 0.125, 0], [1, 0.75, 0.5]]
    assert joined["1"].below == ("a", "d", "e")
    assert joined["2"].doc_ids == ()
    assert joined["2"].scores.shape == (0, 3)
    assert joined["2"].below == ("a", "b")


def test_the_grid_of_the_birch_paper() -> None:
    """The first column is a, the second 1 − a, the third each share of the second."""
    assert evidence_grid(0.5, 2).tolist() == [
        [0, 1, 0],
        [0, 1, 0.5],
        [0, 1, 1],
        [0.5, 0.5, 0],
        [0.5, 0.5, 0.25],
        [0.5, 0.5, 0.5],
        [1, 0, 0],
        [1, 0, 0],
        [1, 0, 0],
    ]
    assert evidence_grid(0.25, 1).tolist() == [[a, 1 - a] for a in (0, 0.25, 0.5, 0.75, 1)]
    assert evidence_grid(0.1, 3).shape == (1331, 4)


def test_a_grid_has_as_many_weightings_as_are_allowed() -> None:
    """The limit itself is allowed; one more is refused before the grid is made."""
    check_weightings(3, 3)
    with pytest.raises(InputError, match="expected at most 3, found 4"):
        check_weightings(4, 3)
    with pytest.raises(InputError, match="expected at most 200,000, found 200,704"):
        evidence_grid(1 / 447, 2)


def test_the_best_documents_of_runs_are_joined() -> None:
    """A document has 0 where it is not among the best; a query that no run ranks is left out."""
    runs = [
        Run({"1": Ranking.from_pairs({"a": 4, "b": 2, "c": 1})}),
        Run({"1": Ranking.from_pairs({"c": 8, "d": 4}), "2": Ranking.from_pairs({"a": 3})}),
    ]
    joined = run_candidates(runs, ["2", "1", "3"], 2, share)
    assert list(joined) == ["2", "1"]
    assert joined["1"].doc_ids == ("d", "c", "b", "a")
    assert joined["1"].scores.tolist() == [[0, 0.5], [0, 1], [0.5, 0], [1, 0]]
    assert joined["1"].below == ()
    assert joined["2"].scores.tolist() == [[0, 1]]


def test_documents_below_the_best_do_not_change_the_scale_of_a_run() -> None:
    """Under minmax the last of the best has 0, however low the scores below it are."""
    runs = [
        Run({"1": Ranking.from_pairs({"a": 4, "b": 3, "c": 2, "d": 0})}),
        Run({"1": Ranking.from_pairs({"b": 8, "a": 4})}),
    ]
    joined = run_candidates(runs, ["1"], 3, partial(scale_scores, scale=Scale.MINMAX))
    assert joined["1"].doc_ids == ("c", "b", "a")
    assert joined["1"].scores.tolist() == [[0, 0], [0.5, 1], [1, 0]]


def test_a_query_is_ranked_by_the_run_that_is_best_on_the_other_folds() -> None:
    """Each of two runs is best on one fold, so it ranks the queries of the other."""
    good, bad = Ranking.from_pairs({"r": 2, "x": 1}), Ranking.from_pairs({"y": 2, "r": 1})
    runs = [
        Run({"1": good, "2": good, "3": bad, "4": bad}),
        Run({"1": bad, "3": good, "4": good, "9": good}),
    ]
    qrels = Qrels({query_id: {"r": 1} for query_id in "4321"})
    run, values, chosen = cross_validated_run(runs, qrels, (("1", "2"), ("3", "4")), "RR", "best")
    assert values.tolist() == [[0.5, 0.5, 1, 1], [1, 1, 0, 0.5]]
    assert chosen == (1, 0)
    assert run.rankings == {"1": bad, "3": bad, "4": bad}
    assert run.tag == "best"


def test_a_mixed_run_uses_the_weights_of_each_fold() -> None:
    """A query of no fold has those of the first; documents below keep their order."""
    candidates = {
        "1": Candidates(("b", "a"), np.array([[0.25, 0.5], [0.75, 0.125]]), ("z", "c")),
        "2": Candidates(("b", "a"), np.array([[0.25, 0.5], [0.75, 0.125]])),
        "9": Candidates(("b", "a"), np.array([[1, 1], [2, 3]])),
    }
    weights = np.array([[1, 0], [0, 1], [0.5, 2]])
    tuning = Tuning(weights, np.zeros((3, 2)), ("1", "2"), (("1",), ("2",)), (2, 0))
    run = mixed_run(candidates, tuning, "mixed")
    assert run.tag == "mixed"
    assert run.rankings["1"].doc_ids == ("b", "a", "z", "c")
    assert run.rankings["1"].scores[:2].tolist() == [1.125, 0.625]
    assert list(run.rankings["2"]) == [("a", 0.75), ("b", 0.25)]
    assert list(run.rankings["9"]) == [("a", 7.0), ("b", 2.5)]
