"""Do exported models have equal scores here and in other libraries?"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file
from tiny_trainings import prepare, settings
from zoo import FAMILIES, PREFIXES, give_tokenizer, write_family

from birchbark.checkpoint.checkpoint import Checkpoint, open_any_head
from birchbark.checkpoint.tokenizer import CheckpointTokenizer
from birchbark.pipeline.pair_scorer import PairScorer
from birchbark.score.load_scorer import load_scorer
from birchbark.score.session import OnnxSession
from birchbark.train.export import export
from birchbark.train.initialise import Initialisation, open_network
from birchbark.train.packed_inputs import PackedInputs
from birchbark.train.read_config import read_training
from birchbark.train.training import train
from conftest import VOCABULARY, write_bert

torch = pytest.importorskip("torch", reason="torch is not installed")

pytestmark = pytest.mark.filterwarnings("default")
LINEAGE = {"base": "tiny", "trainings": [{"title": "t", "data": [], "seed": 0, "steps": 1}]}
LINEAGE["trainings"][0] |= {"ended": "all steps"}  # type: ignore[index, operator]
QUERY = "birch river"
TEXTS = ["a canoe , birch bark .", "bee dance", "the iron bridge river " * 6, "stone"]
RANDOM = np.random.default_rng(3)
IDS = [RANDOM.integers(5, len(VOCABULARY), n) for n in (9, 32, 5, 9)]
TYPES = [np.repeat([0, 1], [4, len(i) - 4]) for i in IDS]


def exported(tmp_path: Path, family: str, **settings_: Any) -> tuple[Path, Any]:
    """Return a network whose weights differ from its base, after its model directory."""
    directory = write_family(tmp_path / "base", family, 2)
    if family in ("roberta", "albert", "deberta-v2", "modernbert"):
        give_tokenizer(directory, family)
    base = open_any_head(directory, "tiny")
    network = open_network(base, Initialisation(**settings_), 0, "cpu")
    torch.manual_seed(0)
    with torch.no_grad():
        for weight in network.weights.values():
            weight.add_(torch.randn_like(weight) * 0.1)
    export(tmp_path / "model", network, base, CheckpointTokenizer(base), LINEAGE)
    return tmp_path / "model", network


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_is_exported(family: str, tmp_path: Path) -> None:
    """Weights and scores without torch are equal, also with fewer layers."""
    settings_ = {} if family == "albert" else {"layers": 2}
    model, network = exported(tmp_path, family, **settings_)
    expected = network.score(PackedInputs.of(list(zip(IDS, TYPES, strict=True)), "cpu")).numpy()
    checkpoint = Checkpoint.open(model)
    assert checkpoint.config.layers == settings_.get("layers", 3)
    files = (load_file(folder / "model.safetensors") for folder in (model, tmp_path / "base"))
    names, of_base = (set(tensors) for tensors in files)
    assert names <= of_base  # with transformers' prefixes
    stored = checkpoint.tensors()
    assert stored.keys() == network.weights.keys()
    for name, weight in network.weights.items():
        np.testing.assert_array_equal(stored[name], weight.detach().numpy())
    found = OnnxSession(checkpoint, 1).run(IDS, TYPES)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)
    again = open_network(open_any_head(model, "again"), Initialisation(), 1, "cpu")
    for name, weight in network.weights.items():
        assert torch.equal(again.weights[name], weight)


@pytest.mark.parametrize("settings_", [{}, {"pooling": "mean"}])
def test_a_model_states_the_length_it_was_trained_with(
    tmp_path: Path, settings_: dict[str, Any]
) -> None:
    """Other libraries truncate to it, and birchbark splits longer texts."""
    base = open_any_head(write_family(tmp_path / "base", "bert", 2), "tiny")
    network = open_network(base, Initialisation(**settings_), 0, "cpu")
    model = tmp_path / "model"
    export(model, network, base, CheckpointTokenizer(base), LINEAGE, max_length=24)
    assert Checkpoint.open(model).max_length == 24
    stated = json.loads((model / "tokenizer_config.json").read_text())
    assert stated["model_max_length"] == 24


@pytest.mark.parametrize("family", FAMILIES)
def test_transformers_computes_equal_logits(family: str, tmp_path: Path) -> None:
    """Gradients are equal too, and no weights are missing or unexpected."""
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    model, network = exported(tmp_path, family)
    theirs, report = transformers.AutoModelForSequenceClassification.from_pretrained(
        model, output_loading_info=True
    )
    assert not any(report.values())
    assert theirs.config.architectures == [type(theirs).__name__]
    theirs.eval()
    network.modules.dropout = 0.0
    logits = []
    for ids, types in zip(IDS, TYPES, strict=True):
        inputs = {"input_ids": torch.tensor(ids[None])}
        if family in ("bert", "electra", "albert"):
            inputs["token_type_ids"] = torch.tensor(types[None])
        logits.append(theirs(**inputs).logits[0, 0])
    mine = network.training_logits(PackedInputs.of(list(zip(IDS, TYPES, strict=True)), "cpu"))
    torch.testing.assert_close(mine, torch.stack(logits), rtol=0, atol=1e-5)
    (mine**2).sum().backward()
    sum(logit**2 for logit in logits).backward()
    named = dict(theirs.named_parameters())
    prefix = f"{PREFIXES.get(family, family)}."
    for name, weight in network.weights.items():
        expected = named.pop(name if name in named else prefix + name)
        if weight.grad is None:
            assert expected.grad is None or not expected.grad.any()
        else:
            torch.testing.assert_close(weight.grad, expected.grad, rtol=1e-4, atol=1e-4)
    assert not named


def their_scores(model: Path) -> Any:
    peers = pytest.importorskip("sentence_transformers", reason="it is not installed")
    encoder = peers.CrossEncoder(str(model), device="cpu")
    return encoder, encoder.predict([(QUERY, text) for text in TEXTS], show_progress_bar=False)


def our_scores(model: Path) -> Any:
    scorer = load_scorer(model, 1)
    return scorer.score(QUERY, scorer.encode(TEXTS))


@pytest.mark.parametrize("family", FAMILIES)
def test_sentence_transformers_loads_the_model(family: str, tmp_path: Path) -> None:
    """It needs no conversion and computes equal probabilities."""
    model, _ = exported(tmp_path, family)
    encoder, theirs = their_scores(model)
    assert encoder.max_seq_length == Checkpoint.open(model).config.max_positions
    np.testing.assert_allclose(our_scores(model), theirs, rtol=0, atol=1e-5)
    assert np.ptp(theirs) > 0.01


def test_pair_scorer_answers_as_cross_encoder(tmp_path: Path) -> None:
    """The same calls return the same keys, texts and scores, for texts that are not split."""
    texts = [text for text in TEXTS if len(text) < 50]
    model, _ = exported(tmp_path, "bert")
    peer, scorer = their_scores(model)[0], PairScorer(str(model))
    pairs = [(QUERY, text) for text in texts]
    np.testing.assert_allclose(
        scorer.predict(pairs, batch_size=2), peer.predict(pairs, batch_size=2), atol=1e-5
    )
    assert scorer.predict(pairs[0]) == pytest.approx(float(peer.predict(pairs[0])), abs=1e-5)
    ours, theirs = (
        ranker.rank(QUERY, texts, top_k=2, return_documents=True) for ranker in (scorer, peer)
    )
    assert [sorted(result) for result in ours] == [sorted(result) for result in theirs]
    for name in ("corpus_id", "text"):
        assert [result[name] for result in ours] == [result[name] for result in theirs]
    for mine, their in zip(ours, theirs, strict=True):
        assert mine["score"] == pytest.approx(float(their["score"]), abs=1e-5)


@pytest.mark.parametrize(
    "stated",
    [
        {"sentence_transformers": {"activation_fn": "torch.nn.modules.linear.Identity"}},
        {"sbert_ce_default_activation_function": "torch.nn.modules.linear.Identity"},
        {"id2label": {"0": "no", "1": "yes"}, "problem_type": "single_label_classification"},
    ],
)
def test_statements_of_the_base_are_dropped(stated: dict[str, Any], tmp_path: Path) -> None:
    """Another activation, or two labels, are dropped, for example."""
    training = prepare(tmp_path)
    path = tmp_path / "base" / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | stated))
    train(training, tmp_path, tmp_path / "out")
    model = tmp_path / "out" / "model"
    np.testing.assert_allclose(our_scores(model), their_scores(model)[1], rtol=0, atol=1e-5)


def test_models_of_sentence_transformers_are_bases(tmp_path: Path) -> None:
    """A saved CrossEncoder gives equal scores before and after training."""
    peers = pytest.importorskip("sentence_transformers", reason="it is not installed")
    write_bert(tmp_path / "seed", labels=1)
    peers.CrossEncoder(str(tmp_path / "seed"), device="cpu").save_pretrained(str(tmp_path / "base"))
    _, theirs = their_scores(tmp_path / "base")
    np.testing.assert_allclose(our_scores(tmp_path / "base"), theirs, rtol=0, atol=1e-5)
    train(prepare_pairs(tmp_path), tmp_path, tmp_path / "out")
    model = tmp_path / "out" / "model"
    _, trained = their_scores(model)
    np.testing.assert_allclose(our_scores(model), trained, rtol=0, atol=1e-5)
    assert np.abs(trained - theirs).max() > 1e-4


def prepare_pairs(folder: Path) -> Any:
    """Write pairs to `folder`, and return a training configuration for the base there."""
    prepare(folder / "other")
    shutil.copyfile(folder / "other" / "pairs.tsv", folder / "pairs.tsv")
    return read_training(settings(folder / "base"), folder / "tiny.toml")


def test_the_card_lists_all_trainings(tmp_path: Path) -> None:
    """They are listed in order, with data and licences."""
    train(prepare(tmp_path, title="A", data__licence="CC0"), tmp_path, tmp_path / "a")
    second = settings(tmp_path / "a" / "model", {"title": "B", "seed": 5, "data.name": "more"})
    train(read_training(second, tmp_path / "b.toml"), tmp_path, tmp_path / "b")
    lineage = json.loads((tmp_path / "b" / "model" / "birchbark.json").read_text())
    assert lineage["base"] == str(tmp_path / "base")
    assert [(t["title"], t["seed"]) for t in lineage["trainings"]] == [("A", 0), ("B", 5)]
    assert [t["data"][0]["name"] for t in lineage["trainings"]] == ["words", "more"]
    assert [t["ended"] for t in lineage["trainings"]] == ["all steps"] * 2
    card = (tmp_path / "b" / "model" / "README.md").read_text()
    assert f"Trained from {tmp_path / 'base'} → A → B." in card
    assert "Licences of the data: CC0; not stated." in card
    assert card.startswith("---\nbase_model: ")
    measured = lineage["trainings"][1]["measures"]["more"]
    assert 0 <= measured["low"] <= measured["mean"] <= measured["high"] <= 1
    assert (
        f"| more | {measured['queries']} | {measured['mean']:.4f} [{measured['low']:.4f}, " in card
    )


def test_an_embedding_model_can_be_a_base(tmp_path: Path) -> None:
    """It is given a head and becomes a cross-encoder."""
    write_bert(tmp_path / "base", labels=None)
    training = prepare_pairs(tmp_path)
    train(training, tmp_path, tmp_path / "out")
    assert load_scorer(tmp_path / "out" / "model").kind == "cross-encoder"
