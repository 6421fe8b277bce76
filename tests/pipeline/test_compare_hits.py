"""Are the best documents re-ranked by the requested comparisons, and is each made only once?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from birchbark.checkpoint.checkpoint import Checkpoint
from birchbark.cli import group
from birchbark.collection.runs import write_run
from birchbark.combine.interpolate import Scale, scale_scores
from birchbark.combine.pairwise import Pairwise, parse_pairwise
from birchbark.deadline import FIRST_TOKENS, Deadline
from birchbark.device.torch_session import TorchSession
from birchbark.errors import CheckpointError, InputError
from birchbark.index.build_index import Schema, build_index
from birchbark.pipeline.answers.answer import Hit, SearchStats
from birchbark.pipeline.compare_hits import compare_hits
from birchbark.pipeline.load_rankers import make_ranker
from birchbark.pipeline.loaded_models import LoadedModels
from birchbark.pipeline.reading.document_reader import RankerReaders
from birchbark.pipeline.rerank import rerank
from birchbark.pipeline.run_stages import _by_comparison, run_stages
from birchbark.pipeline.search import search
from birchbark.pipeline.settings.duo import Duo
from birchbark.pipeline.settings.ranker import Ranker
from birchbark.pipeline.stage_options import StageOptions
from birchbark.records import Document, Float32s, Ids, Query, Ranking
from birchbark.retrieve.bm25 import BM25
from birchbark.retrieve.engine import IndexEngine
from birchbark.retrieve.first_stage import FirstStage, rank_queries
from birchbark.score.duo import DuoScorer, load_duo_scorer
from birchbark.score.load_scorer import load_scorer
from birchbark.score.precision import Precision
from birchbark.score_cache.cached_scorer import CachedScorer
from birchbark.score_cache.store import ScoreStore
from birchbark.segment.whole import whole
from birchbark.segment.windows import Windows
from conftest import READ_EVERYTHING, WORDS, WordScorer, write_bert, write_duo

RANDOM = np.random.default_rng(4)
DOCUMENTS = [
    Document(f"d{n}", {"text": " ".join(RANDOM.choice(WORDS[:-4], 3 + 4 * (n % 5)))})
    for n in range(20)
]
QUERY = Query("q", " ".join(WORDS[:3]))


@pytest.fixture
def engine(tmp_path: Path) -> IndexEngine:
    return IndexEngine(build_index(DOCUMENTS, tmp_path / "index", Schema("plain")))


@pytest.fixture
def mono(tmp_path: Path) -> Any:
    return load_scorer(write_bert(tmp_path / "mono", labels=1), threads=1)


@pytest.mark.parametrize("method", ["sum", "binary", "min", "max", "sample:2"])
def test_the_best_documents_are_re_ranked(
    tmp_path: Path, engine: IndexEngine, mono: Any, method: str
) -> None:
    """Their best segments are compared; the other documents keep their order below them."""
    duo = load_duo_scorer(write_duo(tmp_path / "duo"), threads=1)
    run = rank_queries(engine.index, [QUERY], FirstStage(BM25()), depth=20)
    plain = Ranker(mono, Windows(4, 1), depth=12)
    before = rerank(engine, run, [QUERY], plain).rankings["q"].doc_ids
    pairwise, pairs = parse_pairwise(method), []
    work: list[Any] = []
    ranker = Ranker(mono, Windows(4, 1), depth=12, duo=Duo(duo, duo, 5, pairwise))
    ranked = rerank(engine, run, [QUERY], ranker, on_query=lambda query: work.append(query.stats))
    ranking = ranked.rankings["q"]
    assert ranked.tag.endswith("+cross-encoder+duo")
    assert set(ranking.doc_ids[:5]) == set(before[:5])
    assert ranking.doc_ids[5:] == before[5:]
    hits = {hit.document.doc_id: hit for hit in search(engine, QUERY.text, plain, top=12).hits}
    texts = duo.encode([hits[d].segments[0].segment.text for d in before[:5]])
    token_budget = duo.side_token_budget(QUERY.text)
    p = np.full((5, 5), np.nan)
    for i, j in pairwise.pairs(5, QUERY.text):
        pairs.append(duo.join(texts[i][:token_budget], texts[j][:token_budget]))
        p[i, j] = duo.score(QUERY.text, pairs[-1:])[0]
    scores = pairwise.scores(p)
    order = np.argsort(-scores, kind="stable")
    assert ranking.doc_ids[:5] == tuple(before[i] for i in order)
    assert work[0].comparisons == len(pairs)
    top = rerank(engine, run, [QUERY], ranker, top=3).rankings["q"]
    assert top.doc_ids == ranking.doc_ids[:3]
    shown = search(engine, QUERY.text, ranker, top=3).hits
    assert tuple(hit.document.doc_id for hit in shown) == ranking.doc_ids[:3]
    assert [hit.compared for hit in shown] == pytest.approx(scores[order][:3].tolist())


def test_comparisons_are_stored(tmp_path: Path, engine: IndexEngine, mono: Any) -> None:
    """With a score store, a second run computes no comparison and gives the same ranking."""
    duo = load_duo_scorer(write_duo(tmp_path / "duo"), threads=1)
    run = rank_queries(engine.index, [QUERY], FirstStage(BM25()), depth=20)
    runs = []
    for _ in range(2):
        with ScoreStore(tmp_path / "kept", duo) as store:
            kept = CachedScorer(duo, store)
            ranker = Ranker(mono, Windows(4, 1), duo=Duo(duo, kept, 6))
            runs.append(rerank(engine, run, [QUERY], ranker).rankings["q"].scores.tobytes())
    assert runs[0] == runs[1]
    assert (kept.misses, kept.hits) == (0, 30)


def test_the_number_of_comparisons_is_checked_first(
    tmp_path: Path, engine: IndexEngine, mono: Any
) -> None:
    """A query needs k1 (k1 − 1) comparisons, or fewer with sampling or with fewer candidates."""
    with pytest.raises(InputError, match="int8 arithmetic runs on the CPU only"):
        TorchSession(Checkpoint.open(write_duo(tmp_path / "x")), precision=Precision.INT8)
    duo = load_duo_scorer(write_duo(tmp_path / "duo"), threads=1)
    assert Duo(duo, duo, 10).check_comparisons([100, 10, 3, 1, 0]) == 90 + 90 + 6
    assert Duo(duo, duo, 10, Pairwise("sum", 4)).check_comparisons([100, 3]) == 40 + 6
    run = rank_queries(engine.index, [QUERY], FirstStage(BM25()), depth=20)
    ranker = Ranker(mono, Windows(4, 1), duo=Duo(duo, duo, 5, max_comparisons=19))
    with pytest.raises(InputError, match=r"too many comparisons: expected at most 19, found 20"):
        rerank(engine, run, [QUERY], ranker)
    for depth in (0, 1):
        with pytest.raises(InputError, match=f"2 or more, found {depth}"):
            Duo(duo, duo, depth)


class Slow(DuoScorer):
    """Takes a second of a simulated clock for each token."""

    def score(self, query: str, token_ids: Sequence[Ids]) -> Float32s:
        self.clock[0] += sum(map(len, token_ids))
        return super().score(query, token_ids)


@pytest.mark.parametrize("seconds", [1, 300, 100_000])
def test_a_deadline_preserves_the_order(
    tmp_path: Path, engine: IndexEngine, mono: Any, seconds: int
) -> None:
    """Hits keep their order, the result is not exact, and late comparisons are not started."""
    slow = Slow(Checkpoint.open(write_duo(tmp_path / "duo")), threads=1)
    slow.clock = [0.0]
    duo = Duo(slow, slow, 8)
    hits = search(engine, QUERY.text, Ranker(mono, Windows(4, 1)), top=8).hits
    compared, stats = compare_hits(duo, QUERY.text, hits, Deadline(seconds, lambda: slow.clock[0]))
    if seconds == 100_000:
        assert stats.exact
        assert stats.comparisons == 56
        return
    assert compared == []
    assert not stats.exact
    assert stats.comparisons < 56
    assert (
        0 < slow.clock[0] <= FIRST_TOKENS
    )  # the remaining comparisons are then known to be too late


def test_stages_after_a_timeout_are_skipped(tmp_path: Path, engine: IndexEngine, mono: Any) -> None:
    """Neither the next stage nor comparisons start if scoring was cut short."""
    duo = load_duo_scorer(write_duo(tmp_path / "duo"), threads=1)
    ranker = Ranker(mono, Windows(4, 1), duo=Duo(duo, duo, 8))
    run = rank_queries(engine.index, [QUERY], FirstStage(BM25()), depth=20).rankings["q"]
    rankers = [ranker, Ranker(WordScorer(), Windows(2, 0))]
    late = Deadline(1.0, iter([0.0, *[5.0] * 99]).__next__)
    readers = [RankerReaders(engine, one) for one in rankers]
    ranking, done = run_stages(readers, QUERY.text, run, 5, late)
    assert len(done) == 1
    assert not done[0].stats.exact
    assert done[0].stats.comparisons == 0
    assert ranking.doc_ids == run.doc_ids
    answer = search(engine, QUERY.text, rankers, top=5, budget=1e-9)
    assert [hit.document.doc_id for hit in answer.hits] == list(run.doc_ids[:5])
    assert not answer.stats.exact


def test_truncated_tokens_of_comparisons_are_counted(tmp_path: Path, engine: IndexEngine) -> None:
    """They are counted separately from tokens that a limit leaves out."""
    duo = load_duo_scorer(write_duo(tmp_path / "duo", positions=16), threads=1)
    ranker = Ranker(WordScorer(99), whole, depth=6, duo=Duo(duo, duo, 6))
    run = rank_queries(engine.index, [QUERY], FirstStage(BM25()), depth=6)
    works: list[SearchStats] = []
    rerank(engine, run, [QUERY], ranker, on_query=lambda query: works.append(query.stats))
    texts = [d.contents for d in engine.documents(run.rankings["q"].doc_ids)]
    token_budget = duo.side_token_budget(QUERY.text)
    lost = sum(max(0, len(piece) - token_budget) for piece in duo.encode(texts))
    assert works[0].truncated_compared == lost > 0
    assert works[0].truncated_tokens == works[0].truncated_documents == 0


def test_duo_options(tmp_path: Path) -> None:
    """Every duo option reaches the Ranker."""
    write_bert(tmp_path / "mono", labels=1)
    words = StageOptions(model=str(tmp_path / "mono"), duo=str(write_duo(tmp_path / "duo")))
    plain = make_ranker(words, LoadedModels()).duo
    assert plain is not None
    assert (plain.depth, plain.pairwise, plain.max_comparisons) == (10, Pairwise(), None)
    assert "int8" not in plain.model.name
    options = replace(
        words, duo_depth=4, duo_aggregate="min", duo_max_comparisons=7, precision="int8"
    )
    found = make_ranker(options, LoadedModels()).duo
    assert found is not None
    assert (found.depth, found.pairwise, found.max_comparisons) == (4, Pairwise("min"), 7)
    assert "int8" in found.model.name


def test_errors_are_raised_before_scoring(
    tmp_path: Path, engine: IndexEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A query that is too long and too many comparisons raise InputError in rerank and search."""
    words = WordScorer(99)
    monkeypatch.setattr(words, "score", None)
    short = load_duo_scorer(write_duo(tmp_path / "short", positions=7), threads=1)
    few = Query("few", " ".join(WORDS[:2]))
    run = rank_queries(engine.index, [few], FirstStage(BM25()), depth=9)
    ranker = Ranker(words, Windows(4, 1), duo=Duo(short, short, 5))
    with pytest.raises(
        InputError, match=r"^query few: the query leaves no room for two texts in an input of short"
    ):
        rerank(engine, run, [few], ranker)
    with pytest.raises(InputError, match="no room for two texts"):
        search(engine, few.text, ranker)
    duo = load_duo_scorer(write_duo(tmp_path / "duo"), threads=1)
    limited = replace(ranker, duo=Duo(duo, duo, 5, max_comparisons=19))
    with pytest.raises(InputError, match="at most 19, found 20"):
        search(engine, QUERY.text, limited)


