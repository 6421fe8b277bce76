"""Are PARADE's document scores correct in torch and in score/, and can they be trained?"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from prepared import inputs_of, table_of
from safetensors.numpy import load_file, save_file
from tiny_trainings import prepare, some_pairs, write_pairs
from zoo import FAMILIES, give_tokenizer, write_family

from birchbark.checkpoint.architecture import PASSAGE_VECTOR_KINDS
from birchbark.checkpoint.checkpoint import Checkpoint, open_any_head
from birchbark.checkpoint.heads import PARADE_AGGREGATIONS
from birchbark.checkpoint.tokenizer import CheckpointTokenizer
from birchbark.combine.interpolate import Interpolation
from birchbark.errors import CheckpointError, InputError
from birchbark.index.build_index import Schema, build_index
from birchbark.pipeline.load_rankers import make_ranker
from birchbark.pipeline.loaded_models import LoadedModels
from birchbark.pipeline.rerank import RerankedQuery, rerank
from birchbark.pipeline.search import search
from birchbark.pipeline.settings.ranker import Ranker
from birchbark.pipeline.stage_options import StageOptions
from birchbark.records import Document, Pair, Query
from birchbark.retrieve.bm25 import BM25
from birchbark.retrieve.engine import IndexEngine
from birchbark.retrieve.first_stage import FirstStage, rank_queries
from birchbark.score.load_scorer import load_scorer
from birchbark.score.parade import ParadeScorer, PassageAggregator
from birchbark.score.precision_check import check_precisions
from birchbark.score_cache.cached_scorer import CachedScorer
from birchbark.score_cache.store import ScoreStore
from birchbark.segment.sentences import sentences
from birchbark.segment.windows import Windows
from birchbark.train.dataset import load_datasets
from birchbark.train.export import export
from birchbark.train.initialise import HEADS, Initialisation, open_network
from birchbark.train.network import Network
from birchbark.train.packed_inputs import PackedInputs
from birchbark.train.teacher_scores import TeacherScores, teacher_scores
from birchbark.train.training import train
from birchbark.train.training_folder import MODEL
from conftest import WORDS, write_bert

torch = pytest.importorskip("torch", reason="torch is not installed")

RANDOM = np.random.default_rng(11)
COUNTS = (3, 1, 4, 3)
IDS = [RANDOM.integers(5, 25, n) for n in (7, 3, 9, 3, 8, 8, 5, 4, 6, 9, 3)]
TYPES = [np.repeat([0, 1], [2, len(i) - 2]) for i in IDS]
TRAINING = {"title": "t", "data": [], "seed": 0, "steps": 1, "ended": "so"}
LINEAGE: dict[str, Any] = {"base": "tiny", "trainings": [TRAINING]}


def write_base(directory: Path, family: str) -> Path:
    """Write a cross-encoder whose head reads [CLS]."""
    write_family(directory, family, 1)
    config = json.loads((directory / "config.json").read_text())
    if "classifier_pooling" in config:
        (directory / "config.json").write_text(json.dumps(config | {"classifier_pooling": "cls"}))
    return directory


def write_parade(
    folder: Path, aggregation: str, family: str = "bert", vectors: str = "pooler"
) -> tuple[Path, Network]:
    """Write a model with random weights; return it and its network."""
    directory = write_base(folder / "base", family)
    if family in ("roberta", "albert"):
        give_tokenizer(directory, family)
    base = open_any_head(directory, "tiny")
    initialisation = Initialisation(dropout=0.0, parade=aggregation, passage_vectors=vectors)
    network = open_network(base, initialisation, 0, "cpu")
    torch.manual_seed(0)
    with torch.no_grad():
        for weight in network.weights.values():
            weight.add_(torch.randn_like(weight) * 0.3)
    export(folder / "model", network, base, CheckpointTokenizer(base), LINEAGE)
    return folder / "model", network


@pytest.mark.parametrize("vectors", PASSAGE_VECTOR_KINDS)
@pytest.mark.parametrize("aggregation", PARADE_AGGREGATIONS)
@pytest.mark.parametrize("family", FAMILIES)
def test_score_and_torch_agree(vectors: str, aggregation: str, family: str, tmp_path: Path) -> None:
    """Vectors and document logits agree; shares sum to 1; other documents have no effect."""
    model, network = write_parade(tmp_path, aggregation, family, vectors)
    inputs = PackedInputs.of(list(zip(IDS, TYPES, strict=True)), "cpu", COUNTS)
    expected = network.score(inputs).numpy()
    scorer = load_scorer(model, threads=1)
    assert isinstance(scorer, ParadeScorer)
    vectors = np.split(scorer._session.run(IDS, TYPES), np.cumsum(COUNTS)[:-1])
    for passages, logit, count in zip(vectors, expected, COUNTS, strict=True):
        score, shares = scorer.score_document(passages)
        assert score == pytest.approx(1 / (1 + np.exp(-float(logit))), abs=1e-5)
        assert shares.shape == (count,)
        assert shares.sum() == pytest.approx(1)
    alone = [
        float(network.score(PackedInputs.of([(i, t)], "cpu"))[0])
        for i, t in zip(IDS[3:4], TYPES[3:4], strict=True)
    ]
    assert expected[1] == pytest.approx(alone[0], abs=1e-5)


def test_avg_max_and_attn_equal_their_definition(tmp_path: Path) -> None:
    """Computed from passage vectors in float64."""
    for aggregation in ("avg", "max", "attn"):
        model, _ = write_parade(tmp_path / aggregation, aggregation)
        checkpoint = Checkpoint.open(model)
        stored = checkpoint.tensors()
        weight, bias = stored["classifier.weight"][0], stored["classifier.bias"][0]
        vectors = RANDOM.normal(0, 1, (5, checkpoint.config.hidden)).astype(np.float32)
        if aggregation == "attn":
            weights = np.exp(vectors.astype(float) @ stored["parade.share.weight"][0])
            shares = weights / weights.sum()
            document = shares @ vectors
        else:
            document = vectors.mean(0) if aggregation == "avg" else vectors.max(0)
            shares = np.full(5, 0.2)
        logit, actual = PassageAggregator(checkpoint).run(vectors)
        assert logit == pytest.approx(float(document @ weight + bias), abs=1e-5)
        if aggregation != "max":
            np.testing.assert_allclose(actual, shares, atol=1e-6)
        else:
            wins = np.bincount(vectors.argmax(0), minlength=5)
            np.testing.assert_array_equal(actual, wins / wins.sum())


def test_positions_of_passages_matter_to_the_transformer(tmp_path: Path) -> None:
    """Positions from the 32nd on are alike; models without position embeddings ignore the order."""
    model, _ = write_parade(tmp_path, "transformer")
    stored = load_file(model / "model.safetensors")
    vectors = RANDOM.normal(0, 1, (40, stored["parade.cls"].size)).astype(np.float32)
    swapped, late = (np.arange(40) for _ in range(2))
    swapped[[0, 1]], late[[32, 39]] = [1, 0], [39, 32]
    logit, shares = PassageAggregator(Checkpoint.open(model)).run(vectors)
    assert len(shares) == 40
    other, _ = PassageAggregator(Checkpoint.open(model)).run(vectors[swapped])
    same, _ = PassageAggregator(Checkpoint.open(model)).run(vectors[late])
    assert abs(other - logit) > 1e-4
    assert same == pytest.approx(logit, abs=1e-5)
    del stored["parade.positions"]
    save_file(stored, model / "model.safetensors")
    without = PassageAggregator(Checkpoint.open(model))
    assert without.run(vectors[swapped])[0] == pytest.approx(without.run(vectors)[0], abs=1e-5)


@pytest.mark.parametrize("family", FAMILIES)
def test_avg_of_a_cross_encoder_is_the_mean_of_log_odds(family: str, tmp_path: Path) -> None:
    """This is so before training; `attn` starts as `avg`."""
    directory = write_base(tmp_path / "mono", family)
    base = open_any_head(directory, "mono")
    mono = open_network(base, Initialisation(dropout=0.0), 0, "cpu")
    pairs = list(zip(IDS, TYPES, strict=True))
    logits = mono.score(PackedInputs.of(pairs, "cpu")).numpy()
    expected = [part.mean() for part in np.split(logits, np.cumsum(COUNTS)[:-1])]
    for aggregation in ("avg", "attn"):
        network = open_network(base, Initialisation(dropout=0.0, parade=aggregation), 0, "cpu")
        found = network.score(PackedInputs.of(pairs, "cpu", COUNTS)).numpy()
        np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize("aggregation", PARADE_AGGREGATIONS)
def test_gradients_equal_finite_differences(aggregation: str, tmp_path: Path) -> None:
    """They are compared in a random direction; all weights of the aggregation have gradients."""
    _, network = write_parade(tmp_path, aggregation)
    coarse = aggregation == "transformer"  # attention is always in float32
    step, near = (1e-3, 1e-2) if coarse else (1e-6, 1e-4)
    kind = torch.float32 if coarse else torch.float64
    double = {n: w.detach().to(kind).requires_grad_() for n, w in network.weights.items()}
    network.weights = network.modules.weights = double
    inputs = PackedInputs.of(list(zip(IDS, TYPES, strict=True)), "cpu", COUNTS)

    def total() -> Any:
        network.modules.training = False
        return network._document_logits(
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
    """Exact top-k, rerank and search agree; evidence sums to scores; vectors are stored."""
    model, _ = write_parade(tmp_path / "m", "attn")
    engine = IndexEngine(build_index(DOCUMENTS, tmp_path / "index", Schema("plain")))
    query = Query("q", " ".join(WORDS[:3]))
    stage = FirstStage(BM25())
    run = rank_queries(engine.index, [query], stage, depth=20)
    scorer = load_scorer(model, threads=1)
    ranker = Ranker(scorer, Windows(4, 1), depth=20)
    complete = rerank(engine, run, [query], ranker).rankings["q"]
    assert rerank(engine, run, [query], ranker, top=3).rankings["q"].doc_ids == complete.doc_ids[:3]
    answer = search(engine, query.text, ranker, top=5)
    for hit in answer.hits:
        parts = sum(e.weight * e.score for e in hit.segments)
        assert hit.first_stage + parts == pytest.approx(hit.score, abs=1e-6)
        assert len({e.score for e in hit.segments}) == 1
    for _ in range(2):
        with ScoreStore(tmp_path / "stored", scorer) as store:
            cached = CachedScorer(scorer, store)
            again = rerank(engine, run, [query], Ranker(cached, Windows(4, 1), depth=20))
            assert again.rankings["q"].scores.tobytes() == complete.scores.tobytes()
    assert cached.misses == 0
    assert cached.hits > 20


def test_the_passages_of_a_document_are_one_pair(tmp_path: Path) -> None:
    """Segments of a collection are merged; passages beyond the limit are counted."""
    (tmp_path / "c.jsonl").write_text(
        '{"id": "a", "text": "birch bark canoe river tree"}\n{"id": "b", "text": "bee"}\n'
    )
    (tmp_path / "q.tsv").write_text("1\tbirch\n")
    (tmp_path / "qrels.txt").write_text("1 0 a 1\n1 0 b 0\n")
    files = {"documents": "c.jsonl", "queries": "q.tsv", "qrels": "qrels.txt"}
    removed = {"files": None, "validation": None}
    changes = {f"data.{key}": value for key, value in {**files, **removed}.items()}
    more = {"data.segments": "windows:2/1", "data.passages": 3, "model.parade": "max"}
    training = prepare(tmp_path, **changes, **more)
    tokenizer = CheckpointTokenizer(Checkpoint.open(tmp_path / "base"))
    logged: list[str] = []
    (dataset,) = load_datasets(training, tmp_path, tokenizer, logged.append, tmp_path / "tokens")
    assert list(dataset.training_pairs.pairs.doc_ids) == ["a", "b"]
    assert dataset.training_pairs.pairs.grades.tolist() == [1, 0]
    assert [len(dataset.training_pairs[n]) for n in (0, 1)] == [3, 1]
    assert (dataset.training_pairs.truncated, dataset.training_pairs.shortened) == (0, 1)
    assert any(
        "2.5 passages each; of 1 only the first 3 passages are read" in line for line in logged
    )
    texts = [
        dataset.training_pairs.pairs.texts[t] for t in dataset.training_pairs.pairs.passages(0)
    ]
    assert texts == ["birch bark", "bark canoe", "canoe river", "river tree"]
    assert dataset.training_pairs.lengths.tolist() == [3 * 3, 2]
    empty = inputs_of([], tokenizer, 16)
    assert (empty.truncated, len(empty.lengths)) == (0, 0)


def pairs_of_two_passages() -> list[Pair]:
    """Return pairs whose documents have two passages each."""
    return [
        replace(pair, text=text)
        for pair in some_pairs(10)
        for text in (pair.text, f"canoe {pair.text}")
    ]


@pytest.mark.parametrize("aggregation", PARADE_AGGREGATIONS)
def test_parade_can_be_trained(aggregation: str, tmp_path: Path) -> None:
    """Its base is a cross-encoder; the exported model declares its inputs, and can be a base."""
    changes: dict[str, Any] = {
        "model": {"dropout": 0.0, "parade": aggregation},
        "objective": {"kind": "softmax"},
        "lists": {"each": "positive", "texts": 3},
        "schedule.steps": 12,
    }
    training = prepare(tmp_path, **changes)
    write_pairs(tmp_path / "pairs.tsv", pairs_of_two_passages())
    progress = train(training, tmp_path, tmp_path / "out")
    assert progress.measures["words"]["queries"] > 0
    scorer = load_scorer(tmp_path / "out" / MODEL)
    assert isinstance(scorer, ParadeScorer)
    assert (
        f"PARADE with {aggregation} aggregation"
        in (tmp_path / "out" / MODEL / "README.md").read_text()
    )
    again = prepare(tmp_path / "again", **{**changes, "base": str(tmp_path / "out" / MODEL)})
    weights = open_network(
        open_any_head(Path(again.base), "a"), again.initialisation, 5, "cpu"
    ).weights
    stored = Checkpoint.open(tmp_path / "out" / MODEL).tensors()
    for name, weight in weights.items():
        assert np.array_equal(weight.detach().numpy(), stored[name])


def test_unsupported_uses_are_refused(tmp_path: Path) -> None:
    """Unknown aggregations, matched hidden states, unknown kinds of models."""
    with pytest.raises(InputError, match="unknown aggregation 'sum'"):
        Initialisation(parade="sum")
    with pytest.raises(InputError, match="unknown passage vector 'mean'"):
        Initialisation(parade="avg", passage_vectors="mean")
    with pytest.raises(InputError, match=r"\[match\] cannot be combined with PARADE"):
        prepare(tmp_path, **{"model.parade": "avg", "match": {"teacher": "x"}})
    with pytest.raises(InputError, match="passage_vectors has no effect without parade"):
        prepare(tmp_path, **{"model.passage_vectors": "cls"})
    model, _ = write_parade(tmp_path / "other", "avg")
    config = (model / "config.json").read_text()
    (model / "config.json").write_text(config.replace('"passages"', '"two texts"'))
    with pytest.raises(CheckpointError, match=r"unsupported kind of model.*found.*two texts"):
        load_scorer(model)


def test_a_head_that_reads_the_mean_is_refused(tmp_path: Path) -> None:
    """PARADE reads [CLS], for which a new head can be learned."""
    base = open_any_head(write_family(tmp_path / "mean", "modernbert", 1), "mean")
    with pytest.raises(InputError, match=r"mean: PARADE reads \[CLS\] of passages.*head = .new"):
        open_network(base, Initialisation(parade="avg"), 0, "cpu")
    network = open_network(base, Initialisation(parade="avg", head="new"), 0, "cpu")
    pairs = list(zip(IDS, TYPES, strict=True))
    assert network.score(PackedInputs.of(pairs, "cpu", COUNTS)).shape == (len(COUNTS),)


def test_the_transformer_reads_the_embedding_of_cls_first(tmp_path: Path) -> None:
    """Untrained, the token in front of the passages is BERT's own [CLS]."""
    base = open_any_head(write_bert(tmp_path / "mono", labels=1), "mono")
    network = open_network(base, Initialisation(parade="transformer"), 0, "cpu")
    words = base.tensors()["embeddings.word_embeddings.weight"]
    np.testing.assert_array_equal(network.weights["parade.cls"].detach().numpy(), words[2])


