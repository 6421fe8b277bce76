"""Are the best documents ranked anew by comparisons, each made once, and none that is not asked?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from birchbark.checkpoint.reader import Checkpoint
from birchbark.cli import group
from birchbark.collection.runs import write_run
from birchbark.combine.interpolate import Scale, scaled
from birchbark.combine.pairwise import Pairwise, parse_pairwise
from birchbark.device.session import TorchSession
from birchbark.errors import CheckpointError, InputError
from birchbark.index.build import Schema, build_index
from birchbark.pipeline.answer import Hit, Work
from birchbark.pipeline.deadline import FIRST_TOKENS, Deadline
from birchbark.pipeline.duo import Compared, Duo, compare
from birchbark.pipeline.opening import Opener
from birchbark.pipeline.race import Readers
from birchbark.pipeline.ranker import Ranker
from birchbark.pipeline.rerank import rerank
from birchbark.pipeline.search import search
from birchbark.pipeline.stage import _ranked, run_stages
from birchbark.pipeline.stage_words import StageWords
from birchbark.records import Document, Float32s, Ids, Query
from birchbark.remember.remembering import Remembering
from birchbark.remember.store import ScoreStore
from birchbark.retrieve.bm25 import BM25
from birchbark.retrieve.engine import IndexEngine
from birchbark.retrieve.first_stage import FirstStage, rank_queries
from birchbark.score.duo import DuoScorer, load_duo
from birchbark.score.model import load_scorer
from birchbark.score.precision import Precision
from birchbark.segment.whole import whole
from birchbark.segment.windows import Windows
from conftest import WORDS, WordScorer, write_bert, write_duo

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


@pytest.mark.parametrize("way", ["sum", "binary", "min", "max", "sample:2"])
def test_the_best_are_ranked_anew(tmp_path: Path, engine: IndexEngine, mono: Any, way: str) -> None:
    """By comparisons of their best segments, each made once; the others stay below as they were."""
    duo = load_duo(write_duo(tmp_path / "duo"), threads=1)
    run = rank_queries(engine.index, [QUERY], FirstStage(BM25()), depth=20)
    plain = Ranker(mono, Windows(4, 1), depth=12)
    before = rerank(engine, run, [QUERY], plain).rankings["q"].doc_ids
    pairwise, asked = parse_pairwise(way), []
    work: list[Any] = []
    ranker = Ranker(mono, Windows(4, 1), depth=12, duo=Duo(duo, duo, 5, pairwise))
    ranked = rerank(engine, run, [QUERY], ranker, report=lambda _, one: work.append(one))
    found = ranked.rankings["q"]
    assert ranked.tag.endswith("+cross-encoder+duo")
    assert set(found.doc_ids[:5]) == set(before[:5])
    assert found.doc_ids[5:] == before[5:]
    hits = {hit.document.doc_id: hit for hit in search(engine, QUERY.text, plain, top=12).hits}
    texts = duo.encode([hits[d].segments[0].segment.text for d in before[:5]])
    room = duo.side_room(QUERY.text)
    p = np.full((5, 5), np.nan)
    for i, j in pairwise.asked(5, QUERY.text):
        asked.append(duo.joined(texts[i][:room], texts[j][:room]))
        p[i, j] = duo.score(QUERY.text, asked[-1:])[0]
    scores = pairwise.scores(p)
    order = np.argsort(-scores, kind="stable")
    assert found.doc_ids[:5] == tuple(before[i] for i in order)
    assert work[0].comparisons == len(asked)
    top = rerank(engine, run, [QUERY], ranker, top=3).rankings["q"]
    assert top.doc_ids == found.doc_ids[:3]
    shown = search(engine, QUERY.text, ranker, top=3).hits
    assert tuple(hit.document.doc_id for hit in shown) == found.doc_ids[:3]
    assert [hit.compared for hit in shown] == pytest.approx(scores[order][:3].tolist())


def test_comparisons_are_kept(tmp_path: Path, engine: IndexEngine, mono: Any) -> None:
    """A store spares all of them the next time; the run is the same."""
    duo = load_duo(write_duo(tmp_path / "duo"), threads=1)
    run = rank_queries(engine.index, [QUERY], FirstStage(BM25()), depth=20)
    runs = []
    for _ in range(2):
        with ScoreStore(tmp_path / "kept", duo) as store:
            kept = Remembering(duo, store)
            ranker = Ranker(mono, Windows(4, 1), duo=Duo(duo, kept, 6))
            runs.append(rerank(engine, run, [QUERY], ranker).rankings["q"].scores.tobytes())
    assert runs[0] == runs[1]
    assert (kept.scored, kept.known) == (0, 30)


def test_what_it_costs_is_known_before(tmp_path: Path, engine: IndexEngine, mono: Any) -> None:
    """k1 (k1 − 1) of each query, or what a sample asks; fewer candidates, fewer comparisons."""
    with pytest.raises(InputError, match="int8 arithmetic needs the processors"):
        TorchSession(Checkpoint.open(write_duo(tmp_path / "x")), precision=Precision.INT8)
    duo = load_duo(write_duo(tmp_path / "duo"), threads=1)
    assert Duo(duo, duo, 10).check_cost([100, 10, 3, 1, 0]) == 90 + 90 + 6
    assert Duo(duo, duo, 10, Pairwise("sum", 4)).check_cost([100, 3]) == 40 + 6
    run = rank_queries(engine.index, [QUERY], FirstStage(BM25()), depth=20)
    ranker = Ranker(mono, Windows(4, 1), duo=Duo(duo, duo, 5, most=19))
    with pytest.raises(InputError, match=r"too many comparisons: expected at most 19, found 20"):
        rerank(engine, run, [QUERY], ranker)
    for depth in (0, 1):
        with pytest.raises(InputError, match=f"2 or more, found {depth}"):
            Duo(duo, duo, depth)


class Slow(DuoScorer):
    """Takes a second of a clock for each token."""

    def score(self, query: str, pieces: Sequence[Ids]) -> Float32s:
        self.clock[0] += sum(map(len, pieces))
        return super().score(query, pieces)


@pytest.mark.parametrize("seconds", [1, 300, 100_000])
def test_a_deadline_leaves_the_order(
    tmp_path: Path, engine: IndexEngine, mono: Any, seconds: int
) -> None:
    """And the answer says that it is not exact; what is foreseen to come too late is not begun."""
    slow = Slow(Checkpoint.open(write_duo(tmp_path / "duo")), threads=1)
    slow.clock = [0.0]
    duo = Duo(slow, slow, 8)
    hits = search(engine, QUERY.text, Ranker(mono, Windows(4, 1)), top=8).hits
    found = compare(duo, QUERY.text, hits, Deadline(seconds, lambda: slow.clock[0]))
    if seconds == 100_000:
        assert found.work.exact
        assert found.work.comparisons == 56
        return
    assert found.hits == hits
    assert found.scores == ()
    assert not found.work.exact
    assert found.work.comparisons < 56
    assert 0 < slow.clock[0] <= FIRST_TOKENS  # then it is foreseen that the rest comes too late


def test_without_time_for_one_stage_the_next_is_not_begun(
    tmp_path: Path, engine: IndexEngine, mono: Any
) -> None:
    """Nor are comparisons, where the race did not end."""
    duo = load_duo(write_duo(tmp_path / "duo"), threads=1)
    ranker = Ranker(mono, Windows(4, 1), duo=Duo(duo, duo, 8))
    run = rank_queries(engine.index, [QUERY], FirstStage(BM25()), depth=20).rankings["q"]
    rankers = [ranker, Ranker(WordScorer(), Windows(2, 0))]
    late = Deadline(1.0, iter([0.0, *[5.0] * 99]).__next__)
    readers = [Readers(engine, one) for one in rankers]
    ranking, done = run_stages(readers, QUERY, run, 5, late)
    assert len(done) == 1
    assert not done[0].work.exact
    assert done[0].work.comparisons == 0
    assert ranking.doc_ids == run.doc_ids
    answer = search(engine, QUERY.text, rankers, top=5, budget=1e-9)
    assert [hit.document.doc_id for hit in answer.hits] == list(run.doc_ids[:5])
    assert not answer.work.exact


def test_what_two_texts_have_no_room_for_is_told(tmp_path: Path, engine: IndexEngine) -> None:
    """In tokens, beside what was asked to be left unread."""
    duo = load_duo(write_duo(tmp_path / "duo", positions=16), threads=1)
    ranker = Ranker(WordScorer(99), whole, depth=6, duo=Duo(duo, duo, 6))
    run = rank_queries(engine.index, [QUERY], FirstStage(BM25()), depth=6)
    works: list[Work] = []
    rerank(engine, run, [QUERY], ranker, report=lambda _, work: works.append(work))
    texts = [d.contents for d in engine.documents(run.rankings["q"].doc_ids)]
    room = duo.side_room(QUERY.text)
    lost = sum(max(0, len(piece) - room) for piece in duo.encode(texts))
    assert works[0].unread_compared == lost > 0
    assert works[0].unread_tokens == works[0].unread_documents == 0


def test_words_of_duo(tmp_path: Path) -> None:
    """Each is heeded."""
    write_bert(tmp_path / "mono", labels=1)
    words = StageWords(model=str(tmp_path / "mono"), duo=str(write_duo(tmp_path / "duo")))
    plain = Opener().ranker(words).duo
    assert plain is not None
    assert (plain.depth, plain.pairwise, plain.most) == (10, Pairwise(), None)
    assert "int8" not in plain.duo.name
    own = replace(words, duo_depth=4, duo_aggregate="min", duo_most=7, precision="int8")
    found = Opener().ranker(own).duo
    assert found is not None
    assert (found.depth, found.pairwise, found.most) == (4, Pairwise("min"), 7)
    assert "int8" in found.duo.name


def test_faults_are_told_before_anything_is_scored(
    tmp_path: Path, engine: IndexEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A query too long for two texts, and too many comparisons, by both verbs."""
    words = WordScorer(99)
    monkeypatch.setattr(words, "score", None)
    short = load_duo(write_duo(tmp_path / "short", positions=7), threads=1)
    few = Query("few", " ".join(WORDS[:2]))
    run = rank_queries(engine.index, [few], FirstStage(BM25()), depth=9)
    ranker = Ranker(words, Windows(4, 1), duo=Duo(short, short, 5))
    with pytest.raises(InputError, match=r"^query few: short has no room for two texts"):
        rerank(engine, run, [few], ranker)
    with pytest.raises(InputError, match="no room for two texts"):
        search(engine, few.text, ranker)
    duo = load_duo(write_duo(tmp_path / "duo"), threads=1)
    limited = replace(ranker, duo=Duo(duo, duo, 5, most=19))
    with pytest.raises(InputError, match="at most 19, found 20"):
        search(engine, QUERY.text, limited)


