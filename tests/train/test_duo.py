"""Are two texts compared as they should be, in training, by the engine and in a pipeline?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from tiny_trainings import prepare, some_pairs, write_pairs

from birchbark.cli import group
from birchbark.collection.runs import write_run
from birchbark.combine.pairwise import Pairwise, parse_pairwise
from birchbark.errors import CheckpointError, InputError
from birchbark.index.build import Schema, build_index
from birchbark.pipeline.duo import Duo
from birchbark.pipeline.ranker import Ranker
from birchbark.pipeline.rerank import rerank
from birchbark.pipeline.search import search
from birchbark.records import Document, Query
from birchbark.retrieve.bm25 import BM25
from birchbark.retrieve.engine import IndexEngine
from birchbark.retrieve.first_stage import FirstStage, rank_queries
from birchbark.score.checkpoint import Checkpoint
from birchbark.score.duo import DuoScorer, load_duo
from birchbark.score.model import load_scorer
from birchbark.score.precision import Precision
from birchbark.score.remembering import Remembering
from birchbark.score.session import Session
from birchbark.score.store import ScoreStore
from birchbark.score.tokenizer import Pieces
from birchbark.segment.windows import Windows
from birchbark.train.course import Course
from birchbark.train.folder import MODEL
from birchbark.train.loop import Learner
from birchbark.train.material import load_material
from birchbark.train.network import Inputs
from birchbark.train.shaping import Shaping, open_base, open_network
from birchbark.train.training import train
from birchbark.train.world import World
from conftest import WORDS, write_bert

torch = pytest.importorskip("torch", reason="torch is not installed: nothing to learn with")

LISTS: dict[str, Any] = {
    "objective": {"kind": "duo"},
    "lists": {"each": "positive", "texts": 3},
}
RANDOM = np.random.default_rng(4)
DOCUMENTS = [
    Document(f"d{n}", {"text": " ".join(RANDOM.choice(WORDS[:-4], 3 + 4 * (n % 5)))})
    for n in range(20)
]
QUERY = Query("q", " ".join(WORDS[:3]))


def duo_model(folder: Path, **sizes: int) -> Path:
    """A BERT of random weights that says it compares."""
    directory = write_bert(folder, labels=1, seed=8, **sizes)
    config = json.loads((directory / "config.json").read_text())
    config["birchbark"] = {"reads": "two texts"}
    (directory / "config.json").write_text(json.dumps(config))
    return directory


def test_an_input_is_query_text_and_other(tmp_path: Path) -> None:
    """[CLS] q [SEP] text [SEP] other [SEP], and what BERT says of it: a chance."""
    scorer = load_duo(duo_model(tmp_path / "duo"), threads=1)
    one, other = scorer.encode(["birch bark", "canoe"])
    joined = scorer.joined(one, other)
    assert joined.tolist() == [*one.tolist(), 3, *other.tolist()]
    base = open_base(tmp_path / "duo", "duo")
    network = open_network(base, Shaping(dropout=0.0, duo=True), 0, "cpu")
    (query,) = scorer.encode(["bee"])
    ids = np.array([2, *query, 3, *joined, 3], np.int32)
    types = np.repeat([0, 1], [len(query) + 2, len(joined) + 1]).astype(np.int32)
    logit = float(network.score(Inputs.of([(ids, types)], "cpu"))[0])
    assert float(scorer.score("bee", [joined])[0]) == pytest.approx(1 / (1 + np.exp(-logit)))
    with pytest.raises(InputError, match="no room for two texts beside the query"):
        load_duo(duo_model(tmp_path / "short", positions=7)).side_room("bee")
    room = scorer.side_room("bee")
    full = scorer.joined(*scorer.encode(["birch " * room] * 2))
    assert len(scorer.score("bee", [full])) == 1


def test_the_loss_is_that_of_the_paper(tmp_path: Path) -> None:
    """Equation 3.3 over ordered pairs of unequal grades, mean of a list, mean over lists."""
    training = prepare(tmp_path, **LISTS, schedule__batch=3)
    base = open_base(Path(training.base), "tiny")
    materials = list(load_material(training, tmp_path, Pieces(base), lambda text: None))
    assert training.shaping.duo
    network = open_network(base, training.shaping, 0, "cpu")
    course = Course(materials, training.schedule, 0, 1)
    learner = Learner(network, materials, course, World())
    learnt, grades = materials[0].learnt, materials[0].learnt.pairs.grades
    losses = []
    for _, one in course.tasks(0):
        found = []
        for i in one:
            for j in one:
                if grades[i] != grades[j]:
                    inputs = Inputs.of([learnt.comparison(i, j)], "cpu")
                    p = 1 / (1 + np.exp(-float(network.score(inputs)[0])))
                    found.append(-np.log(p if grades[i] > grades[j] else 1 - p))
        losses.append(np.mean(found))
    assert learner.step(0, 0) == pytest.approx(np.mean(losses), rel=1e-5)


def test_duo_learns_and_says_what_it_is(tmp_path: Path) -> None:
    """Its model ranks by --duo alone, is measured while it learns, and is cut aloud."""
    told: list[str] = []
    from birchbark.train.training import Talk

    training = prepare(tmp_path, **LISTS, **{"schedule.steps": 30, "max_length": 16})
    write_pairs(tmp_path / "pairs.tsv", some_pairs(10, texts=12))
    progress = train(training, tmp_path, tmp_path / "out", talk=Talk(told.append))
    assert any("are left out: at most 10 of a query are compared" in line for line in told)
    assert progress.measures["words"]["queries"] > 0
    assert any("lose their end at 16 tokens" in line for line in told)
    model = tmp_path / "out" / MODEL
    assert isinstance(load_duo(model), DuoScorer)
    with pytest.raises(CheckpointError, match=r"compares two texts.*--duo"):
        load_scorer(model)
    with pytest.raises(CheckpointError, match="does not compare two texts"):
        load_duo(write_bert(tmp_path / "mono", labels=1))
    assert "A comparison of two texts" in (model / "README.md").read_text()


def test_duo_stands_alone(tmp_path: Path) -> None:
    """Beside no other objective, with lists to compare, and not for documents of passages."""
    with pytest.raises(InputError, match="objective duo compares texts of one query"):
        prepare(tmp_path / "a", objective={"kind": "duo"})
    two = [{"kind": "duo"}, {"kind": "softmax"}]
    with pytest.raises(InputError, match=r"objective duo stands alone.*found duo, softmax"):
        prepare(tmp_path / "b", **{**LISTS, "objective": two})
    with pytest.raises(InputError, match="objective duo stands alone"):
        prepare(tmp_path / "c", **LISTS, **{"model.parade": "avg"})


@pytest.fixture
def engine(tmp_path: Path) -> IndexEngine:
    return IndexEngine(build_index(DOCUMENTS, tmp_path / "index", Schema("plain")))


@pytest.fixture
def mono(tmp_path: Path) -> Any:
    return load_scorer(write_bert(tmp_path / "mono", labels=1), threads=1)


@pytest.mark.parametrize("way", ["sum", "binary", "min", "max", "sample:2"])
def test_the_best_are_ranked_anew(tmp_path: Path, engine: IndexEngine, mono: Any, way: str) -> None:
    """By comparisons of their best segments, each made once; the others stay below as they were."""
    duo = load_duo(duo_model(tmp_path / "duo"), threads=1)
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
    duo = load_duo(duo_model(tmp_path / "duo"), threads=1)
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
        load_duo(duo_model(tmp_path / "x"), precision=Precision.INT8, session=Session)
    duo = load_duo(duo_model(tmp_path / "duo"), threads=1)
    assert Duo(duo, duo, 10).check_cost([100, 10, 3, 1, 0]) == 90 + 90 + 6
    assert Duo(duo, duo, 10, Pairwise("sum", 4)).check_cost([100, 3]) == 40 + 6
    run = rank_queries(engine.index, [QUERY], FirstStage(BM25()), depth=20)
    ranker = Ranker(mono, Windows(4, 1), duo=Duo(duo, duo, 5, most=19))
    with pytest.raises(InputError, match=r"too many comparisons: expected at most 19, found 20"):
        rerank(engine, run, [QUERY], ranker)
    for depth in (0, 1):
        with pytest.raises(InputError, match=f"2 or more, found {depth}"):
            Duo(duo, duo, depth)


def test_a_deadline_leaves_the_order(tmp_path: Path, engine: IndexEngine, mono: Any) -> None:
    """And the answer says that it is not exact."""
    duo = load_duo(duo_model(tmp_path / "duo"), threads=1)
    ranker = Ranker(mono, Windows(4, 1), duo=Duo(duo, duo, 8))
    answer = search(engine, QUERY.text, ranker, top=5, budget=1e-9)
    assert not answer.work.exact
    assert all(hit.compared is None for hit in answer.hits)


def test_from_the_command_line(tmp_path: Path, engine: IndexEngine) -> None:
    """Scores of both models are kept; options that do nothing are refused."""
    write_bert(tmp_path / "mono", labels=1)
    duo_model(tmp_path / "duo")
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
    assert Checkpoint.open(tmp_path / "duo").head.compares  # type: ignore[union-attr]