@pytest.mark.parametrize("aggregation", ["attn", "transformer"])
def test_a_new_head_aggregates_anew(aggregation: str, tmp_path: Path) -> None:
    """With `new output`, the aggregation is that of the base, as with `base`."""
    model, network = write_parade(tmp_path, aggregation)
    base = Checkpoint.open(model)
    before = {n: w for n, w in network.weights.items() if n.startswith("parade.")}
    for head in HEADS:
        again = open_network(base, Initialisation(parade=aggregation, head=head), 5, "cpu")
        equal = {n: torch.equal(again.weights[n], w) for n, w in before.items()}
        assert set(equal.values()) == {head != "new"}, equal


@pytest.mark.parametrize(("family", "layers"), [("bert", "pooler"), ("modernbert", "head.")])
def test_cls_itself_needs_no_pooler(family: str, layers: str, tmp_path: Path) -> None:
    """Its weights are neither trained nor stored; the model says so, and can be a base."""
    model, network = write_parade(tmp_path, "max", family, vectors="cls")
    assert not any(name.startswith(layers) for name in network.weights)
    checkpoint = Checkpoint.open(model)
    assert not any(layers in name for name in checkpoint.tensors())
    assert json.loads((model / "config.json").read_text())["birchbark"]["vectors"] == "cls"
    again = Initialisation(parade="max", passage_vectors="cls")
    assert open_network(checkpoint, again, 0, "cpu").weights.keys() == network.weights.keys()