def test_one_candidate_keeps_its_score(tmp_path: Path, engine: IndexEngine, mono: Any) -> None:
    """There is nothing to compare it with."""
    duo = load_duo(write_duo(tmp_path / "duo"), threads=1)
    run = rank_queries(engine.index, [QUERY], FirstStage(BM25()), depth=1)
    plain = Ranker(mono, Windows(4, 1))
    one, other = (
        rerank(engine, run, [QUERY], ranker).rankings["q"].scores.tolist()
        for ranker in (plain, replace(plain, duo=Duo(duo, duo, 5)))
    )
    assert one == other


def test_equal_scores_of_comparisons_stay_apart(engine: IndexEngine) -> None:
    """By enough that a next stage, which divides by the highest, sees it."""
    found = rank_queries(engine.index, [QUERY], FirstStage(BM25()), depth=4).rankings["q"]
    hits = tuple(Hit(d, 0.0, 0.0, 0.0, ()) for d in engine.documents(found.doc_ids))
    ranking = _ranked(Compared(hits, (0.0,) * 4, Work()), found)
    assert ranking.doc_ids == found.doc_ids
    assert np.diff(ranking.scores).max() < -1e-7
    assert scaled(ranking.scores + np.float32(1), Scale.MINMAX).tolist()[1] < 1


