"""Are models that are not supported refused, and different ones told apart?"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from damaged_models import Bert, changed, write_modules
from safetensors.numpy import save_file
from zoo import FAMILIES, write_family

from birchbark.checkpoint.checkpoint import Checkpoint
from birchbark.checkpoint.heads import Pooling
from birchbark.errors import CheckpointError
from birchbark.score.load_scorer import load_scorer
from birchbark.score.session import OnnxSession


def test_fingerprints_depend_on_the_weights(bert: Bert) -> None:
    """Fingerprints are equal for equal weights, whatever the directory."""
    one, same, other = bert(seed=1), bert(seed=1), bert(seed=2)
    assert load_scorer(one).fingerprint == load_scorer(same).fingerprint
    assert load_scorer(one).fingerprint != load_scorer(other).fingerprint


def configured(directory: Path, **values: object) -> Path:
    config = directory / "config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | values))
    return directory


def test_unsupported_models_are_rejected(bert: Bert, tmp_path: Path) -> None:
    """Unsupported architectures, activations and heads are rejected; the error lists valid ones."""
    (tmp_path / "null").symlink_to("/dev/null")  # of no interest, since no model is there
    cases = [
        (
            configured(bert(), model_type="gpt2"),
            "unsupported architecture: expected bert or roberta or .*found gpt2",
        ),
        (
            configured(bert(), hidden_act="silu"),
            "unsupported activation: expected gelu or .*found silu",
        ),
        (configured(bert(labels=1), hidden_size=20), r"do not fit config.json: expected shape"),
        (configured(bert(), vocab_size=3), "vocabulary and weights do not match"),
        (bert(labels=5), "no supported head.*found a classifier with 5 logits"),
        (tmp_path / "bert-none", "no such model"),
        (tmp_path / ("9" * 1000), "no such model"),
        (tmp_path, f"{tmp_path}: not a model directory: expected a folder with config.json"),
    ]
    for directory, message in cases:
        with pytest.raises(CheckpointError, match=message):
            load_scorer(directory)


def test_invalid_values_in_the_configuration_are_rejected(bert: Bert) -> None:
    """Invalid values raise CheckpointError, instead of an exception of the runtime."""
    for values in (
        {"hidden_size": "x"},
        {"num_attention_heads": 0},
        {"num_attention_heads": 3},
        {"num_hidden_layers": None},
        {"position_embedding_type": "relative_key"},
    ):
        with pytest.raises(CheckpointError, match=r"config\.json|position embeddings"):
            load_scorer(configured(bert(), **values))
    directory = bert()
    (directory / "modules.json").write_text('[{"type": "sentence_transformers.models.Dense"}]')
    with pytest.raises(CheckpointError, match=r"unsupported module.*found Dense"):
        load_scorer(directory)


def test_poolings_have_fingerprints_of_their_own(tmp_path: Path) -> None:
    """Poolings that give different scores have different fingerprints."""
    directory = write_family(tmp_path / "bert", "bert", None)
    choices = [Pooling(mode, layer) for mode in ("cls", "mean", "max") for layer in (0, 2, None)]
    assert len({Checkpoint.open(directory, pooling=p).fingerprint for p in choices}) == 9


@pytest.mark.parametrize("family", FAMILIES)
def test_invalid_models_are_rejected(family: str, tmp_path: Path) -> None:
    """A missing layer, a wrong vocabulary, truncated weights or a pickle are rejected."""
    directory = write_family(tmp_path / family, family, 1)
    with pytest.raises(CheckpointError, match="no such layer: expected 0 to 3, found 4"):
        load_scorer(directory, pooling=Pooling("cls", 4))
    config = json.loads((directory / "config.json").read_text())
    larger = json.dumps(config | {"vocab_size": config["vocab_size"] + 1})
    (directory / "config.json").write_text(larger)
    with pytest.raises(
        CheckpointError, match=r"(word|tok)_embeddings.weight do not fit config\.json"
    ):
        OnnxSession(Checkpoint.open(directory))
    (directory / "config.json").write_text(json.dumps(config))
    weights = directory / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-10])
    with pytest.raises(CheckpointError, match="damaged weights"):
        OnnxSession(Checkpoint.open(directory))
    weights.rename(directory / "pytorch_model.bin")
    with pytest.raises(CheckpointError, match=r"pickle.*run any code.*save_pretrained"):
        load_scorer(directory)
    (directory / "config.json").write_text(json.dumps(config | {"model_type": "t5"}))
    with pytest.raises(CheckpointError, match=r"bert or roberta .*albert .*, found t5"):
        load_scorer(directory)


def test_fingerprints_tell_the_order_of_modules(bert: Bert, tmp_path: Path) -> None:
    """Each order of the same modules has another; a last Normalize is that of every embedding."""
    kinds = ("Normalize", "LayerNorm Normalize", "Normalize LayerNorm Normalize")
    prints = []
    for number, kind in enumerate(("", *kinds)):
        copy = tmp_path / str(number)
        shutil.copytree(bert(), copy)
        prints.append(
            Checkpoint.open(write_modules(copy, f"Transformer Pooling {kind}")).fingerprint
        )
    plain, normalised, *others = prints
    assert plain == normalised
    assert len({plain, *others}) == 3


def test_fingerprints_tell_the_pooling_of_a_cross_encoder(bert: Bert, tmp_path: Path) -> None:
    """Its mode is in a file that weights and config.json do not know."""
    prints = set()
    for mode in ("mean", "cls"):
        copy = tmp_path / mode
        shutil.copytree(bert(), copy)
        write_modules(copy, "Transformer Pooling Dense", model_type="CrossEncoder")
        changed(copy / "1_Pooling" / "config.json", pooling_mode=mode)
        changed(copy / "2_Dense" / "config.json", module_output_name="scores")
        tensors = {
            "linear.weight": np.ones((1, 16), np.float32),
            "linear.bias": np.ones(1, np.float32),
        }
        save_file(tensors, copy / "2_Dense" / "model.safetensors")
        prints.add(Checkpoint.open(copy).fingerprint)
    assert len(prints) == 2