def test_one_candidate_keeps_its_score(tmp_path: Path, engine: IndexEngine, mono: Any) -> None:
    """A single candidate is not compared."""
    duo = load_duo_scorer(write_duo(tmp_path / "duo"), threads=1)
    run = rank_queries(engine.index, [QUERY], FirstStage(BM25()), depth=1)
    plain = Ranker(mono, Windows(4, 1))
    with_duo, without_duo = (
        rerank(engine, run, [QUERY], ranker).rankings["q"].scores.tolist()
        for ranker in (plain, replace(plain, duo=Duo(duo, duo, 5)))
    )
    assert with_duo == without_duo


def test_equal_comparison_scores_are_separated(engine: IndexEngine) -> None:
    """Their scores differ enough to keep their order when a later stage rescales them."""
    first_stage = rank_queries(engine.index, [QUERY], FirstStage(BM25()), depth=4).rankings["q"]
    documents = engine.documents(first_stage.doc_ids)
    hits = [Hit(d, 0.0, 0.0, 0.0, (), compared=0.0) for d in documents]
    ranking = _by_comparison(hits, first_stage)
    assert ranking.doc_ids == first_stage.doc_ids
    assert np.diff(ranking.scores).max() < -1e-7
    assert scale_scores(ranking.scores + np.float32(1), Scale.MINMAX).tolist()[1] < 1


