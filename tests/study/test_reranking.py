"""Does a study of re-ranking rank, compare and count as one would by hand?"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from birchbark.collection.qrels import read_qrels
from birchbark.collection.runs import read_run
from birchbark.errors import InputError
from birchbark.evaluate.measures import measure
from birchbark.evaluate.roc import auc
from birchbark.index.build import build_index
from birchbark.index.reader import Index
from birchbark.records import Qrels, Ranking, Run
from birchbark.retrieve.first_stage import rank_query
from birchbark.score.model import load_scorer
from birchbark.score.scorer import score_texts
from birchbark.segment.named import parse_segmenter
from birchbark.show.plot import Curves, Dots
from birchbark.show.table import Table
from birchbark.study.kinds.reranking_runs import Told, ToScore, places_moved, reranked
from birchbark.study.outcome import Outcome
from birchbark.study.recipe_file import read_recipe
from birchbark.study.run import run_study
from conftest import DOCUMENTS, QUERIES, write_collection

RECIPE = """
kind = "reranking"
title = "Ranked anew"
measures = ["nDCG@10", "AP"]
seed = 7
[reranking]
models = { tiny = "MODEL" }
fields = { both = "whole", title = "title" }
depths = [2, 5]
top = 1
highest = 2
judged_only = ["Tiny"]
histograms = ["tiny"]
over = { axis = "number", at = { tiny = 0.5 } }
nearest = { model = "MODEL", segments = "title" }
[[collections]]
name = "Tiny"
documents = "docs.jsonl"
queries = "q.tsv"
qrels = "qrels.txt"
"""
ROWS = ["tiny, both", "tiny, title", "random"]


@pytest.fixture
def recipe(tmp_path: Path, bert: Callable[..., Path]) -> Path:
    """A recipe beside a collection of a few documents, some judged not relevant."""
    write_collection(tmp_path)
    with (tmp_path / "qrels.txt").open("a") as out:
        out.write("1 0 engine 0\n2 0 bees -1\n3 0 gone 1\n")
    path = tmp_path / "recipe.toml"
    path.write_text(RECIPE.replace("MODEL", str(bert(labels=1))))
    return path


@pytest.fixture
def outcome(recipe: Path, tmp_path: Path) -> Outcome:
    """The recipe, run."""
    return run_study(read_recipe(recipe), tmp_path, tmp_path / "out")


def found(outcome: Outcome, name: str) -> Table:
    """The table called `name`."""
    return next(table for table in outcome.tables if table.name == name)


def by_hand(folder: Path, words: str) -> dict[str, dict[str, float]]:
    """query_id → doc_id → the model's score of what `words` make of it; none where nothing."""
    scorer = load_scorer(next(p for p in folder.iterdir() if p.name.startswith("bert")))
    texts = {d.doc_id: [s.text for s in parse_segmenter(words)(d)] for d in DOCUMENTS}
    return {
        q: {
            doc_id: float(score_texts(scorer, text, some).max())
            for doc_id, some in texts.items()
            if some
        }
        for q, text in QUERIES.items()
    }


def test_first_documents_are_ranked_by_the_model_alone(outcome: Outcome, tmp_path: Path) -> None:
    """Those below them keep their order; a title that is not there comes last."""
    index = build_index(DOCUMENTS, tmp_path / "index")
    for words, row in (("whole", "tiny-both"), ("title", "tiny-title")):
        scores = by_hand(tmp_path, words)
        run = read_run(tmp_path / "out" / "runs" / f"Tiny.BM25.{row}.run")
        for query_id, text in QUERIES.items():
            first = rank_query(index, text).doc_ids
            own = [d for d in first[:2] if d in scores[query_id]]
            head = Ranking.of(own, [scores[query_id][d] for d in own])
            without = [d for d in first[:2] if d not in own]
            assert run.rankings[query_id].doc_ids == (*head.doc_ids, *without, *first[2:])


