"""Are layers after the pooling applied as torch applies them, or refused?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from damaged_models import Bert, changed, write_modules
from safetensors.numpy import save_file
from zoo import HIDDEN, IDS, FamilyReference, write_family

from birchbark.checkpoint.checkpoint import Checkpoint
from birchbark.checkpoint.quantize import quantize_model
from birchbark.errors import CheckpointError
from birchbark.score.load_scorer import load_scorer
from birchbark.score.session import OnnxSession


def write_dense(folder: Path, outputs: int, inputs: int, activation: str, bias: bool) -> Any:
    """Write a module of type Dense; return its function in numpy."""
    random = np.random.default_rng(outputs)
    weight = random.normal(0, 0.5, (outputs, inputs)).astype(np.float32)
    tensors = {"linear.weight": weight}
    if bias:
        tensors["linear.bias"] = random.normal(0, 0.5, outputs).astype(np.float32)
    folder.mkdir()
    save_file(tensors, folder / "model.safetensors")
    config = {"activation_function": f"torch.nn.modules.{activation}"}
    (folder / "config.json").write_text(json.dumps(config))
    function = np.tanh if activation == "activation.Tanh" else np.asarray
    return lambda x: function(x @ weight.T + tensors.get("linear.bias", 0))


def test_dense_modules(tmp_path: Path) -> None:
    """Linear layers after the pooling are applied in order; each changes the fingerprint."""
    home = write_family(tmp_path / "model", "bert", None)
    first = write_dense(home / "2_Dense", 24, HIDDEN, "activation.Tanh", bias=True)
    second = write_dense(home / "3_Dense", 5, 24, "linear.Identity", bias=False)
    (home / "1_Pooling").mkdir()
    (home / "1_Pooling" / "config.json").write_text('{"pooling_mode_mean_tokens": true}')
    names = {"": "Transformer", "1_Pooling": "Pooling", "2_Dense": "Dense", "3_Dense": "Dense"}
    modules = [{"path": p, "type": f"sentence_transformers.models.{t}"} for p, t in names.items()]
    (home / "modules.json").write_text(json.dumps(modules))
    reference = FamilyReference(home, "bert")
    pooled = [reference.states(ids, [0] * len(ids))[-1].mean(0) for ids in IDS]
    expected = np.array([second(first(x)) for x in pooled])
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    checkpoint = Checkpoint.open(home)
    assert checkpoint.vector_size == 5
    vectors = OnnxSession(checkpoint).run(IDS)
    np.testing.assert_allclose(vectors, expected, rtol=0, atol=1e-5)
    alone = [OnnxSession(checkpoint, threads=1).run([ids])[0] for ids in IDS]
    assert np.array_equal(alone, vectors)  # in a batch or alone
    quantize_model(home, 8, tmp_path / "small")
    small = OnnxSession(Checkpoint.open(tmp_path / "small")).run(IDS)
    np.testing.assert_allclose(small, expected, rtol=0, atol=0.1)
    fingerprint = checkpoint.fingerprint
    (home / "3_Dense" / "config.json").write_text('{"activation_function": "torch.nn.Tanh"}')
    assert Checkpoint.open(home).fingerprint != fingerprint


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"activation_function": "torch.nn.Mish"}, "unsupported activation_function: expected Ide"),
        ({"activation_function": "x.ReLU"}, "unsupported activation_function.*found x.ReLU"),
        ({"use_residual": 2}, "unsupported use_residual: expected False or True, found 2"),
        ({"in_features": 8}, "unsupported in_features: expected 16, found 8"),
        ({"out_features": 8}, "unsupported out_features: expected 24, found 8"),
        ({"bias": False}, "unsupported bias: expected True, found False"),
        ({"module_output_name": "token_embeddings"}, "unsupported module_output_name"),
        ({"module_output_name": "scores"}, "unsupported model_type: expected CrossEncoder"),
        ({"module_input_name": "token_embeddings"}, "unsupported module_input_name"),
    ],
)
def test_unsupported_dense_modules(change: dict[str, Any], message: str, tmp_path: Path) -> None:
    """They are refused instead of being left out, as is one that reads token vectors."""
    home = write_family(tmp_path / "model", "bert", None)
    write_dense(home / "2_Dense", 24, HIDDEN, "activation.Tanh", bias=True)
    (home / "2_Dense" / "config.json").write_text(json.dumps(change))
    (home / "1_Pooling").mkdir()
    (home / "1_Pooling" / "config.json").write_text('{"pooling_mode_mean_tokens": true}')
    for order in (("", "1_Pooling", "2_Dense"), ("", "2_Dense", "1_Pooling")):
        kinds = {"": "Transformer", "1_Pooling": "Pooling", "2_Dense": "Dense"}
        modules = [{"path": p, "type": f"sentence_transformers.models.{kinds[p]}"} for p in order]
        (home / "modules.json").write_text(json.dumps(modules))
        wanted = message if order[1] == "1_Pooling" else "unsupported modules in modules.json"
        with pytest.raises(CheckpointError, match=wanted):
            Checkpoint.open(home)


@pytest.mark.parametrize(
    ("tensors", "message"),
    [
        ({}, "found None"),
        ({"norm.weight": np.ones(8), "norm.bias": np.ones(8)}, r"shape \[16\], found \[8\]"),
        ({"norm.weight": np.ones(16)}, r"norm.bias of shape \[16\], found None"),
        ({"norm.weight": np.full(16, np.nan), "norm.bias": np.ones(16)}, "not finite"),
    ],
)
def test_weights_of_layer_norm(bert: Bert, tensors: dict[str, Any], message: str) -> None:
    """Shapes are checked when the model is opened, values when they are read."""
    directory = write_modules(bert(), "Transformer Pooling LayerNorm")
    stored = {name: value.astype(np.float32) for name, value in tensors.items()}
    save_file(stored, directory / "2_LayerNorm" / "model.safetensors")
    with pytest.raises(CheckpointError, match=message):
        load_scorer(directory, 1)


def test_missing_residual(bert: Bert) -> None:
    """The matrix of a projected residual must be among the weights."""
    directory = write_modules(bert(), "Transformer Pooling Dense")
    changed(directory / "2_Dense" / "config.json", use_residual=True)
    load_scorer(directory, 1)
    weights = {"linear.weight": np.ones((4, 16), np.float32)}
    save_file(weights, directory / "2_Dense" / "model.safetensors")
    with pytest.raises(CheckpointError, match=r"dense\.0\.residual\.weight.*found none"):
        load_scorer(directory, 1)