def test_high_comparison_scores_are_separated() -> None:
    """The steps are relative to scores above 1; documents that were not compared follow."""
    scores = dict(zip("abcd", (49.0, 49.0, 48.5, 48.5), strict=True))
    compared = [Hit(Document(d, {}), 0.0, 0.0, 0.0, (), compared=s) for d, s in scores.items()]
    ranking = _by_comparison(compared, Ranking.of(list("abcde"), [5, 4, 3, 2, 1]))
    assert ranking.doc_ids == tuple("abcde")
    expected = [49, 49 * (1 - 1e-6), 48.5, 48.5 * (1 - 1e-6)]
    assert ranking.scores[:4].tolist() == pytest.approx(expected, rel=2e-7)


def test_command_line(tmp_path: Path, engine: IndexEngine) -> None:
    """Scores of both models are stored; options without effect are refused."""
    write_bert(tmp_path / "mono", labels=1)
    write_duo(tmp_path / "duo")
    run = rank_queries(engine.index, [QUERY], FirstStage(BM25()), depth=20)
    write_run(run, tmp_path / "bm25.run")
    (tmp_path / "q.tsv").write_text(f"q\t{QUERY.text}\n")
    words = ["rerank", tmp_path / "index", "--run", tmp_path / "bm25.run", "--queries"]
    words += [tmp_path / "q.tsv", "--model", tmp_path / "mono", "--scores", tmp_path / "kept"]
    words += READ_EVERYTHING

    def birchbark(*more: Any) -> Any:
        call = [str(word) for word in (*words, *more)]
        return CliRunner().invoke(group, call, catch_exceptions=False)

    deep = tmp_path / "deep.toml"
    deep.write_text("[[stage]]\nduo_depth = 4\n")
    of_file = ("--ranker", deep, "--output")
    done = birchbark("--set", f"duo={tmp_path / 'duo'}", *of_file, tmp_path / "a.run")
    assert done.exit_code == 0, done.output
    assert len([*(tmp_path / "kept").glob("*.scores")]) == 2
    assert "12 comparisons" in done.output
    with pytest.raises(InputError, match="duo_depth has no effect without duo"):
        birchbark(*of_file, tmp_path / "b.run")
    with pytest.raises(InputError, match="duo_depth exceeds depth"):
        birchbark("--set", f"duo={tmp_path / 'duo'}", "--set", "depth=3", *of_file, "b.run")
    (tmp_path / "s.toml").write_text(f"[[stage]]\nduo = '{tmp_path / 'duo'}'\nduo_depth = 3\n")
    more = ["--ranker", tmp_path / "s.toml", "--output", tmp_path / "c.run"]
    done = birchbark("--set", "depth=9", *more)  # which the stage leaves out
    assert "6 comparisons" in done.output
    with pytest.raises(InputError, match="embedding_weight has no effect without an embedding"):
        birchbark("--set", "embedding_weight=0.3", *more)
    (tmp_path / "s.toml").write_text(f"[[stage]]\nduo = '{tmp_path / 'mono'}'\n")
    with pytest.raises(CheckpointError, match="does not compare two texts"):
        birchbark(*more)
    assert Checkpoint.open(tmp_path / "duo").head.is_duo  # type: ignore[union-attr]