def test_parade_learns_from_the_scores_of_documents(tmp_path: Path) -> None:
    """The target is PARADE's log-odds of the document, or a cross-encoder's of its best passage."""
    parade, network = write_parade(tmp_path / "m", "transformer")
    mono = write_bert(tmp_path / "mono", labels=1, seed=4)
    changes: dict[str, Any] = {"model.parade": "avg", "data.passages": 2, "max_length": 16}
    training = prepare(tmp_path, **changes)
    pairs = [
        replace(pair, text=text)
        for pair in some_pairs(10)
        for text in (pair.text, f"canoe {pair.text}", "never read")
    ]
    write_pairs(tmp_path / "pairs.tsv", pairs)
    tokenizer = CheckpointTokenizer(Checkpoint.open(tmp_path / "base"))
    (dataset,) = load_datasets(
        training, tmp_path, tokenizer, lambda text: None, tmp_path / "tokens"
    )
    inputs, sampled = dataset.training_pairs, np.array([0, 3, 4])
    passages = [inputs[pair] for pair in sampled]
    assert {len(of_pair) for of_pair in passages} == {2}
    flat = PackedInputs.of([p for of_pair in passages for p in of_pair], "cpu", (2, 2, 2))
    best = load_scorer(mono).checkpoint
    alone = open_network(best, Initialisation(dropout=0.0), 0, "cpu").score(
        PackedInputs.of([p for of_pair in passages for p in of_pair], "cpu")
    )
    for model, expected in (
        (parade, network.score(flat).numpy()),
        (mono, alone.numpy().reshape(-1, 2).max(1)),
    ):
        store = TeacherScores(tmp_path / f"{model.name}.scores")
        for _ in range(2):  # computed, then stored
            values, _ = teacher_scores(inputs, sampled, load_scorer(model), store)
            np.testing.assert_allclose(values[sampled], expected, atol=1e-4)
            assert np.isnan(np.delete(values, sampled)).all()