def test_areas_and_differences(outcome: Outcome, tmp_path: Path) -> None:
    """As the definitions have them, of all that is judged or near the top."""
    qrels = read_qrels(tmp_path / "qrels.txt")
    folder = tmp_path / "out" / "runs"
    firsts = [read_run(folder / f"Tiny.{name}.as-it-was.run") for name in ("BM25", "cosine")]
    for place, words in enumerate(("whole", "title")):
        scores, relevant = [], []
        for query_id, own in by_hand(tmp_path, words).items():
            near = {d for run in firsts for d in run.rankings[query_id].doc_ids[:5]}
            for doc_id in own.keys() & (near | qrels.grades[query_id].keys()):
                scores.append(own[doc_id])
                relevant.append(qrels.grades[query_id].get(doc_id, 0) > 0)
        cell = found(outcome, "auc").groups[0].rows[0].cells[place].value
        assert cell == pytest.approx(auc(np.array(scores), np.array(relevant)), abs=1e-6)
    groups = found(outcome, "reranked").groups
    assert [group.name for group in groups] == [
        "Tiny, BM25",
        "Tiny, cosine",
        "Tiny, BM25, judged documents alone",
        "Tiny, cosine, judged documents alone",
    ]
    depths = found(outcome, "depths").groups
    for at, alone in ((0, False), (2, True)):
        assert [row.name for row in groups[at].rows] == ["BM25", *ROWS]
        before = measure(qrels, firsts[0], ["nDCG@10"], judged_only=alone).means["nDCG@10"]
        for number, row in enumerate(("tiny-both", "tiny-title", "random")):
            run = read_run(folder / f"Tiny.BM25.{row}.run")
            after = measure(qrels, run, ["nDCG@10"], judged_only=alone).means["nDCG@10"]
            assert groups[at].rows[1 + number].cells[0].value == pytest.approx(after)
            assert depths[at].rows[number].cells[0].value == pytest.approx(after - before)


def test_grades_at_the_top(outcome: Outcome) -> None:
    """All first documents are counted, a grade below 0 as 0."""
    for group in found(outcome, "top").groups:
        assert [row.name for row in group.rows[1:]] == ROWS
        for row in group.rows:
            *counts, moved = (cell.value for cell in row.cells)
            assert sum(counts) == len(QUERIES)  # type: ignore[arg-type]
            assert (moved is None) == (row is group.rows[0])


def test_plots(outcome: Outcome) -> None:
    """Fields of the one model with their bands, chance without one, histograms that add up."""
    plots = {plot.name: plot for plot in outcome.plots}
    curves = plots["depths-1-1"]
    assert isinstance(curves, Curves)
    assert list(curves.series) == ["both", "title", "random"]
    assert curves.reference == 0
    assert list(curves.bands or {}) == ["both", "title"]
    for name, points in (curves.bands or {}).items():
        for (x, y), (k, low, high) in zip(curves.series[name], points, strict=True):
            assert x == k
            assert low <= y <= high
    shares = [plot for name, plot in plots.items() if name.startswith("scores-")]
    assert len(shares) == 2
    for plot in shares:
        assert isinstance(plot, Curves)
        for series in plot.series.values():
            assert sum(share for _, share in series) == pytest.approx(1)
    over = plots["over-1"]
    assert isinstance(over, Curves)
    assert [x for x, _ in over.series["both"]] == [0.5]


def test_one_depth_has_no_curve(recipe: Path, tmp_path: Path) -> None:
    """But dots with their intervals, of the models alone."""
    recipe.write_text(recipe.read_text().replace("depths = [2, 5]", "depths = [5]"))
    plots = run_study(read_recipe(recipe), tmp_path, tmp_path / "out").plots
    assert not [plot.name for plot in plots if plot.name.startswith("depths")]
    [dots, *_] = [plot for plot in plots if isinstance(plot, Dots)]
    assert [point.row for point in dots.points] == ROWS[:2]


