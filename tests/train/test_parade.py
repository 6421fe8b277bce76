"""Do documents get PARADE's scores: by hand, by torch and by the engine, and are they learnt?"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from tiny_trainings import prepare, some_pairs, write_pairs
from zoo import FAMILIES, give_tokenizer, write_family

from birchbark.checkpoint.heads import HOWS
from birchbark.checkpoint.reader import Checkpoint, open_any
from birchbark.checkpoint.tokenizer import Pieces
from birchbark.collection.documents import read_collection
from birchbark.collection.intake import Intake
from birchbark.combine.interpolate import Interpolation
from birchbark.errors import CheckpointError, InputError
from birchbark.index.build import Schema, build_index
from birchbark.pipeline.opening import Opener
from birchbark.pipeline.ranker import Ranker
from birchbark.pipeline.rerank import rerank
from birchbark.pipeline.search import search
from birchbark.pipeline.stage_words import StageWords
from birchbark.records import Document, Pair, Query
from birchbark.remember.remembering import Remembering
from birchbark.remember.store import ScoreStore
from birchbark.retrieve.bm25 import BM25
from birchbark.retrieve.engine import IndexEngine
from birchbark.retrieve.first_stage import FirstStage, rank_queries
from birchbark.score.check import compared
from birchbark.score.model import load_scorer
from birchbark.score.parade import Aggregator, ParadeScorer
from birchbark.segment.sentences import sentences
from birchbark.segment.windows import Windows
from birchbark.study.recipe_file import read_recipe
from birchbark.study.run import run_study
from birchbark.train.examples import Pairs
from birchbark.train.export import export
from birchbark.train.folder import MODEL
from birchbark.train.material import PairInputs, load_material
from birchbark.train.network import Inputs, Network
from birchbark.train.shaping import Shaping, open_network
from birchbark.train.training import train
from conftest import WORDS, write_bert

torch = pytest.importorskip("torch", reason="torch is not installed: nothing to learn with")

RANDOM = np.random.default_rng(11)
COUNTS = (3, 1, 4, 3)
IDS = [RANDOM.integers(5, 25, n) for n in (7, 3, 9, 3, 8, 8, 5, 4, 6, 9, 3)]
TYPES = [np.repeat([0, 1], [2, len(i) - 2]) for i in IDS]
DONE = {"title": "t", "data": [], "seed": 0, "steps": 1, "ended": "so"}
LINEAGE: dict[str, Any] = {"base": "tiny", "trainings": [DONE]}


def written(folder: Path, how: str, family: str = "bert") -> tuple[Path, Network]:
    """A model of this kind with weights that nothing is equal in, and its network."""
    directory = write_family(folder / "base", family, 1)
    if family in ("roberta", "albert"):
        give_tokenizer(directory, family)
    base = open_any(directory, "tiny")
    network = open_network(base, Shaping(dropout=0.0, parade=how), 0, "cpu")
    torch.manual_seed(0)
    with torch.no_grad():
        for weight in network.weights.values():
            weight.add_(torch.randn_like(weight) * 0.3)
    export(folder / "model", network, base, Pieces(base), LINEAGE)
    return folder / "model", network


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("family", FAMILIES)
def test_the_engine_computes_what_torch_does(how: str, family: str, tmp_path: Path) -> None:
    """Vectors, logits of documents, and shares that add up to 1; in any company."""
    model, network = written(tmp_path, how, family)
    inputs = Inputs.of(list(zip(IDS, TYPES, strict=True)), "cpu", COUNTS)
    expected = network.score(inputs).numpy()
    scorer = load_scorer(model, threads=1)
    assert isinstance(scorer, ParadeScorer)
    vectors = np.split(scorer._session.run(IDS, TYPES), np.cumsum(COUNTS)[:-1])
    for some, logit, count in zip(vectors, expected, COUNTS, strict=True):
        score, shares = scorer.judge(some)
        assert score == pytest.approx(1 / (1 + np.exp(-float(logit))), abs=1e-5)
        assert shares.shape == (count,)
        assert shares.sum() == pytest.approx(1)
    alone = [
        float(network.score(Inputs.of([(i, t)], "cpu"))[0])
        for i, t in zip(IDS[3:4], TYPES[3:4], strict=True)
    ]
    assert expected[1] == pytest.approx(alone[0], abs=1e-5)


def test_avg_max_and_attn_by_hand(tmp_path: Path) -> None:
    """From the vectors of passages, in float64."""
    for how in ("avg", "max", "attn"):
        model, _ = written(tmp_path / how, how)
        checkpoint = Checkpoint.open(model)
        stored = checkpoint.tensors()
        weight, bias = stored["classifier.weight"][0], stored["classifier.bias"][0]
        vectors = RANDOM.normal(0, 1, (5, checkpoint.shape.hidden)).astype(np.float32)
        if how == "attn":
            asked = np.exp(vectors.astype(float) @ stored["parade.share.weight"][0])
            shares = asked / asked.sum()
            whole = shares @ vectors
        else:
            whole = vectors.mean(0) if how == "avg" else vectors.max(0)
            shares = np.full(5, 0.2)
        logit, found = Aggregator(checkpoint).run(vectors)
        assert logit == pytest.approx(float(whole @ weight + bias), abs=1e-5)
        if how != "max":
            np.testing.assert_allclose(found, shares, atol=1e-6)
        else:
            wins = np.bincount(vectors.argmax(0), minlength=5)
            np.testing.assert_array_equal(found, wins / wins.sum())


def test_avg_begins_as_the_mean_of_log_odds(tmp_path: Path) -> None:
    """PARADE from a cross-encoder, before it has learnt; attn begins as avg."""
    directory = write_bert(tmp_path / "mono", labels=1)
    base = open_any(directory, "mono")
    mono = open_network(base, Shaping(dropout=0.0), 0, "cpu")
    pairs = list(zip(IDS, TYPES, strict=True))
    logits = mono.score(Inputs.of(pairs, "cpu")).numpy()
    expected = [part.mean() for part in np.split(logits, np.cumsum(COUNTS)[:-1])]
    for how in ("avg", "attn"):
        network = open_network(base, Shaping(dropout=0.0, parade=how), 0, "cpu")
        found = network.score(Inputs.of(pairs, "cpu", COUNTS)).numpy()
        np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize("how", HOWS)
def test_gradients_reach_every_passage(how: str, tmp_path: Path) -> None:
    """Against differences, along a random direction; all that aggregates learns."""
    _, network = written(tmp_path, how)
    coarse = how == "transformer"  # attention is always in float32
    step, near = (1e-3, 1e-2) if coarse else (1e-6, 1e-4)
    kind = torch.float32 if coarse else torch.float64
    double = {n: w.detach().to(kind).requires_grad_() for n, w in network.weights.items()}
    network.weights = double
    inputs = Inputs.of(list(zip(IDS, TYPES, strict=True)), "cpu", COUNTS)

    def total() -> Any:
        network._training = False
        return network._documents(
            torch.tanh(double["embeddings.word_embeddings.weight"][: len(IDS)]), inputs
        ).sum()

    total().backward()
    slopes = {n: w.grad.clone() for n, w in double.items() if w.grad is not None}
    assert {n for n in double if n.startswith("parade")} <= slopes.keys()
    moves = {n: torch.randn_like(w) for n, w in double.items()}
    along = sum(float((slopes[n] * moves[n]).sum()) for n in slopes)
    values = []
    for sign in (1, -1):
        with torch.no_grad():
            for n, w in double.items():
                w.add_(moves[n], alpha=sign * step)
            values.append(float(total()))
            for n, w in double.items():
                w.add_(moves[n], alpha=-sign * step)
    assert along == pytest.approx((values[0] - values[1]) / (2 * step), rel=near, abs=near)


DOCUMENTS = [
    Document(f"d{n}", {"text": " ".join(RANDOM.choice(WORDS[:-4], 3 + 4 * (n % 5)))})
    for n in range(20)
]


def test_ranking_with_parade(tmp_path: Path) -> None:
    """Exact top-k, rerank and search agree; hits add up; a store keeps the vectors."""
    model, _ = written(tmp_path / "m", "attn")
    engine = IndexEngine(build_index(DOCUMENTS, tmp_path / "index", Schema("plain")))
    query = Query("q", " ".join(WORDS[:3]))
    stage = FirstStage(BM25())
    run = rank_queries(engine.index, [query], stage, depth=20)
    scorer = load_scorer(model, threads=1)
    ranker = Ranker(scorer, Windows(4, 1), depth=20)
    whole = rerank(engine, run, [query], ranker).rankings["q"]
    assert rerank(engine, run, [query], ranker, top=3).rankings["q"].doc_ids == whole.doc_ids[:3]
    answer = search(engine, query.text, ranker, top=5)
    for hit in answer.hits:
        parts = sum(e.weight * e.score for e in hit.segments)
        assert hit.first_stage + parts == pytest.approx(hit.score, abs=1e-6)
        assert len({e.score for e in hit.segments}) == 1
    for _ in range(2):
        with ScoreStore(tmp_path / "kept", scorer) as store:
            kept = Remembering(scorer, store)
            again = rerank(engine, run, [query], Ranker(kept, Windows(4, 1), depth=20))
            assert again.rankings["q"].scores.tobytes() == whole.scores.tobytes()
    assert kept.scored == 0
    assert kept.known > 20


def test_passages_of_a_document_are_one_pair(tmp_path: Path) -> None:
    """Of files by query and document, of collections by segments; the rest is counted as cut."""
    (tmp_path / "c.jsonl").write_text(
        '{"id": "a", "text": "birch bark canoe river tree"}\n{"id": "b", "text": "bee"}\n'
    )
    (tmp_path / "q.tsv").write_text("1\tbirch\n")
    (tmp_path / "qrels.txt").write_text("1 0 a 1\n1 0 b 0\n")
    files = {"documents": "c.jsonl", "queries": "q.tsv", "qrels": "qrels.txt"}
    gone = {"files": None, "validation": None}
    changes = {f"data.{key}": value for key, value in {**files, **gone}.items()}
    more = {"data.segments": "windows:2/1", "data.passages": 3, "model.parade": "max"}
    training = prepare(tmp_path, **changes, **more)
    pieces = Pieces(Checkpoint.open(tmp_path / "base"))
    told: list[str] = []
    (one,) = load_material(training, tmp_path, pieces, told.append)
    assert one.learnt.pairs.doc_ids == ("a", "b")
    assert one.learnt.pairs.grades.tolist() == [1, 0]
    assert [len(one.learnt[n]) for n in (0, 1)] == [3, 1]
    assert (one.learnt.cut, one.learnt.shortened) == (0, 1)
    assert any("2.5 passages each; of 1 the first 3 passages are read" in line for line in told)
    texts = [one.learnt.pairs.texts[t] for t in one.learnt.pairs.passages(0)]
    assert texts == ["birch bark", "bark canoe", "canoe river", "river tree"]
    assert one.learnt.lengths.tolist() == [3 * 3, 2]
    empty = PairInputs.of(Pairs.of([]), pieces, 16)
    assert (empty.cut, len(empty.lengths)) == (0, 0)


def in_twos() -> list[Pair]:
    """Some pairs, each document of two passages."""
    return [
        replace(pair, text=text)
        for pair in some_pairs(10)
        for text in (pair.text, f"canoe {pair.text}")
    ]


@pytest.mark.parametrize("how", HOWS)
def test_parade_learns(how: str, tmp_path: Path) -> None:
    """From a cross-encoder, and on from its own model; the model says what it reads."""
    changes: dict[str, Any] = {
        "model": {"dropout": 0.0, "parade": how},
        "objective": {"kind": "softmax"},
        "lists": {"each": "positive", "texts": 3},
        "schedule.steps": 12,
    }
    training = prepare(tmp_path, **changes)
    write_pairs(tmp_path / "pairs.tsv", in_twos())
    progress = train(training, tmp_path, tmp_path / "out")
    assert progress.measures["words"]["queries"] > 0
    scorer = load_scorer(tmp_path / "out" / MODEL)
    assert isinstance(scorer, ParadeScorer)
    assert f"PARADE by {how}" in (tmp_path / "out" / MODEL / "README.md").read_text()
    again = prepare(tmp_path / "again", **{**changes, "base": str(tmp_path / "out" / MODEL)})
    begun = open_network(open_any(Path(again.base), "a"), again.shaping, 5, "cpu").weights
    stored = Checkpoint.open(tmp_path / "out" / MODEL).tensors()
    for name, weight in begun.items():
        assert np.array_equal(weight.detach().numpy(), stored[name])


def test_what_parade_cannot_do(tmp_path: Path) -> None:
    """Teachers judge texts; unknown kinds of models are refused before they score nonsense."""
    with pytest.raises(InputError, match="unknown aggregation 'sum'"):
        Shaping(parade="sum")
    soft = {"kind": "soft", "teacher": "x"}
    with pytest.raises(InputError, match=r"teachers judge texts, PARADE learns from documents"):
        prepare(tmp_path, **{"model.parade": "avg", "objective": soft})
    model, _ = written(tmp_path / "other", "avg")
    config = (model / "config.json").read_text()
    (model / "config.json").write_text(config.replace('"passages"', '"two texts"'))
    with pytest.raises(CheckpointError, match=r"unknown kind of model.*found.*two texts"):
        load_scorer(model)


def test_the_whole_network_learns(tmp_path: Path) -> None:
    """From documents back to the words of each passage; with `head`, all that aggregates."""
    base = open_any(write_bert(tmp_path / "mono", labels=1), "mono")
    inputs = Inputs.of(list(zip(IDS, TYPES, strict=True)), "cpu", COUNTS)
    network = open_network(base, Shaping(dropout=0.0, parade="transformer"), 0, "cpu")
    network.learn(inputs).sum().backward()
    words = network.weights["embeddings.word_embeddings.weight"].grad.abs().sum(1)
    assert (words[np.unique(np.concatenate(IDS))] > 0).all()
    for how, name in (("attn", "parade.share.weight"), ("transformer", "parade.cls")):
        head = open_network(base, Shaping(parade=how, learns="head"), 0, "cpu")
        learning = {n for n, weight in head.weights.items() if weight.requires_grad}
        assert name in learning
        assert not any(n.startswith(("encoder", "embeddings")) for n in learning)


def test_pairs_of_documents() -> None:
    """The highest grade of the passages; equal doc_ids of two queries are two documents."""
    rows = [("q1", "a", "x", 0), ("q2", "a", "x", 1), ("q1", "a", "y", 2), ("q1", "b", "x", 0)]
    pairs = Pairs.of([Pair(q, q, d, t, g) for q, d, t, g in rows], documents=True)
    assert pairs.doc_ids == ("a", "a", "b")
    assert pairs.grades.tolist() == [2, 1, 0]
    texts = [[pairs.texts[t] for t in pairs.passages(n)] for n in range(3)]
    assert texts == [["x", "y"], ["x"], ["x"]]


@pytest.mark.parametrize("how", HOWS)
def test_the_best_are_exact(how: str, tmp_path: Path) -> None:
    """Whatever the mixture, without reading all: a document's evidence is at most 1."""
    model, _ = written(tmp_path / "m", how)
    many = [
        Document(f"e{n}", {"text": " ".join(RANDOM.choice(WORDS[:6], 1 + n % 13))})
        for n in range(60)
    ]
    engine = IndexEngine(build_index(many, tmp_path / "index", Schema("plain")))
    queries = [Query(str(n), " ".join(RANDOM.choice(WORDS[:6], 2))) for n in range(8)]
    run = rank_queries(engine.index, queries, FirstStage(BM25()), depth=60)
    scorer = load_scorer(model, threads=1)
    for a in (0.0, 0.3, 0.9):
        ranker = Ranker(scorer, Windows(3, 1), interpolation=Interpolation(a), depth=60)
        whole = rerank(engine, run, queries, ranker)
        work: dict[str, Any] = {}
        best = rerank(engine, run, queries, ranker, top=3, report=work.__setitem__)
        for query in queries:
            every = whole.rankings[query.query_id].doc_ids
            assert best.rankings[query.query_id].doc_ids == every[:3]
        if a == 0.9:
            assert sum(w.settled for w in work.values()) < sum(map(len, run.rankings.values()))


