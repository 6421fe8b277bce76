"""Are runs combined by the formulas, whatever they contain?"""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from birchbark.cli import group
from birchbark.combine.fusion import fuse_rankings, reciprocal_rank_fusion, score_fusion
from birchbark.combine.interpolate import Scale
from birchbark.errors import InputError
from birchbark.records import Ranking, Run

SCORES = st.dictionaries(st.sampled_from("abcdef"), st.floats(0.125, 8, width=32), max_size=6)
RUNS = st.lists(st.dictionaries(st.sampled_from("123"), SCORES), min_size=1, max_size=4)


def run_of(scores: dict[str, dict[str, float]]) -> Run:
    return Run({query: Ranking.from_pairs(of) for query, of in scores.items()}, "t")


@given(RUNS, st.floats(0, 100), st.lists(st.floats(0.125, 4), min_size=4, max_size=4))
def test_reciprocal_ranks(
    scores: list[dict[str, dict[str, float]]], constant: float, weights: list[float]
) -> None:
    """Each document has the sum over runs, written out."""
    runs, weights = [run_of(x) for x in scores], weights[: len(scores)]
    fused = reciprocal_rank_fusion(runs, weights, constant)
    assert set(fused.rankings) == {query for run in runs for query in run.rankings}
    for query, ranking in fused.rankings.items():
        expected: dict[str, float] = {}
        for run, weight in zip(runs, weights, strict=True):
            for rank, doc_id in enumerate(run.rankings.get(query, Ranking.of([], [])).doc_ids, 1):
                expected[doc_id] = expected.get(doc_id, 0) + weight / (constant + rank)
        assert dict(ranking) == pytest.approx(expected, rel=1e-6)
        assert ranking == Ranking.from_pairs(dict(ranking))


@given(RUNS)
def test_scaled_scores(scores: list[dict[str, dict[str, float]]]) -> None:
    """By default, scores are divided by the highest of run and query."""
    fused = score_fusion([run_of(x) for x in scores])
    for query, ranking in fused.rankings.items():
        expected: dict[str, float] = {}
        for of_run in scores:
            of_query = of_run.get(query, {})
            for doc_id, score in of_query.items():
                share = score / max(of_query.values())
                expected[doc_id] = expected.get(doc_id, 0) + share
        assert dict(ranking) == pytest.approx(expected, rel=1e-6)


def test_raw_scores() -> None:
    """They are summed as they are."""
    runs = [run_of({"1": {"a": 3, "b": 1}}), run_of({"1": {"b": 4, "c": 2}})]
    fused = score_fusion(runs, [1, 0.5], Scale.RAW)
    assert list(fused.rankings["1"]) == [("b", 3.0), ("a", 3.0), ("c", 1.0)]


def test_scales_by_name() -> None:
    """A name is the scale of that name, and an unknown one is refused."""
    runs = [run_of({"1": {"a": 3, "b": 2, "c": 1}})]
    assert score_fusion(runs, scale="minmax") == score_fusion(runs, scale=Scale.MINMAX)
    assert list(score_fusion(runs, scale="minmax").rankings["1"])[-1] == ("c", 0.0)
    with pytest.raises(InputError, match="unknown scale: expected raw or max or minmax"):
        score_fusion(runs, scale="best")


def test_a_score_of_zero_is_not_below_zero() -> None:
    """A ranking may end with a score of 0, which every scale leaves at 0."""
    for scale in Scale:
        fused = score_fusion([run_of({"1": {"a": 1, "b": 0}})], scale=scale)
        assert list(fused.rankings["1"]) == [("a", 1.0), ("b", 0.0)]


def test_rankings_of_one_query_are_fused() -> None:
    """The constant is 60, and only the best are ranked."""
    rankings = [Ranking.of(["a", "b"], [9, 8]), Ranking.of(["b", "c", "d"], [3, 2, 1])]
    fused = fuse_rankings(rankings, 3)
    assert fused.doc_ids == ("b", "a", "c")
    expected = [1 / 62 + 1 / 61, 1 / 61, 1 / 62]
    assert fused.scores.tolist() == pytest.approx(expected, rel=1e-6)
    runs = [Run({"1": ranking}) for ranking in rankings]
    assert reciprocal_rank_fusion(runs).head(3).rankings == {"1": fused}


def test_a_rank_constant_is_a_finite_number_from_0_on() -> None:
    """With 0, scores are reciprocal ranks; constants below 0, infinity and NaN are refused."""
    runs = [run_of({"1": {"a": 3, "b": 1}})]
    assert list(reciprocal_rank_fusion(runs, None, 0).rankings["1"]) == [("a", 1.0), ("b", 0.5)]
    for constant in (-0.5, float("inf"), float("nan")):
        with pytest.raises(InputError, match="rank constant out of range: expected 0 or more"):
            reciprocal_rank_fusion(runs, None, constant)


def test_nothing_cannot_be_combined() -> None:
    """Without runs there is no result."""
    for fuse in (reciprocal_rank_fusion, score_fusion):
        with pytest.raises(InputError, match="no runs to combine"):
            fuse([])


@pytest.mark.parametrize("weights", [[1], [1, -1], [0, 0], [1, float("nan")]])
def test_wrong_weights(weights: list[float]) -> None:
    runs = [run_of({"1": {"a": 3}})] * 2
    with pytest.raises(InputError, match="weights"):
        reciprocal_rank_fusion(runs, weights)


def test_scores_below_zero_are_refused() -> None:
    """A document that a run does not rank counts as 0, and would be above those that it ranks."""
    given = run_of({"1": {"a": 3}})
    for scale in ("max", "raw"):
        for scores in ({"x": 0, "y": -1}, {"x": 0.01, "y": -1.5}, {"x": 5, "y": -4.9}):
            with pytest.raises(InputError, match=r"run t, query 1: a score is below 0.*minmax"):
                score_fusion([given, run_of({"1": scores})], scale=scale)
    fused = score_fusion([given, run_of({"1": {"x": 0, "y": -1}})], scale="minmax")
    assert list(fused.rankings["1"]) == [("x", 1.0), ("y", 0.0), ("a", 0.0)]


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It writes a run, and says which queries are not in all runs."""
    monkeypatch.chdir(tmp_path)
    Path("a.run").write_text("1 Q0 x 1 9 a\n1 Q0 y 2 8 a\n2 Q0 z 1 1 a\n")
    Path("b.run").write_text("1 Q0 y 1 5 b\n1 Q0 w 2 4 b\n")

    def fuse(*arguments: str) -> str:
        done = CliRunner().invoke(group, ["fuse", *arguments])
        if done.exception:
            raise done.exception
        return done.output

    assert "queries that are not in all runs: 1" in fuse("a.run", "b.run", "--output", "c.run")
    assert [line.split()[2] for line in Path("c.run").read_text().splitlines()] == list("yxwz")
    assert Path("c.run").read_text().splitlines()[0].split()[5] == "rrf"
    said = fuse("a.run", "b.run", "--depth", "2", "--output", "two.run")
    assert "left out, below --depth: 1 document" in said
    assert [line.split()[2] for line in Path("two.run").read_text().splitlines()] == ["y", "x", "z"]
    fuse("a.run", "b.run", "--by", "scores", "--weight", "1", "--weight", "0", "--output", "d.run")
    assert [line.split()[2] for line in Path("d.run").read_text().splitlines()] == list("xywz")
    with pytest.raises(InputError, match="--scale"):
        fuse("a.run", "b.run", "--scale", "raw", "--output", "e.run")
    with pytest.raises(InputError, match="nothing to combine"):
        fuse("a.run", "--output", "e.run")