def test_moves_and_chance() -> None:
    """Two documents that change places moved one place each, of those that were ranked anew."""
    first = Run({"1": Ranking.of(["a", "b", "c"], [3, 2, 1])}, "first")
    run = reranked(first, {"1": {"b": 1.0, "a": 0.5, "c": 2.0}}, 2, "anew")
    assert run.rankings["1"].doc_ids == ("b", "a", "c")
    assert places_moved(first, run, 2) == 1
    assert places_moved(first, run, 3) == pytest.approx(2 / 3)
    told = Told.of({"1": {"a": 0.04, "b": 0.96}}, Qrels({"1": {"a": 0, "b": 2}}))
    assert told.histogram(2) == {
        "relevant": ((0.25, 0.0), (0.75, 1.0)),
        "others": ((0.25, 1.0), (0.75, 0.0)),
    }


def test_what_has_no_score_keeps_its_order() -> None:
    """Under what has one, above what is not ranked anew."""
    first = Run({"1": Ranking.of(["a", "b", "c", "d", "e"], [5, 4, 3, 2, 1])}, "first")
    run = reranked(first, {"1": {"d": 0.0}}, 4, "anew")
    assert run.rankings["1"].doc_ids == ("d", "a", "b", "c", "e")
    assert reranked(first, {}, 4, "anew").rankings == first.rankings


def test_what_is_scored(index: Index) -> None:
    """The first of each query, and what is judged besides; what has no text is counted."""
    first = Run({"1": Ranking.of(["canoe", "bees", "forest"], [3, 2, 1])}, "first")
    qrels = Qrels({"1": {"forest": 0, "canoe": 1, "gone": 1}, "2": {"bees": 1}})
    found = ToScore.of(qrels, [first], 2, index)
    assert found.documents == {"1": ("canoe", "bees", "forest"), "2": ("bees",)}
    assert found.absent == 1


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('title = "title"', 'title = "heading"', "unknown segments 'heading'"),
        ("depths = [2, 5]", "depths = [5, 2]", "numbers that rise"),
        ('histograms = ["tiny"]', 'histograms = ["huge"]', "no model 'huge'"),
        ("at = { tiny = 0.5 }", "at = { huge = 0.5 }", "unknown key"),
        ('segments = "title"', 'segments = "heading"', "unknown segments"),
        ("top = 1", "top = 0", "1 or more"),
        ('title = "title" }', '"both!" = "title" }', "two rows would be called"),
    ],
)
def test_faults(recipe: Path, old: str, new: str, told: str) -> None:
    """Told before any work."""
    recipe.write_text(recipe.read_text().replace(old, new))
    with pytest.raises(InputError, match=told):
        read_recipe(recipe)


def test_judged_only_names_a_collection(recipe: Path, tmp_path: Path) -> None:
    """Told before anything is trained or scored."""
    recipe.write_text(recipe.read_text().replace('judged_only = ["Tiny"]', 'judged_only = ["X"]'))
    with pytest.raises(InputError, match="judged_only names no collection: X"):
        run_study(read_recipe(recipe), tmp_path, tmp_path / "out")


def test_no_deeper_than_the_first_stage(recipe: Path, tmp_path: Path) -> None:
    """Told before anything is trained or scored."""
    recipe.write_text(recipe.read_text().replace("seed = 7", "seed = 7\ndepth = 4"))
    with pytest.raises(InputError, match=r"depth.*wanted|depth: .*expected 5 or more, found 4"):
        run_study(read_recipe(recipe), tmp_path, tmp_path / "out")


def test_every_grade_is_counted(recipe: Path, tmp_path: Path) -> None:
    """One above the highest column is refused, not left out."""
    recipe.write_text(recipe.read_text().replace("highest = 2", "highest = 1"))
    with pytest.raises(InputError, match=r"a grade is above.*reranking\.highest = 2"):
        run_study(read_recipe(recipe), tmp_path, tmp_path / "out")
