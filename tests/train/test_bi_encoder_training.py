"""Can a bi-encoder be trained, and are query and text encoded separately?"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from prepared import inputs_of
from tiny_trainings import prepare, settings
from zoo import FAMILIES, give_tokenizer, write_family

from birchbark.checkpoint.checkpoint import Checkpoint, open_any_head
from birchbark.checkpoint.heads import POOLING_MODES, Classifier, Pooling
from birchbark.checkpoint.layers import Dense
from birchbark.checkpoint.prompts import Prompts
from birchbark.checkpoint.tokenizer import CheckpointTokenizer
from birchbark.errors import InputError
from birchbark.records import Pair
from birchbark.score.embedding import EmbeddingScorer
from birchbark.score.load_scorer import load_scorer
from birchbark.train.export import export
from birchbark.train.initialise import Initialisation, network_shape, open_network
from birchbark.train.network import SCALE
from birchbark.train.packed_inputs import PackedInputs
from birchbark.train.pair_inputs import InputLayout
from birchbark.train.read_config import read_training
from birchbark.train.training import train
from birchbark.train.training_log import read_log
from conftest import write_bert

torch = pytest.importorskip("torch", reason="torch is not installed")

pytestmark = pytest.mark.filterwarnings("default")
LINEAGE: dict[str, Any] = {
    "base": "tiny",
    "trainings": [{"title": "t", "data": [], "seed": 0, "steps": 1, "ended": "all steps"}],
}
QUERIES = ["birch river", "a bee"]
TEXTS = ["a canoe , birch bark .", "bee dance", "the iron bridge river " * 3]


def exported(folder: Path, mode: str, family: str) -> tuple[Path, Any]:
    """Return a bi-encoder whose weights differ from those of its base, and its network."""
    directory = write_family(folder / "base", family, 1)
    if family in ("roberta", "albert"):
        give_tokenizer(directory, family)
    base = open_any_head(directory, "tiny")
    network = open_network(base, Initialisation(dropout=0.0, pooling=mode), 0, "cpu")
    torch.manual_seed(0)
    with torch.no_grad():
        for weight in network.weights.values():
            weight.add_(torch.randn_like(weight) * 0.2)
    export(folder / "model", network, base, CheckpointTokenizer(base), LINEAGE)
    return folder / "model", network


@pytest.mark.parametrize("mode", POOLING_MODES)
@pytest.mark.parametrize("family", FAMILIES)
def test_score_and_torch_agree(family: str, mode: str, tmp_path: Path) -> None:
    """The logits in training equal SCALE times the cosines of vectors computed without torch."""
    model, network = exported(tmp_path, mode, family)
    scorer = load_scorer(model)
    assert isinstance(scorer, EmbeddingScorer)
    assert Checkpoint.open(model).max_length == open_any_head(tmp_path / "base", "tiny").max_length
    tokenizer = CheckpointTokenizer(open_any_head(model, "tiny"))
    encoded = [
        (ids, np.zeros_like(ids))
        for query in QUERIES
        for text in TEXTS
        for ids in map(tokenizer.single_input, tokenizer.encode([query, text]))
    ]
    logits = network.score(PackedInputs.of(encoded, "cpu", [2] * 6)).numpy().reshape(2, 3)
    queries, texts = scorer.embed(scorer.encode(QUERIES)), scorer.embed(scorer.encode(TEXTS))
    np.testing.assert_allclose(logits / SCALE, queries @ texts.T, atol=1e-5)


def test_sentence_transformers_loads_the_model(tmp_path: Path) -> None:
    """It computes equal vectors."""
    theirs = pytest.importorskip("sentence_transformers", reason="not installed: a peer")
    model, _ = exported(tmp_path, "mean", "bert")
    scorer = load_scorer(model)
    assert isinstance(scorer, EmbeddingScorer)
    expected = theirs.SentenceTransformer(str(model), device="cpu").encode(TEXTS)
    np.testing.assert_allclose(scorer.embed(scorer.encode(TEXTS)), expected, atol=1e-5)


def training(folder: Path, **changes: Any) -> dict[str, Any]:
    """Return the settings of a tiny training run, whose pairs are in `folder`."""
    prepare(folder)
    return settings(
        folder / "base",
        {
            "model.pooling": "mean",
            "objective": {"kind": "softmax"},
            "lists": {"each": "positive", "texts": 3},
            **changes,
        },
    )


def test_the_loss_falls(tmp_path: Path) -> None:
    """The exported model is an embedding model and can be trained further."""
    values = training(tmp_path, **{"schedule.steps": 40, "schedule.learning_rate": 3e-3})
    config = read_training(values, tmp_path / "t.toml")
    ended = train(config, tmp_path, tmp_path / "out")
    assert ended.ended == "all steps"
    losses = [line["loss"] for line in read_log(tmp_path / "out" / "curve.jsonl") if "loss" in line]
    assert np.mean(losses[-5:]) < 0.8 * np.mean(losses[:5])
    model = tmp_path / "out" / "model"
    assert isinstance(load_scorer(model), EmbeddingScorer)
    assert "sentence-similarity" in (model / "README.md").read_text()
    again = read_training({**values, "base": str(model)}, tmp_path / "t.toml")
    train(again, tmp_path, tmp_path / "again")
    assert isinstance(load_scorer(tmp_path / "again" / "model"), EmbeddingScorer)


def test_query_and_text_have_separate_inputs(tmp_path: Path) -> None:
    """Each has the maximum length; truncated pairs are counted."""
    tokenizer = CheckpointTokenizer(open_any_head(write_bert(tmp_path / "b"), "tiny"))
    pairs = [
        Pair("1", "birch " * 20, "a", "river", 1),
        Pair("2", "river", "b", "birch " * 20, 1),
        Pair("3", "river", "c", "birch " * 14, 0),
    ]
    inputs = inputs_of(pairs, tokenizer, 16, 8, layout=InputLayout.SEPARATE)
    assert [[len(ids) for ids, _ in inputs[n]] for n in range(3)] == [[10, 3], [3, 16], [3, 16]]
    assert inputs.truncated == 2
    assert inputs.lengths.tolist() == [9, 15, 15]
    default = inputs_of(pairs, tokenizer, 16, layout=InputLayout.SEPARATE)
    assert [len(ids) for ids, _ in default[0]] == [16, 3]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model.pooling": "sum"}, "unknown pooling 'sum'"),
        (
            {"objective": {"kind": "pointwise"}, "lists": {"each": "pair"}},
            "needs an objective that compares texts",
        ),
        ({"model.learns": "head"}, "has no head"),
        ({"model.parade": "avg"}, "no passages"),
        ({"match": {"teacher": "all-MiniLM-L6-v2"}}, "a bi-encoder cannot be combined"),
    ],
)
def test_contradicting_settings(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    """They raise an error when the configuration is read."""
    with pytest.raises(InputError, match=message):
        read_training(training(tmp_path, **changes), tmp_path / "t.toml")


@pytest.mark.parametrize("prompts", [Prompts("query: "), Prompts(document="passage: ")])
def test_prompts_are_not_lost(prompts: Prompts, tmp_path: Path) -> None:
    """A base that has some is refused as bi-encoder, which would be trained without them."""
    base = replace(open_any_head(write_bert(tmp_path / "base"), "base"), prompts=prompts)
    stated = prompts.query or prompts.document
    with pytest.raises(InputError, match=f"base: a bi-encoder is .*without prompts.*'{stated}'"):
        network_shape(base, Initialisation(pooling="mean"))
    assert network_shape(base, Initialisation()) == base.config
    assert network_shape(base, Initialisation(masked=True)) == base.config


def test_linear_layers_after_the_pooling_are_not_lost(tmp_path: Path) -> None:
    """A base that has some is refused, since the trained model would lack them."""
    base = open_any_head(write_family(tmp_path / "base", "bert", None), "base")
    dense = Dense("dense.0", 16, 1, bias=False, activation="", folder="2_Dense")
    embedding = replace(base, head=Pooling("mean", layers=(dense,)))
    cross_encoder = replace(base, head=Classifier((), dense, 0))
    for model, choices in (
        (embedding, {"pooling": "mean"}),
        (embedding, {"masked": True}),
        (cross_encoder, {}),
        (cross_encoder, {"head": "new output"}),
        (cross_encoder, {"parade": "max"}),
    ):
        with pytest.raises(InputError, match="layers after the pooling cannot be trained"):
            open_network(model, Initialisation(**choices), 0, "cpu")  # type: ignore[arg-type]