def test_parade_among_others(tmp_path: Path) -> None:
    """It is no second scorer, and no teacher of texts."""
    model, _ = written(tmp_path / "m", "avg")
    scorer = load_scorer(model)
    words = StageWords(model=str(model))
    assert Opener().ranker(words).segmenter == Windows(150, 50)  # what it learnt from, as a rule
    assert Opener().ranker(replace(words, segments="sentences")).segmenter is sentences
    with pytest.raises(InputError, match="aggregate does nothing: this model judges documents"):
        Opener().ranker(replace(words, aggregate="max"))
    with pytest.raises(InputError, match="it ranks alone"):
        Ranker(load_scorer(write_bert(tmp_path / "mono", labels=1)), embedding=scorer)
    assert scorer.judge(np.empty((0, scorer.width), np.float32))[0] == 0
    taught = {"objective": {"kind": "soft", "teacher": str(model)}}
    with pytest.raises(InputError, match=r"teacher .*judges documents, and no text alone"):
        train(prepare(tmp_path / "t", **taught), tmp_path / "t", tmp_path / "out")
    with pytest.raises(InputError, match="only models that score texts are checked"):
        next(compared(model, {}))
    tensors = load_file(model / "model.safetensors")
    extra = {"parade.layer.2.attention.self.query.weight": np.zeros((2, 2), np.float32)}
    save_file(tensors | extra, model / "model.safetensors")
    with pytest.raises(CheckpointError, match="more layers look at passages"):
        load_scorer(model)