@pytest.mark.parametrize("teacher", ["parade", "mono"])
def test_parade_can_be_distilled(teacher: str, tmp_path: Path) -> None:
    """A PARADE or a cross-encoder can teach it: the loss falls, and the student is a PARADE."""
    parade, _ = write_parade(tmp_path / "m", "max")
    model = parade if teacher == "parade" else write_bert(tmp_path / "mono", labels=1, seed=4)
    changes: dict[str, Any] = {
        "model": {"dropout": 0.0, "parade": "avg", "passage_vectors": "cls"},
        "objective": {"kind": "soft", "teacher": str(model)},
        "schedule.steps": 20,
    }
    training = prepare(tmp_path, **changes)
    write_pairs(tmp_path / "pairs.tsv", pairs_of_two_passages())
    train(training, tmp_path, tmp_path / "out")
    lines = (tmp_path / "out" / "curve.jsonl").read_text().splitlines()
    losses = [json.loads(line)["loss"] for line in lines if '"loss"' in line]
    assert np.mean(losses[-4:]) < np.mean(losses[:4])
    assert isinstance(load_scorer(tmp_path / "out" / MODEL), ParadeScorer)


def test_all_weights_have_gradients(tmp_path: Path) -> None:
    """Token embeddings of each passage have them, too.

    With `head`, only the aggregation has them.
    """
    base = open_any_head(write_bert(tmp_path / "mono", labels=1), "mono")
    inputs = PackedInputs.of(list(zip(IDS, TYPES, strict=True)), "cpu", COUNTS)
    network = open_network(base, Initialisation(dropout=0.0, parade="transformer"), 0, "cpu")
    network.training_logits(inputs).sum().backward()
    words = network.weights["embeddings.word_embeddings.weight"].grad.abs().sum(1)
    assert (words[np.unique(np.concatenate(IDS))] > 0).all()
    for aggregation, name in (("attn", "parade.share.weight"), ("transformer", "parade.cls")):
        head = open_network(base, Initialisation(parade=aggregation, trainable="head"), 0, "cpu")
        trainable = {n for n, weight in head.weights.items() if weight.requires_grad}
        assert name in trainable
        assert not any(n.startswith(("encoder", "embeddings")) for n in trainable)


