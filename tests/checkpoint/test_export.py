"""Is a trained model written so that it is opened as what it is?"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from birchbark.checkpoint.architecture import Architecture
from birchbark.checkpoint.checkpoint import Checkpoint
from birchbark.checkpoint.export import TrainedModel, write_pooling, write_prompts
from birchbark.checkpoint.heads import Pooling
from birchbark.checkpoint.prompts import Prompts, read_prompts
from birchbark.checkpoint.tokenizer import CheckpointTokenizer
from birchbark.score.load_scorer import load_scorer
from birchbark.score.scorer import score_texts

Bert = Callable[..., Path]
LINEAGE: dict[str, Any] = {
    "base": "tiny",
    "trainings": [{"title": "Bark", "data": [], "seed": 0, "steps": 1, "ended": "all steps"}],
}


def trained(model: Path, architecture: Architecture, max_length: int = 32) -> TrainedModel:
    """Return a model of this kind with the weights of `model`."""
    base = Checkpoint.open(model)
    tokenizer, weights = CheckpointTokenizer(base), base.weights.read_bytes()
    return TrainedModel(base, tokenizer, base.config, architecture, max_length, weights)


def config_of(model: Path) -> dict[str, Any]:
    config: dict[str, Any] = json.loads((model / "config.json").read_text())
    return config


def test_a_cross_encoder_scores_as_its_weights_do(bert: Bert, tmp_path: Path) -> None:
    """What describes the base alone is left out, and the length of inputs is stated."""
    base = bert(labels=1)
    config = config_of(base) | {"_name_or_path": "x", "problem_type": "y", "id2label": {"0": "z"}}
    (base / "config.json").write_text(json.dumps(config))
    trained(base, Architecture(), 20).write(tmp_path / "new", LINEAGE)
    written = config_of(tmp_path / "new")
    assert not {"_name_or_path", "problem_type", "birchbark"} & written.keys()
    assert written["architectures"] == ["BertForSequenceClassification"]
    assert written["id2label"] == {"0": "relevance"}
    assert Checkpoint.open(tmp_path / "new").max_length == 20
    texts = ["a birch canoe", "bee"]
    expected = score_texts(load_scorer(base, 1), "river", texts)
    found = score_texts(load_scorer(tmp_path / "new", 1), "river", texts)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("architecture", "suffix", "stated"),
    [
        (Architecture(pooling="max"), "Model", None),
        (Architecture(masked=True), "ForMaskedLM", None),
        (Architecture(duo=True), "ForSequenceClassification", {"reads": "two texts"}),
        (Architecture(parade="max"), "Model", {"reads": "passages", "aggregation": "max"}),
        (
            Architecture(parade="avg", passage_vectors="cls"),
            "Model",
            {"reads": "passages", "aggregation": "avg", "vectors": "cls"},
        ),
    ],
)
def test_each_kind_names_its_class_and_head(
    architecture: Architecture, suffix: str, stated: object, bert: Bert, tmp_path: Path
) -> None:
    """Heads that transformers does not know are stated for Birchbark."""
    trained(bert(labels=1), architecture).write(tmp_path / "new", LINEAGE)
    written = config_of(tmp_path / "new")
    assert written["architectures"] == [f"Bert{suffix}"]
    assert written.get("birchbark") == stated


def test_sizes_are_those_of_the_trained_encoder(bert: Bert, tmp_path: Path) -> None:
    """It may have fewer layers than its base."""
    model = trained(bert(layers=2), Architecture(pooling="mean"))
    weights = (bert(layers=1) / "model.safetensors").read_bytes()
    smaller = replace(model, config=model.config.as_bert(1), weights=weights)
    smaller.write(tmp_path / "new", LINEAGE)
    assert config_of(tmp_path / "new")["num_hidden_layers"] == 1
    assert Checkpoint.open(tmp_path / "new").head == Pooling("mean", 1)


def test_an_adapted_embedding_model_stays_one(bert: Bert, tmp_path: Path) -> None:
    """Its pooling and its prompts are kept."""
    base = bert()
    write_prompts(base, Prompts("query: ", "text: "))
    trained(base, Architecture(masked=True)).write(tmp_path / "new", LINEAGE)
    checkpoint = Checkpoint.open(tmp_path / "new")
    assert checkpoint.head == Pooling("mean", 2)
    assert checkpoint.prompts == Prompts("query: ", "text: ")


def test_files_of_sentence_transformers(tmp_path: Path) -> None:
    """One pooling is chosen, and no file is written for no prompts."""
    write_pooling(tmp_path, "cls", 16, 30)
    modules = json.loads((tmp_path / "modules.json").read_text())
    assert [module["path"] for module in modules] == ["", "1_Pooling", "2_Normalize"]
    pooling = json.loads((tmp_path / "1_Pooling" / "config.json").read_text())
    assert [key for key, value in pooling.items() if value is True] == ["pooling_mode_cls_token"]
    assert pooling["word_embedding_dimension"] == 16
    limits = json.loads((tmp_path / "sentence_bert_config.json").read_text())
    assert limits == {"max_seq_length": 30, "do_lower_case": False}
    write_prompts(tmp_path, Prompts())
    assert len(list(tmp_path.iterdir())) == 3
    write_prompts(tmp_path, Prompts("q: "))
    assert read_prompts(tmp_path) == Prompts("q: ", "")
