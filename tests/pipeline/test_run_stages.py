"""Does a pipeline of several stages give the same result as its stages run separately?"""

from __future__ import annotations

from dataclasses import fields
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from birchbark.cli import group
from birchbark.cli.rerank import command
from birchbark.collection.runs import read_run, write_run
from birchbark.combine.aggregate import Mean, Top
from birchbark.combine.interpolate import Interpolation, Scale
from birchbark.errors import InputError
from birchbark.index.build_index import Schema, build_index
from birchbark.pipeline.answers.answer import Answer
from birchbark.pipeline.ranker_file import read_ranker
from birchbark.pipeline.rerank import rerank
from birchbark.pipeline.search import search
from birchbark.pipeline.settings.ranker import Ranker
from birchbark.pipeline.settings.reading_plan import ReadingPlan
from birchbark.pipeline.stage_options import StageOptions
from birchbark.records import Document, Query, Run
from birchbark.retrieve.bm25 import BM25
from birchbark.retrieve.engine import IndexEngine
from birchbark.retrieve.first_stage import FirstStage, rank_queries
from birchbark.segment.sentences import sentences
from birchbark.segment.windows import Windows
from conftest import WORDS, WordScorer, write_bert

RANDOM = np.random.default_rng(2)
DOCUMENTS = [
    Document(f"d{n:02}", {"text": " ".join(RANDOM.choice(WORDS[:9], 2 + n % 11)), "n": str(n)})
    for n in range(40)
]
QUERIES = [Query(str(n), " ".join(RANDOM.choice(WORDS[:9], 2, replace=False))) for n in range(6)]


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> IndexEngine:
    folder = tmp_path_factory.mktemp("stages") / "index"
    return IndexEngine(build_index(DOCUMENTS, folder, Schema("plain")), FirstStage(BM25()))


@pytest.fixture(scope="module")
def run(engine: IndexEngine) -> Run:
    return rank_queries(engine.index, QUERIES, FirstStage(BM25()), depth=40)


def stages() -> list[Ranker]:
    """Return three stages that rank differently."""
    return [
        Ranker(WordScorer(), Windows(3, 1), Mean(), Interpolation(0.3), depth=25),
        Ranker(WordScorer(), Windows(1, 0), Top((1.0, 0.5)), Interpolation(0.2), depth=12),
        Ranker(WordScorer(), sentences, Top((1.0,)), Interpolation(0.5, Scale.MINMAX), depth=6),
    ]


def test_stages_run_one_after_another(engine: IndexEngine, run: Run) -> None:
    """With `top`, a stage finds no more documents than the next stage reads."""
    step = run
    for ranker in stages():
        step = rerank(engine, step, QUERIES, ranker)
    whole = rerank(engine, run, QUERIES, stages())
    assert whole.tag == step.tag == f"{run.tag}+words+words+words"
    for query in QUERIES:
        ranking, expected = whole.rankings[query.query_id], step.rankings[query.query_id]
        assert (ranking.doc_ids, ranking.scores.tobytes()) == (
            expected.doc_ids,
            expected.scores.tobytes(),
        )
    scored: list[Any] = []
    few = rerank(
        engine,
        run,
        QUERIES,
        stages(),
        top=4,
        on_query=lambda query: scored.append(query.stats.scored),
    )
    for query in QUERIES:
        assert few.rankings[query.query_id].doc_ids == whole.rankings[query.query_id].doc_ids[:4]
    assert sum(scored) < sum(min(len(r), n) for r in run.rankings.values() for n in (25, 12, 6))


def test_search_equals_rerank(engine: IndexEngine, run: Run) -> None:
    """Hits have the evidence of the last stage; documents below its depth follow."""
    reranked = rerank(engine, run, QUERIES, stages(), top=5)
    for query in QUERIES:
        answer = search(engine, query.text, stages(), top=5)
        ids = tuple(hit.document.doc_id for hit in answer.hits)
        assert ids == reranked.rankings[query.query_id].doc_ids
        for hit in answer.hits:
            parts = sum(evidence.weight * evidence.score for evidence in hit.segments)
            assert hit.first_stage + parts == pytest.approx(hit.score)
        assert len(search(engine, query.text, stages(), top=9).hits) == min(
            9, len(run.rankings[query.query_id])
        )
    assert not search(engine, QUERIES[0].text, stages(), budget=1e-9).stats.exact