def test_a_document_has_its_highest_grade() -> None:
    """It is the highest grade of its passages; a document judged for two queries is two pairs."""
    rows = [("q1", "a", "x", 0), ("q2", "a", "x", 1), ("q1", "a", "y", 2), ("q1", "b", "x", 0)]
    pairs = table_of([Pair(q, q, d, t, g) for q, d, t, g in rows], documents=True)
    assert list(pairs.doc_ids) == ["a", "a", "b"]
    assert pairs.grades.tolist() == [2, 1, 0]
    texts = [[pairs.texts[t] for t in pairs.passages(n)] for n in range(3)]
    assert texts == [["x", "y"], ["x"], ["x"]]


@pytest.mark.parametrize("aggregation", PARADE_AGGREGATIONS)
def test_the_top_k_are_exact(aggregation: str, tmp_path: Path) -> None:
    """This holds for any interpolation without scoring all, as evidence is at most 1."""
    model, _ = write_parade(tmp_path / "m", aggregation)
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
        complete = rerank(engine, run, queries, ranker)
        work: list[RerankedQuery] = []
        best = rerank(
            engine,
            run,
            queries,
            ranker,
            top=3,
            on_query=work.append,
        )
        for query in queries:
            every = complete.rankings[query.query_id].doc_ids
            assert best.rankings[query.query_id].doc_ids == every[:3]
        if a == 0.9:
            assert sum(query.stats.scored for query in work) < sum(map(len, run.rankings.values()))


