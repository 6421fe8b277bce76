"""Does a study of re-ranking rank, compare and count as computed by hand?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from birchbark.checkpoint.heads import Pooling
from birchbark.collection.qrels import read_qrels
from birchbark.collection.runs import read_run
from birchbark.errors import InputError
from birchbark.evaluate.measures import measure
from birchbark.evaluate.significance import Difference
from birchbark.index.build_index import Schema, build_index
from birchbark.index.index import Index
from birchbark.records import Qrels, Ranking, Run
from birchbark.retrieve.bm25 import BM25
from birchbark.retrieve.first_stage import FirstStage, rank_query
from birchbark.retrieve.match import AND
from birchbark.score.embedding import EmbeddingScorer
from birchbark.score.load_scorer import load_scorer
from birchbark.score.scorer import score_texts
from birchbark.segment.by_name import parse_segmenter
from birchbark.show.plot import Curves, Dots
from birchbark.show.table import Group
from birchbark_studies.experiments.reranking.reranking_experiment import RerankingExperiment
from birchbark_studies.experiments.reranking.reranking_runs import (
    Pool,
    ScoredPairs,
    mean_rank_change,
    random_scores,
    rerank_top,
)
from birchbark_studies.experiments.reranking.reranking_settings import (
    ModelParameter,
    RerankingSettings,
)
from birchbark_studies.experiments.reranking.reranking_tables import (
    Reranked,
    RerankingReport,
    ScoredFirstStage,
    _depth_curves,
)
from birchbark_studies.models import Models
from birchbark_studies.outcome import Outcome
from birchbark_studies.roc import auc
from conftest import DOCUMENTS, QUERIES
from small_study import COLLECTION, QRELS, SmallStudy, noted_families, table_of, write_small_study

RECIPE = """
kind = "reranking"
title = "Re-ranked"
measures = ["nDCG@10", "AP"]
seed = 7
[reranking]
models = { tiny = "MODEL" }
fields = { both = "whole", title = "title" }
depths = [2, 5]
top = [1, 3]
highest = 2
judged_only = ["Tiny"]
histograms = ["tiny"]
over = { axis = "number", at = { tiny = 0.5 } }
nearest = { model = "MODEL", segments = "title" }
"""
ROWS = ["tiny, both", "tiny, title", "random"]


@pytest.fixture
def study(tmp_path: Path, bert: Callable[..., Path]) -> SmallStudy:
    return write_small_study(
        tmp_path,
        RECIPE,
        MODEL=bert(labels=1),
        qrels=QRELS + "1 0 engine 0\n2 0 bees -1\n3 0 gone 1\n",
    )


@pytest.fixture
def outcome(study: SmallStudy, tmp_path: Path) -> Outcome:
    """The outcome of the study."""
    return study.run()


def by_hand(folder: Path, segmenter: str) -> dict[str, dict[str, float]]:
    """Compute query_id → doc_id → score of the best segment, for documents with segments."""
    scorer = load_scorer(next(p for p in folder.iterdir() if p.name.startswith("bert")))
    texts = {d.doc_id: [s.text for s in parse_segmenter(segmenter)(d)] for d in DOCUMENTS}
    return {
        q: {
            doc_id: float(score_texts(scorer, text, segments).max())
            for doc_id, segments in texts.items()
            if segments
        }
        for q, text in QUERIES.items()
    }


def test_first_documents_are_ranked_by_the_model_alone(outcome: Outcome, tmp_path: Path) -> None:
    """Documents below keep their order; documents without the field come last among the top."""
    index = build_index(DOCUMENTS, tmp_path / "index")
    for segmenter, row in (("whole", "tiny-both"), ("title", "tiny-title")):
        scores = by_hand(tmp_path, segmenter)
        run = read_run(tmp_path / "out" / "runs" / f"Tiny.BM25.{row}.run")
        for query_id, text in QUERIES.items():
            first = rank_query(index, text).doc_ids
            scored = [d for d in first[:2] if d in scores[query_id]]
            head = Ranking.of(scored, [scores[query_id][d] for d in scored])
            without = [d for d in first[:2] if d not in scored]
            assert run.rankings[query_id].doc_ids == (*head.doc_ids, *without, *first[2:])


def test_p_is_corrected_for_all_groups_of_a_collection(
    study: SmallStudy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two first stages, each with and without unjudged documents, three rows and two measures."""
    families = noted_families(monkeypatch)
    study.run()
    assert families == [4 * 3 * 2] * 4