def test_a_hit_says_which_stage_its_score_is_from(engine: IndexEngine, run: Run) -> None:
    """Down to the depth of each stage: within these, scores fall; across them they need not."""
    for query in QUERIES:
        hits = search(engine, query.text, stages(), top=33).hits
        count = len(run.rankings[query.query_id])
        of_stages = [3] * 6 + [2] * 6 + [1] * 13 + [0] * 15
        assert [hit.stage for hit in hits] == of_stages[: min(count, 33)]
        for number in range(4):
            scores = [hit.score for hit in hits if hit.stage == number]
            assert scores == sorted(scores, reverse=True)


def test_what_a_stage_does_not_read_keeps_the_evidence_before_it(engine: IndexEngine) -> None:
    """The last stage reads two documents only; the hit says which stage has read it."""
    first = Ranker(WordScorer(), sentences, Mean(), Interpolation(0.3), depth=12)
    last = Ranker(WordScorer(), sentences, depth=6, plan=ReadingPlan(documents=2))
    for query in QUERIES:
        before = {h.document.doc_id: h for h in search(engine, query.text, first, top=12).hits}
        hits = search(engine, query.text, [first, last], top=6).hits
        assert all(hit.scored and hit.segments for hit in hits)
        assert {hit.stage for hit in hits} <= {1, 2}
        kept = [hit for hit in hits if hit.stage == 1]
        assert kept == [before[hit.document.doc_id] for hit in kept]
        assert len(kept) == len(hits) - min(2, len(hits))


@pytest.mark.parametrize("order", [*permutations(range(3))])
@pytest.mark.parametrize("top", [1, 4, 8, 17, 33])
def test_top_is_the_head_of_the_full_ranking(
    engine: IndexEngine, run: Run, order: tuple[int, ...], top: int
) -> None:
    """This holds for rising and falling depths, below and above `top`, in rerank and search."""
    rankers = [stages()[position] for position in order]
    whole = rerank(engine, run, QUERIES, rankers)
    few = rerank(engine, run, QUERIES, rankers, top=top)
    for query in QUERIES:
        every = whole.rankings[query.query_id].doc_ids
        assert few.rankings[query.query_id].doc_ids == every[:top]
        hits = search(engine, query.text, rankers, top=top).hits
        assert tuple(hit.document.doc_id for hit in hits) == every[:top]
        read = set(every[: max(ranker.depth for ranker in rankers)])
        assert all(hit.scored for hit in hits if hit.document.doc_id in read)
        assert all(hit.scored == bool(hit.segments) or not hit.evidence for hit in hits)


@pytest.mark.parametrize("scale", Scale)
def test_below_the_depth_a_hit_has_its_share_of_the_first_stage(
    engine: IndexEngine, run: Run, scale: Scale
) -> None:
    """It is scaled as the candidates are, so that no number is made up."""
    ranker = Ranker(WordScorer(), sentences, Top((1.0,)), Interpolation(0.3, scale), depth=3)
    answers: list[Answer] = []
    for query in QUERIES:
        own = dict(run.rankings[query.query_id])
        answers.clear()
        search(engine, query.text, ranker, 12, on_progress=lambda a: answers.append(a()))
        for answer in (answers[0], search(engine, query.text, ranker, 12)):
            scores = [own[hit.document.doc_id] for hit in answer.hits]
            candidates = sorted(own.values())[-3:]
            low = candidates[0] if scale is Scale.MINMAX else 0
            span = 1 if scale is Scale.RAW else candidates[-1] - low
            shares = [hit.first_stage for hit in answer.hits]
            assert shares == pytest.approx([0.3 * (s - low) / (span or np.inf) for s in scores])
            unread = [hit for hit in answer.hits if not hit.scored]
            assert len(unread) >= 9
            assert all(hit.score == hit.first_stage for hit in unread)


def test_without_a_stage(engine: IndexEngine, run: Run) -> None:
    """rerank refuses an empty list of stages; search returns the first stage's hits."""
    with pytest.raises(InputError, match="no ranker is given"):
        rerank(engine, run, QUERIES, [])
    assert not search(engine, QUERIES[0].text, []).hits[0].segments