@pytest.mark.filterwarnings("ignore:.* does not state the scale")  # a model trained here
def test_parade_as_ranker_embedding_and_teacher(tmp_path: Path) -> None:
    """It ranks with windows by default; it is no embedding model, and teaches only PARADE."""
    model, _ = write_parade(tmp_path / "m", "avg")
    scorer = load_scorer(model)
    options = StageOptions(model=str(model))
    models = LoadedModels()
    assert make_ranker(options, models).segmenter == Windows(150, 50)  # the default for PARADE
    assert make_ranker(replace(options, segments="sentences"), models).segmenter is sentences
    with pytest.raises(
        InputError, match="aggregate has no effect: this model scores whole documents"
    ):
        make_ranker(replace(options, aggregate="max"), models)
    with pytest.raises(InputError, match="scores whole documents"):
        Ranker(load_scorer(write_bert(tmp_path / "mono", labels=1)), embedding=scorer)
    assert scorer.score_document(np.empty((0, scorer.width), np.float32))[0] == 0
    taught = {"objective": {"kind": "soft", "teacher": str(model)}}
    with pytest.raises(InputError, match=r"teacher .*this model scores documents, not texts"):
        train(prepare(tmp_path / "t", **taught), tmp_path / "t", tmp_path / "out")
    with pytest.raises(InputError, match="only compared for models that score texts"):
        next(check_precisions(model, {}))
    tensors = load_file(model / "model.safetensors")
    extra = {"parade.layer.2.attention.self.query.weight": np.zeros((2, 2), np.float32)}
    save_file(tensors | extra, model / "model.safetensors")
    with pytest.raises(CheckpointError, match="too many layers attend to passages"):
        load_scorer(model)


@pytest.mark.parametrize("statement", ["yes", True, ["x"], 0, {"reads": "passages"}])
def test_unknown_statements_are_refused(statement: Any, tmp_path: Path) -> None:
    """The key `birchbark` in config.json must have a known value."""
    directory = write_bert(tmp_path / "b", labels=1)
    config = json.loads((directory / "config.json").read_text())
    (directory / "config.json").write_text(json.dumps(config | {"birchbark": statement}))
    with pytest.raises(CheckpointError, match="unsupported kind of model"):
        load_scorer(directory)


def test_documents_of_one_passage_are_refused(tmp_path: Path) -> None:
    """`passages` is refused for a cross-encoder, too."""
    training = prepare(tmp_path, **{"model.parade": "avg"})
    tokenizer = CheckpointTokenizer(Checkpoint.open(tmp_path / "base"))
    with pytest.raises(InputError, match="each document has one passage"):
        load_datasets(training, tmp_path, tokenizer, lambda text: None, tmp_path / "tokens")
    with pytest.raises(InputError, match=r"passages has no effect without model\.parade"):
        prepare(tmp_path / "b", **{"data.passages": 3})