def test_groups_of_other_collections_are_not_corrected_for(
    study: SmallStudy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A collection that is not shown a second time has half as many comparisons."""
    families = noted_families(monkeypatch)
    study.append(COLLECTION.replace("Tiny", "Two"))
    groups = [group.name for group in table_of(study.run(), "reranked").groups]
    assert [name.partition(",")[0] for name in groups] == [
        "Tiny",
        "Tiny",
        "Two",
        "Two",
        "Tiny",
        "Tiny",
    ]
    tiny, two = 4 * 3 * 2, 2 * 3 * 2
    assert families == [tiny, tiny, two, two, tiny, tiny]


def test_areas_and_differences(outcome: Outcome, tmp_path: Path) -> None:
    """AUC covers judged and top documents; differences equal those between the runs."""
    qrels = read_qrels(tmp_path / "qrels.txt")
    folder = tmp_path / "out" / "runs"
    firsts = [read_run(folder / f"Tiny.{name}.as-it-was.run") for name in ("BM25", "cosine")]
    for column, segmenter in enumerate(("whole", "title")):
        scores, relevant = [], []
        for query_id, by_document in by_hand(tmp_path, segmenter).items():
            top = {d for run in firsts for d in run.rankings[query_id].doc_ids[:5]}
            for doc_id in by_document.keys() & (top | qrels.grades[query_id].keys()):
                scores.append(by_document[doc_id])
                relevant.append(qrels.grades[query_id].get(doc_id, 0) > 0)
        cell = table_of(outcome, "auc").groups[0].rows[0].cells[column].value
        assert cell == pytest.approx(auc(np.array(scores), np.array(relevant)), abs=1e-6)
    groups = table_of(outcome, "reranked").groups
    assert [group.name for group in groups] == [
        "Tiny, BM25",
        "Tiny, cosine",
        "Tiny, BM25, judged documents only",
        "Tiny, cosine, judged documents only",
    ]
    depths = table_of(outcome, "depths").groups
    for group, judged_only in ((0, False), (2, True)):
        assert [row.name for row in groups[group].rows] == ["BM25", *ROWS]
        before = measure(qrels, firsts[0], ["nDCG@10"], judged_only=judged_only).means["nDCG@10"]
        for number, row in enumerate(("tiny-both", "tiny-title", "random")):
            run = read_run(folder / f"Tiny.BM25.{row}.run")
            after = measure(qrels, run, ["nDCG@10"], judged_only=judged_only).means["nDCG@10"]
            assert groups[group].rows[1 + number].cells[0].value == pytest.approx(after)
            assert depths[group].rows[number].cells[0].value == pytest.approx(after - before)


def test_grades_at_the_top(outcome: Outcome, tmp_path: Path) -> None:
    """All top documents are counted; a negative grade counts as grade 0."""
    grades = read_qrels(tmp_path / "qrels.txt").grades
    groups = table_of(outcome, "top").groups
    stages = ("BM25", "cosine")
    names = [f"Tiny, {stage}, top {top}" for stage in stages for top in (1, 3)]
    assert [group.name for group in groups] == names
    for number, group in enumerate(groups):
        assert [row.name for row in group.rows[1:]] == ROWS
        first = read_run(tmp_path / "out" / "runs" / f"Tiny.{stages[number // 2]}.as-it-was.run")
        counted = Counter(
            max(0, grade) if (grade := grades[query_id].get(doc_id)) is not None else None
            for query_id, ranking in first.rankings.items()
            for doc_id in ranking.doc_ids[: (1, 3)[number % 2]]
        )
        expected = [counted[grade] for grade in (None, 0, 1, 2)]
        assert [cell.value for cell in group.rows[0].cells] == [*expected, None]
        for row in group.rows[1:]:
            *counts, moved = (cell.value for cell in row.cells)
            assert sum(counts) == sum(expected)  # type: ignore[arg-type]
            assert moved is not None


def test_grades_after_the_deepest_reranking(study: SmallStudy, tmp_path: Path) -> None:
    """They are counted in the rankings by all scores, whatever depth other tables show."""
    study.replace("depths = [2, 5]\ntop = [1, 3]", "depths = [1, 5]\ntop = [2]")
    outcome = study.run()
    qrels, scores = read_qrels(tmp_path / "qrels.txt").grades, by_hand(tmp_path, "whole")
    for group, name in zip(table_of(outcome, "top").groups, ("BM25", "cosine"), strict=True):
        grades = [
            qrels[query_id].get(doc_id)
            for query_id, ranking in outcome.runs[f"Tiny.{name}.as it was"].rankings.items()
            for doc_id in sorted(ranking.doc_ids, key=lambda d: -scores[query_id][d])[:2]
        ]
        counts = [grades.count(grade) for grade in (None, 0, 1, 2)]
        counts[1] += grades.count(-1)
        assert [cell.value for cell in group.rows[1].cells[:4]] == counts


def of_two_seeds() -> ScoredFirstStage:
    """Return a first stage with the scores of two seeds and of another model."""
    scores = {
        "old": {"a": 0.75, "b": 0.5, "c": 0.25},  # a is above both of the others
        "new, seed 1": {"a": 0.5, "b": 0.25, "c": 0.75},  # above one of them
        "new, seed 2": {"a": 0.25, "b": 0.75, "c": 0.5},  # above none
    }
    first = Run({q: Ranking.of(["b", "a", "c"], [3, 2, 1]) for q in "12"}, "BM25")
    qrels = Qrels({q: {"a": 1, "b": 0} for q in "12"})
    by_pair = {(model, "text"): dict.fromkeys("12", of) for model, of in scores.items()}
    random = {q: {"a": 0.5, "b": 0.75, "c": 0.25} for q in "12"}
    return ScoredFirstStage("Tiny", qrels, first, by_pair, random)


def test_models_of_several_seeds(study: SmallStudy) -> None:
    """Of AUC, measures and curves they show the mean; of grades and scores the first seed.

    Grades are those after re-ranking three documents, moves those among two.
    """
    compared = Models(
        {"old": "old", "new, seed 1": "m1", "new, seed 2": "m2"},
        seeds=(1, 2),
        by_variant={"new": ("new, seed 1", "new, seed 2")},
    )
    over = ModelParameter("size", {"new": 2.0, "old": 5.0})
    settings = RerankingSettings(compared, (2, 3), (1,), 1, (), "after", "all", ("new",), over)
    recipe = replace(study.read(), measures=("RR",))
    made, drawn = RerankingReport(settings, recipe, [of_two_seeds()], ["text"]).tables_and_plots()
    rows = {
        table.name: {row.name: [c.value for c in row.cells] for row in table.groups[0].rows}
        for table in made
    }
    assert rows["auc"] == {"old": [1.0], "new": [0.25]}
    values = {"BM25": [0.5], "old, text": [1.0], "new, text": [0.75], "random": [0.5]}
    assert rows["reranked"] == values
    assert rows["depths"]["new, text"] == [0.25, pytest.approx((1 / 2 + 1 / 3) / 2 - 0.5)]
    assert rows["seeds"] == {"new, text": [1.0, 0.5, 0.5]}
    assert rows["top"] == {
        "BM25": [0, 2, 0, None],
        "old, text": [0, 0, 2, 1.0],
        "new, seed 1, text": [2, 0, 0, 1.0],
        "random": [0, 2, 0, 0.0],
    }
    plots = {plot.name: plot for plot in drawn}
    curves, sizes = plots["depths-1-1"], plots["over-1"]
    (scores,) = [plot for plot in drawn if plot.name.startswith("scores-")]
    assert isinstance(curves, Curves)
    assert isinstance(sizes, Curves)
    assert isinstance(scores, Curves)
    assert sizes.series == {"text": ((2.0, 0.25), (5.0, 1.0))}
    assert curves.series["new"] == ((2, 0.25), (3, pytest.approx(-1 / 12)))
    assert scores.title == "Tiny: scores of new, seed 1, text"
    assert [x for x, share in scores.series["relevant"] if share] == [pytest.approx(0.525)]


def test_many_curves_have_no_intervals() -> None:
    """Nor the random order, which would compress them; three models still have both."""
    change = Difference(0.25, 0.125, 0.5, 0.01, 0.03, 1.5, 0.75, 0.0, True)
    names = ["a", "b", "c", "d", "random"]
    reranked = Reranked(
        {name: {2: change} for name in names},
        {name: {2: 0.25, 3: 0.5} for name in names},
        (),
        Group("", ()),
    )
    few = _depth_curves("n", "t", "AP", {f"model {name}": name for name in "abc"}, reranked)
    assert list(few.series) == ["model a", "model b", "model c", "random"]
    assert few.bands == {f"model {name}": ((2, 0.125, 0.5),) for name in "abc"}
    many = _depth_curves("n", "t", "AP", {f"model {name}": name for name in "abcd"}, reranked)
    assert many.series == {f"model {name}": ((2, 0.25), (3, 0.5)) for name in "abcd"}
    assert many.bands is None


def test_plots(outcome: Outcome) -> None:
    """Curves for fields have bands, the random order has none, and histograms sum to 1."""
    plots = {plot.name: plot for plot in outcome.plots}
    curves = plots["depths-1-1"]
    assert isinstance(curves, Curves)
    assert list(curves.series) == ["both", "title", "random"]
    assert curves.reference == 0
    assert list(curves.bands or {}) == ["both", "title"]
    for name, points in (curves.bands or {}).items():
        means = dict(curves.series[name])
        assert [k for k, _, _ in points] == [2, 5]
        assert all(low <= means[k] <= high for k, low, high in points)
    shares = [plot for name, plot in plots.items() if name.startswith("scores-")]
    assert len(shares) == 2
    for plot in shares:
        assert isinstance(plot, Curves)
        for series in plot.series.values():
            assert sum(share for _, share in series) == pytest.approx(1)
    over = plots["over-1"]
    assert isinstance(over, Curves)
    assert [x for x, _ in over.series["both"]] == [0.5]


def test_curves_have_every_depth(outcome: Outcome, tmp_path: Path) -> None:
    """From the first to the last depth, those that the table leaves out included."""
    curves = {plot.name: plot for plot in outcome.plots}["depths-2-1"]
    assert isinstance(curves, Curves)
    first = read_run(tmp_path / "out" / "runs" / "Tiny.cosine.as-it-was.run")
    scores, qrels = by_hand(tmp_path, "whole"), read_qrels(tmp_path / "qrels.txt")
    before, *after = (
        measure(qrels, rerank_top(first, scores, depth, ""), ["nDCG@10"]).means["nDCG@10"]
        for depth in (0, 2, 3, 4, 5)
    )
    points = curves.series["both"]
    assert [k for k, _ in points] == [2, 3, 4, 5]
    assert [change for _, change in points] == pytest.approx([value - before for value in after])
    assert len({change for _, change in points}) > 1


def test_one_depth_has_no_curve(study: SmallStudy, tmp_path: Path) -> None:
    """A single depth is shown as dots with intervals, without the random order."""
    study.replace("depths = [2, 5]", "depths = [5]")
    plots = study.run().plots
    assert not [plot.name for plot in plots if plot.name.startswith("depths")]
    [dots, *_] = [plot for plot in plots if isinstance(plot, Dots)]
    assert [point.row for point in dots.points] == ROWS[:2]


def test_rank_changes_and_histograms() -> None:
    """Two documents that swap ranks each move by one; the mean is over the top `depth`."""
    first = Run({"1": Ranking.of(["a", "b", "c"], [3, 2, 1])}, "first")
    run = rerank_top(first, {"1": {"b": 1.0, "a": 0.5, "c": 2.0}}, 2, "reranked")
    assert run.rankings["1"].doc_ids == ("b", "a", "c")
    assert mean_rank_change(first, run, 2) == 1
    assert mean_rank_change(first, run, 3) == pytest.approx(2 / 3)
    pairs = ScoredPairs.of({"1": {"a": 0.04, "b": 0.96}}, Qrels({"1": {"a": 0, "b": 2}}))
    assert pairs.relevant.tolist() == [False, True]
    strict = Qrels({"1": {"a": 1, "b": 2}}, relevant=2)
    assert ScoredPairs.of({"1": {"a": 0.04, "b": 0.96}}, strict).relevant.tolist() == [False, True]
    assert pairs.histogram(2) == {
        "relevant": ((0.25, 0.0), (0.75, 1.0)),
        "not relevant": ((0.25, 1.0), (0.75, 0.0)),
    }


def test_scores_beyond_0_and_1_are_in_the_outer_bins() -> None:
    """No pair is lost, the edges included; without pairs of a kind, all shares are 0."""
    scores = {"1": {"a": -3.0, "b": 0.0, "c": 0.5, "d": 1.0, "e": 7.0}}
    pairs = ScoredPairs.of(scores, Qrels({"1": {"z": 1}}))
    assert pairs.histogram(2) == {
        "relevant": ((0.25, 0.0), (0.75, 0.0)),
        "not relevant": ((0.25, 0.4), (0.75, 0.6)),
    }


@pytest.mark.parametrize("pooling", ["cls", "max"])
def test_vectors_of_the_first_stage_have_its_pooling(
    study: SmallStudy, tmp_path: Path, pooling: str
) -> None:
    """They are those of the last layer, of the given segments, without negative cosines."""
    study.replace('segments = "title"', f'segments = "title", pooling = "{pooling}"')
    found = study.run().runs["Tiny.cosine.as it was"].rankings
    model = next(p for p in tmp_path.iterdir() if p.name.startswith("bert"))
    scorer = load_scorer(model, pooling=Pooling(pooling))
    assert isinstance(scorer, EmbeddingScorer)
    titles = {d.doc_id: d.title for d in DOCUMENTS if d.title}
    vectors = scorer.embed(scorer.encode(list(titles.values())))
    for query_id, text in QUERIES.items():
        [query] = scorer.embed(scorer.encode([text]))
        expected = Ranking.of(list(titles), np.clip(vectors @ query, 0, 1))
        assert dict(found[query_id]) == pytest.approx(dict(expected), abs=1e-5)


def test_documents_without_a_score_keep_their_order() -> None:
    """They rank below documents with a score and above documents that are not re-ranked."""
    first = Run({"1": Ranking.of(["a", "b", "c", "d", "e"], [5, 4, 3, 2, 1])}, "first")
    run = rerank_top(first, {"1": {"d": 0.0}}, 4, "reranked")
    assert run.rankings["1"].doc_ids == ("d", "a", "b", "c", "e")
    assert rerank_top(first, {}, 4, "reranked").rankings == first.rankings


def test_random_scores_are_others_for_each_query() -> None:
    """The first document would otherwise have the same luck in each query."""
    documents = dict.fromkeys("12", ("a", "b", "c"))
    scores, again, other = (random_scores(documents, seed) for seed in (7, 7, 8))
    assert scores == again
    drawn = [value for of in (scores, other) for query in of.values() for value in query.values()]
    assert len(set(drawn)) == 12
    assert random_scores({"1": ("a", "b")}, 7)["1"] == {d: scores["1"][d] for d in "ab"}


def test_pool(index: Index) -> None:
    """The pool contains top and judged documents; judged documents not indexed are counted."""
    first = Run({"1": Ranking.of(["canoe", "bees", "forest"], [3, 2, 1])}, "first")
    qrels = Qrels({"1": {"forest": 0, "canoe": 1, "gone": 1}, "2": {"bees": 1}})
    pool = Pool.of(qrels, [first], 2, index)
    assert pool.documents == {"1": ("canoe", "bees", "forest"), "2": ("bees",)}
    assert pool.missing == 1


def test_documents_that_models_read(study: SmallStudy) -> None:
    """One model reads the five best documents of two first stages in two fields; see `Plan`."""

    def read() -> int:
        recipe = study.read()
        assert isinstance(recipe.experiment, RerankingExperiment)
        return recipe.experiment.documents_read(recipe.collections[0])

    assert read() == 5 * 2 * 2
    stage = '[[reranking.first_stages]]\nname = "{0}"\n'
    stages = "".join(stage.format(name) for name in ("a", "b", "c"))
    study.replace("[[collections]]", f"{stages}[[collections]]")
    assert read() == 5 * 4 * 2
    study.append('run = "given.run"\n')
    assert read() == 5 * 2 * 2  # the run instead of the three
    study.replace("nearest = {", "# nearest = {")
    assert read() == 5 * 1 * 2


def test_models_are_plotted_in_the_order_of_their_numbers(
    study: SmallStudy, tmp_path: Path
) -> None:
    """A curve would go back and forth otherwise; a model without a number is in none."""
    model = next(p for p in tmp_path.iterdir() if p.name.startswith("bert"))
    models = ", ".join(f'{name} = "{model}"' for name in ("large", "none", "small"))
    study.replace("models = { tiny = ", f"models = {{ {models}, tiny = ")
    study.replace("at = { tiny = 0.5 }", "at = { large = 30, small = 4, tiny = 2.5 }")
    experiment = study.read().experiment
    assert isinstance(experiment, RerankingExperiment)
    over = experiment.settings.over
    assert over
    assert list(over.at.items()) == [("tiny", 2.5), ("small", 4), ("large", 30)]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('title = "title"', 'title = "heading"', "unknown segments 'heading'"),
        ("depths = [2, 5]", "depths = [5, 2]", "ascending numbers"),
        ('histograms = ["tiny"]', 'histograms = ["huge"]', "no model 'huge'"),
        ("at = { tiny = 0.5 }", "at = { huge = 0.5 }", "unknown key"),
        ('segments = "title"', 'segments = "heading"', "unknown segments"),
        ("top = [1, 3]", "top = 0", "1 or more"),
        ('title = "title" }', '"both!" = "title" }', "two rows are called"),
    ],
)
def test_invalid_recipes(study: SmallStudy, old: str, new: str, message: str) -> None:
    """Errors are reported before any work."""
    study.replace(old, new)
    with pytest.raises(InputError, match=message):
        study.read()


def test_judged_only_names_a_collection(study: SmallStudy, tmp_path: Path) -> None:
    """The fault is reported before anything is trained or scored."""
    study.replace('judged_only = ["Tiny"]', 'judged_only = ["X"]')
    with pytest.raises(InputError, match=r"judged_only names an unknown collection: .*found X"):
        study.run()


def test_depth_above_the_first_stage(study: SmallStudy, tmp_path: Path) -> None:
    """The fault is reported before anything is trained or scored."""
    study.replace("seed = 7", "seed = 7\ndepth = 4")
    with pytest.raises(InputError, match=r"depth.*wanted|depth: .*expected 5 or more, found 4"):
        study.run()


def test_a_grade_above_the_highest(study: SmallStudy, tmp_path: Path) -> None:
    """A grade without a column raises InputError."""
    study.replace("highest = 2", "highest = 1")
    with pytest.raises(InputError, match=r"a grade above the highest.*reranking\.highest = 2"):
        study.run()


def test_first_stages_of_weighted_fields(study: SmallStudy, tmp_path: Path) -> None:
    """They rank as `rank_query` does over these fields; vectors can be limited to matches.

    The analyzer is the recipe's, and so are k1, b and the documents that idf counts.
    """
    study.replace("[reranking]", '[bm25]\nk1 = 2.5\nb = 1\nidf_documents = "all"\n[reranking]')
    fields = "fields = { title = 0.25, text = 0.6 }"
    stage = f'[[reranking.first_stages]]\nname = "weighted"\n{fields}\nmatch = "and"\n'
    study.replace("[reranking]", '[reranking]\nanalyzer = "porter"')
    queries = {query_id: f"the {text}" for query_id, text in QUERIES.items()}
    (tmp_path / "q.tsv").write_text("".join(f"{q}\t{text}\n" for q, text in queries.items()))
    study.replace("[[collections]]", f"{stage}[[collections]]")
    study.replace('segments = "title" }', 'segments = "title", match = "and" }')
    outcome = study.run()
    schema = Schema("porter", fields={"title": ("title",), "text": ("text",)})
    index = build_index(DOCUMENTS, tmp_path / "index", schema)
    model = BM25(2.5, 1.0, "all")
    expected = FirstStage(model, {"title": 0.25, "text": 0.6}, match=AND)
    joint = build_index(DOCUMENTS, tmp_path / "joint", Schema("porter"))
    for query_id, text in queries.items():
        ranked = rank_query(index, text, expected)
        assert outcome.runs["Tiny.weighted.as it was"].rankings[query_id] == ranked
        nearest = outcome.runs["Tiny.cosine.as it was"].rankings[query_id].doc_ids
        assert set(nearest) <= set(rank_query(joint, text, FirstStage(match=AND)).doc_ids)
    assert any(r.doc_ids for r in outcome.runs["Tiny.cosine.as it was"].rankings.values())
    study.replace('name = "weighted"', 'name = "cosine"')
    with pytest.raises(InputError, match="two rows are called 'cosine'"):
        study.read()
    study.replace('name = "cosine"', 'name = "random"')
    with pytest.raises(InputError, match="two rows are called 'random'"):
        study.read()


def test_areas_of_judged_pairs(study: SmallStudy, tmp_path: Path) -> None:
    """Unjudged documents at the top are left out of AUC, and its note says so."""
    study.replace("top = [1, 3]", 'top = [1, 3]\nauc_pairs = "judged"')
    outcome = study.run()
    grades = read_qrels(tmp_path / "qrels.txt").grades
    scores, relevant = [], []
    for query_id, by_document in by_hand(tmp_path, "whole").items():
        for doc_id in by_document.keys() & grades[query_id].keys():
            scores.append(by_document[doc_id])
            relevant.append(grades[query_id][doc_id] > 0)
    table = table_of(outcome, "auc")
    area = table.groups[0].rows[0].cells[0].value
    assert area == pytest.approx(auc(np.array(scores), np.array(relevant)), abs=1e-6)
    assert "first stage" not in table.note


def test_unjudged_documents_can_be_removed_before_reranking(
    study: SmallStudy, tmp_path: Path
) -> None:
    """The top documents are then the first judged ones, whose order is the model's."""
    study.replace("top = [1, 3]", 'top = [1, 3]\nremoved = "before"')
    outcome = study.run()
    qrels = read_qrels(tmp_path / "qrels.txt")
    first, scores = outcome.runs["Tiny.BM25.as it was"], by_hand(tmp_path, "whole")
    rankings = {}
    for query_id, ranking in first.rankings.items():
        judged = [d for d in ranking.doc_ids if d in qrels.grades[query_id]]
        top = sorted(judged[:2], key=lambda d: -scores[query_id][d])
        order = [*top, *judged[2:]]
        rankings[query_id] = Ranking.of(order, np.arange(len(order), 0, -1))
    after = measure(qrels, Run(rankings, "x"), ["nDCG@10"], judged_only=True).means["nDCG@10"]
    group = table_of(outcome, "reranked").groups[2]
    assert group.name == "Tiny, BM25, judged documents only"
    assert group.rows[1].cells[0].value == pytest.approx(after)
    assert "removed before re-ranking" in table_of(outcome, "depths").note