@pytest.mark.parametrize("said", ["yes", True, ["x"], 0, {"reads": "passages"}])
def test_statements_of_strangers(said: Any, tmp_path: Path) -> None:
    """What nobody knows is refused, whatever it is."""
    directory = write_bert(tmp_path / "b", labels=1)
    config = json.loads((directory / "config.json").read_text())
    (directory / "config.json").write_text(json.dumps(config | {"birchbark": said}))
    with pytest.raises(CheckpointError, match="unknown kind of model"):
        load_scorer(directory)


def test_one_passage_each_is_no_document(tmp_path: Path) -> None:
    """Nor does `passages` mean anything to a cross-encoder."""
    training = prepare(tmp_path, **{"model.parade": "avg"})
    pieces = Pieces(Checkpoint.open(tmp_path / "base"))
    with pytest.raises(InputError, match="each document has one passage"):
        list(load_material(training, tmp_path, pieces, lambda text: None))
    with pytest.raises(InputError, match=r"passages does nothing without model.parade"):
        prepare(tmp_path / "b", **{"data.passages": 3})


def test_parade_in_a_study(tmp_path: Path) -> None:
    """It has rows of its own beside another model's aggregations, of what rerank makes of it."""
    model, _ = written(tmp_path / "m", "max")
    mono = write_bert(tmp_path / "mono", labels=1)
    lines = [json.dumps({"id": f"d{n}", "text": " ".join(WORDS[n : n + 7])}) for n in range(9)]
    (tmp_path / "docs.jsonl").write_text("\n".join(lines))
    (tmp_path / "q.tsv").write_text(f"1\t{WORDS[3]} {WORDS[5]}\n2\t{WORDS[6]}\n")
    (tmp_path / "qrels.txt").write_text("1 0 d3 1\n2 0 d4 1\n")
    (tmp_path / "r.toml").write_text(
        f"""
        kind = "evidence"
        title = "PARADE"
        measures = ["AP"]
        [evidence]
        models = {{ mono = "{mono}", parade = "{model}" }}
        aggregations = ["max", "mean"]
        against = "mono"
        segments = "windows:3/1"
        rm3 = false
        depth = 6
        folds = 2
        [[collections]]
        name = "C"
        documents = "docs.jsonl"
        queries = "q.tsv"
        qrels = "qrels.txt"
        """
    )
    outcome = run_study(read_recipe(tmp_path / "r.toml"), tmp_path, tmp_path / "out")
    shown = {table.name: [row.name for row in table.groups[0].rows] for table in outcome.tables}
    mixed = ["mono, max", "mono, mean", "mono, max, alone", "mono, mean, alone"]
    assert shown["evidence"] == ["BM25", *mixed, "parade", "parade, alone"]
    assert shown["against"] == ["mono, max", "parade", "mono, max, alone", "parade, alone"]
    index = build_index(
        read_collection(str(tmp_path / "docs.jsonl"), Intake()), tmp_path / "ix", Schema("english")
    )
    queries = [Query("1", f"{WORDS[3]} {WORDS[5]}"), Query("2", WORDS[6])]
    ranker = Ranker(load_scorer(model), Windows(3, 1), interpolation=Interpolation(0.0), depth=6)
    alone = rerank(IndexEngine(index), outcome.runs["C.BM25"], queries, ranker)
    for query_id, ranking in outcome.runs["C.parade, alone"].rankings.items():
        assert ranking.doc_ids == alone.rankings[query_id].doc_ids
    recipe = (tmp_path / "r.toml").read_text().replace('against = "mono"', "pruned = true")
    (tmp_path / "r.toml").write_text(recipe)
    with pytest.raises(InputError, match="parade judges documents as a whole: none can be pruned"):
        run_study(read_recipe(tmp_path / "r.toml"), tmp_path, tmp_path / "out2")