def test_stages_of_a_file(engine: IndexEngine, run: Run, tmp_path: Path) -> None:
    """They rank as one after the other does."""
    model = write_bert(tmp_path / "model", labels=1)
    both = f"[[stage]]\nmodel = '{model}'\nsegments = 'windows:3/1'\n"
    (tmp_path / "stages.toml").write_text(
        f"{both}depth = 20\naggregate = 'mean'\n{both}depth = 5\nfirst_stage_weight = 0.1\n"
    )
    write_run(run, tmp_path / "bm25.run")
    (tmp_path / "q.tsv").write_text("".join(f"{q.query_id}\t{q.text}\n" for q in QUERIES))
    words = ["rerank", engine.index.directory, "--run", tmp_path / "bm25.run", "--queries"]
    words += [tmp_path / "q.tsv"]
    options = ["--model", model, "--set", "segments=windows:3/1"]

    def birchbark(*more: Any) -> Any:
        call = [str(word) for word in (*words, *more)]
        return CliRunner().invoke(group, call, catch_exceptions=False)

    done = birchbark("--ranker", tmp_path / "stages.toml", "--output", tmp_path / "one.run")
    assert done.exit_code == 0, done.output
    first = (*options, "--set", "depth=20", "--set", "aggregate=mean")
    birchbark(*first, "--output", tmp_path / "a.run")
    words[words.index("--run") + 1] = tmp_path / "a.run"
    second = (*options, "--set", "depth=5", "--set", "first_stage_weight=0.1")
    birchbark(*second, "--output", tmp_path / "b.run")
    one, other = read_run(tmp_path / "one.run"), read_run(tmp_path / "b.run")
    for query_id, ranking in one.rankings.items():
        assert ranking.doc_ids == other.rankings[query_id].doc_ids


def test_options_are_keys_of_files() -> None:
    """Names, defaults and choices of the options of birchbark rerank agree with the keys."""
    options = {option.name: option for option in command.params}
    needed = ["i", "--run", "r", "--queries", "q", "--output", "o"]
    given = command.make_context("rerank", needed).params
    for field in fields(StageOptions):
        if field.name not in options:
            continue
        assert given[field.name] == field.default, field.name
        choices = getattr(options[field.name].type, "choices", None)
        keywords = getattr(field.metadata["read"], "keywords", {})
        assert (tuple(choices) if choices else None) == keywords.get("choices"), field.name
    once = {"index", "run_file", "queries", "topic_fields", "encoding", "output", "top", "report"}
    once |= {
        "evidence",
        "tag",
        "device",
        "ranker_file",
        "settings",
        "threads",
        "scores",
        "shard_text",
    }
    assert options.keys() - {field.name for field in fields(StageOptions)} == once


def test_keys_without_effect(engine: IndexEngine, run: Run, tmp_path: Path) -> None:
    """They are refused in a file as they are on the command line."""
    (tmp_path / "s.toml").write_text("[[stage]]\n[[stage]]\nduo_depth = 4\n")
    write_run(run, tmp_path / "bm25.run")
    (tmp_path / "q.tsv").write_text("0\tbirch\n")
    words = ["rerank", engine.index.directory, "--run", tmp_path / "bm25.run", "--queries"]
    words += [tmp_path / "q.tsv", "--ranker", tmp_path / "s.toml", "--output", tmp_path / "o.run"]
    with pytest.raises(InputError, match=r"stage\[2\]: duo_depth has no effect without duo"):
        CliRunner().invoke(group, list(map(str, words)), catch_exceptions=False)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"no ranker: expected a table \[first_stage\], or tables \[\[stage\]\]"),
        ("stage = []", "no ranker"),
        ("[first_stage]\nmodel = 'none'\n", "unknown model 'none'"),
        ("[[stage]]\ndepht = 3\n", r"stage\[1\].depht: unknown key.*one of model"),
        ("[[stage]]\n[[stage]]\ndepth = 0\n", r"stage\[2\].depth: out of range"),
        ("[[stage]]\nprecision = 'fp8'\n", r"stage\[1\].precision: unknown precision 'fp8'"),
        ("[[stage]]\nfirst_stage_weight = 'x'\n", r"first_stage_weight: wrong type"),
    ],
)
def test_errors_in_a_file(tmp_path: Path, text: str, message: str) -> None:
    """The message names the file and the key."""
    (tmp_path / "s.toml").write_text(text)
    with pytest.raises(InputError, match=message):
        read_ranker(tmp_path / "s.toml")