def test_from_the_command_line(tmp_path: Path, engine: IndexEngine) -> None:
    """Scores of both models are kept; options that do nothing are refused."""
    write_bert(tmp_path / "mono", labels=1)
    write_duo(tmp_path / "duo")
    run = rank_queries(engine.index, [QUERY], FirstStage(BM25()), depth=20)
    write_run(run, tmp_path / "bm25.run")
    (tmp_path / "q.tsv").write_text(f"q\t{QUERY.text}\n")
    words = ["rerank", tmp_path / "index", "--run", tmp_path / "bm25.run", "--queries"]
    words += [tmp_path / "q.tsv", "--model", tmp_path / "mono", "--scores", tmp_path / "kept"]

    def birchbark(*more: Any) -> Any:
        call = [str(word) for word in (*words, *more)]
        return CliRunner().invoke(group, call, catch_exceptions=False)

    done = birchbark("--duo", tmp_path / "duo", "--duo-depth", 4, "--output", tmp_path / "a.run")
    assert done.exit_code == 0, done.output
    assert len([*(tmp_path / "kept").glob("*.scores")]) == 2
    assert "12 comparisons" in done.output
    with pytest.raises(InputError, match="--duo-depth does nothing without --duo"):
        birchbark("--duo-depth", 4, "--output", tmp_path / "b.run")
    with pytest.raises(InputError, match="--duo-depth is above --depth: no more are ranked"):
        birchbark("--duo", tmp_path / "duo", "--depth", 3, "--duo-depth", 4, "--output", "b.run")
    (tmp_path / "s.toml").write_text(f"[[stage]]\nduo = '{tmp_path / 'duo'}'\n")
    more = ["--stages", tmp_path / "s.toml", "--output", tmp_path / "c.run"]
    done = birchbark("--duo-depth", 3, *more)  # what a stage does not say, the options say
    assert "6 comparisons" in done.output
    with pytest.raises(InputError, match="--embedding-weight does nothing: no stage has --embedd"):
        birchbark("--embedding-weight", 0.3, *more)
    (tmp_path / "s.toml").write_text(f"[[stage]]\n[[stage]]\nduo = '{tmp_path / 'mono'}'\n")
    with pytest.raises(CheckpointError, match="does not compare two texts"):
        birchbark(*more)
    assert Checkpoint.open(tmp_path / "duo").head.compares  # type: ignore[union-attr]
