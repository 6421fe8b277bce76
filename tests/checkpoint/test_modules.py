"""Are untrusted modules and settings of sentence-transformers refused before weights are read?"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from damaged_models import load
from safetensors.numpy import save_file

from birchbark.checkpoint.checkpoint import Checkpoint
from birchbark.checkpoint.heads import Pooling
from birchbark.checkpoint.pool import pool_model
from birchbark.checkpoint.prompts import Prompts
from birchbark.errors import CheckpointError, InputError
from birchbark.score.describe import describe
from birchbark.score.load_scorer import load_scorer

Bert = Callable[..., Path]
SETTINGS, INPUTS = "config_sentence_transformers.json", "sentence_bert_config.json"


def write(directory: Path, kinds: str, **settings: Any) -> Path:
    """Write modules.json of these kinds, with weights of 16 dimensions, and the settings."""
    modules = []
    for number, kind in enumerate(kinds.split()):
        name = f"{number}_{kind}" if number else ""
        modules.append({"path": name, "type": f"sentence_transformers.models.{kind}"})
        if number and not (directory / name).exists():
            (directory / name).mkdir()
            (directory / name / "config.json").write_text("{}")
        values = {
            "Dense": {"linear.weight": np.eye(16), "linear.bias": np.ones(16)},
            "LayerNorm": {"norm.weight": np.ones(16), "norm.bias": np.zeros(16)},
        }.get(kind)
        if values:
            tensors = {key: value.astype(np.float32) for key, value in values.items()}
            save_file(tensors, directory / name / "model.safetensors")
    (directory / "modules.json").write_text(json.dumps(modules))
    (directory / SETTINGS).write_text(json.dumps(settings))
    return directory


def changed(path: Path, **values: Any) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


MULTI = "Transformer Dense MultiVectorMask Normalize"


def multi_vector(directory: Path, **settings: Any) -> Path:
    write(directory, MULTI, **{"model_type": "MultiVectorEncoder"} | settings)
    changed(directory / "1_Dense" / "config.json", module_input_name="token_embeddings")
    changed(directory / "3_Normalize" / "config.json", module_input_name="token_embeddings")
    return directory


@pytest.mark.parametrize(
    "kinds",
    [
        "Pooling Transformer",
        "Transformer Transformer",
        "Transformer Dense",
        "Transformer Normalize",
        "Transformer Dense Pooling",
        "Transformer Pooling Pooling",
        "Transformer Pooling Dense MultiVectorMask",
        "Transformer Pooling WeightedLayerPooling",
        "Transformer Pooling LSTM",
        "Transformer SpladePooling",
    ],
)
def test_unsupported_modules(bert: Bert, kinds: str) -> None:
    """Unknown modules and orders are refused by name."""
    with pytest.raises(CheckpointError, match=r"unsupported modules? in modules\.json"):
        Checkpoint.open(write(bert(), kinds))


@pytest.mark.parametrize("kind", ["custom.Dense", "Dense", "x.sentence_transformers.Dense"])
def test_modules_with_code_of_their_own(bert: Bert, kind: str) -> None:
    """A module of another package is none of those that it is named after."""
    directory = write(bert(), "Transformer Pooling Dense")
    modules = json.loads((directory / "modules.json").read_text())
    modules[2]["type"] = kind
    (directory / "modules.json").write_text(json.dumps(modules))
    with pytest.raises(CheckpointError, match=rf"unsupported module.*found {kind}"):
        Checkpoint.open(directory)


@pytest.mark.parametrize("path", ["a/b", "../x", "/etc", "x/..", "./a/b"])
def test_paths_of_modules(bert: Bert, path: str) -> None:
    """A module is in the model directory, or in a folder of it, where no file can be a pipe."""
    directory = write(bert(), "Transformer Pooling Dense")
    modules = json.loads((directory / "modules.json").read_text())
    modules[2]["path"] = path
    (directory / "modules.json").write_text(json.dumps(modules))
    with pytest.raises(CheckpointError, match="module outside the model directory"):
        Checkpoint.open(directory)


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
    directory = write(bert(), "Transformer Pooling LayerNorm")
    stored = {name: value.astype(np.float32) for name, value in tensors.items()}
    save_file(stored, directory / "2_LayerNorm" / "model.safetensors")
    with pytest.raises(CheckpointError, match=message):
        load_scorer(directory, 1)


def test_missing_residual(bert: Bert) -> None:
    """The matrix of a projected residual must be among the weights."""
    directory = write(bert(), "Transformer Pooling Dense")
    changed(directory / "2_Dense" / "config.json", use_residual=True)
    load_scorer(directory, 1)
    weights = {"linear.weight": np.ones((4, 16), np.float32)}
    save_file(weights, directory / "2_Dense" / "model.safetensors")
    with pytest.raises(CheckpointError, match=r"dense\.0\.residual\.weight.*found none"):
        load_scorer(directory, 1)


def test_a_model_with_a_vector_per_token(bert: Bert) -> None:
    """It needs no option, and its layers are used; a pooling that is named replaces them."""
    directory = multi_vector(bert())
    scorer = load_scorer(directory, 1)
    assert (scorer.kind, scorer.token_budget("bee")) == ("late-interaction", 30)
    assert "late interaction of tokens and Dense" in str(describe(directory, "m"))
    other = load_scorer(directory, 1, "tokens")
    texts = scorer.encode(["bee dance", "river"])
    assert not np.allclose(scorer.score("bee", texts), other.score("bee", texts))
    assert load_scorer(directory, 1, "mean").kind == "embedding"


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({"query_expansion": 7}, "unsupported query_expansion"),
        ({"query_expansion": {"strategy": "min", "length": 0}}, "length of query_expansion"),
        ({"query_expansion": {"strategy": "min", "length": True}}, "length of query_expansion"),
        ({"query_expansion": {"strategy": "min", "length": 2**40}}, "length of query_expansion"),
        ({"query_expansion": {"strategy": "min", "length": 8, "attend": 3}}, "unsupported attend"),
        ({"query_expansion": {"strategy": "min", "length": 8, "token": []}}, "no mask_token"),
        ({"query_expansion": {"strategy": "min", "length": 8, "token": [1]}}, "unsupported token"),
        ({"query_expansion": {"strategy": "min", "length": 8, "token": "x"}}, "unknown token"),
        ({"query_expansion": {"strategy": "fixed", "length": 2}}, "leaves no room for a text"),
        ({"query_length": 2}, "leaves no room for a text"),
        ({"document_length": "x"}, "invalid value of document_length"),
    ],
)
def test_invalid_inputs(bert: Bert, inputs: dict[str, Any], message: str) -> None:
    """Expansions that are unknown, impossible or huge are refused."""
    directory = multi_vector(bert())
    (directory / INPUTS).write_text(json.dumps(inputs))
    (directory / "tokenizer_config.json").write_text('{"mask_token": "[MASK]"}')
    with pytest.raises(CheckpointError, match=message.replace("no mask_token", "token")):
        load_scorer(directory, 1)


def test_an_expansion_without_a_token(bert: Bert) -> None:
    """The mask token must be stated, in one of two forms."""
    directory = multi_vector(bert())
    (directory / INPUTS).write_text('{"query_expansion": {"strategy": "min", "length": 8}}')
    with pytest.raises(CheckpointError, match="a token, or mask_token"):
        load_scorer(directory, 1)
    for value in ("[MASK]", {"content": "[MASK]"}):
        (directory / "special_tokens_map.json").write_text(json.dumps({"mask_token": value}))
        assert load_scorer(directory, 1).kind == "late-interaction"


@pytest.mark.parametrize("key", ["query_length", "document_length", "query_expansion"])
def test_settings_of_queries_elsewhere(bert: Bert, key: str) -> None:
    """An embedding model whose queries would be truncated or extended is refused."""
    directory = bert()
    (directory / INPUTS).write_text(json.dumps({key: None}))
    load_scorer(directory, 1)
    (directory / INPUTS).write_text(json.dumps({key: 9}))
    with pytest.raises(CheckpointError, match=f"unsupported {key}: expected none, found 9"):
        load_scorer(directory, 1)


def test_pooled_models_are_embedding_models(bert: Bert, tmp_path: Path) -> None:
    """A pooled copy keeps the prompts, and nothing of the model's own modules."""
    directory = multi_vector(bert(), prompts={"query": "river "})
    pool_model(directory, Pooling("mean"), tmp_path / "pooled")
    pooled = Checkpoint.open(tmp_path / "pooled")
    assert pooled.head == Pooling("mean", 2)
    assert pooled.prompts == Prompts("river ", "")
    pylate = {"model_type": "ColBERT", "query_prefix": "[Q] ", "do_query_expansion": False}
    marked = write(bert(), "Transformer Dense", **pylate)
    with pytest.raises(InputError, match="prompts are tokens of a model with a vector per token"):
        pool_model(marked, Pooling("mean"), tmp_path / "other")


def test_fingerprints_tell_the_order_of_modules(bert: Bert, tmp_path: Path) -> None:
    """Each order of the same modules has another; a last Normalize is that of every embedding."""
    kinds = ("Normalize", "LayerNorm Normalize", "Normalize LayerNorm Normalize")
    prints = []
    for number, kind in enumerate(("", *kinds)):
        copy = tmp_path / str(number)
        shutil.copytree(bert(), copy)
        prints.append(Checkpoint.open(write(copy, f"Transformer Pooling {kind}")).fingerprint)
    plain, normalised, *others = prints
    assert plain == normalised
    assert len({plain, *others}) == 3


def test_fingerprints_tell_the_pooling_of_a_cross_encoder(bert: Bert, tmp_path: Path) -> None:
    """Its mode is in a file that weights and config.json do not know."""
    prints = set()
    for mode in ("mean", "cls"):
        copy = tmp_path / mode
        shutil.copytree(bert(), copy)
        write(copy, "Transformer Pooling Dense", model_type="CrossEncoder")
        changed(copy / "1_Pooling" / "config.json", pooling_mode=mode)
        changed(copy / "2_Dense" / "config.json", module_output_name="scores")
        tensors = {
            "linear.weight": np.ones((1, 16), np.float32),
            "linear.bias": np.ones(1, np.float32),
        }
        save_file(tensors, copy / "2_Dense" / "model.safetensors")
        prints.add(Checkpoint.open(copy).fingerprint)
    assert len(prints) == 2


@pytest.mark.parametrize(
    "modules",
    [
        [7],
        [{"path": "x"}],
        [{"type": "a.Transformer", "path": "/etc"}],
        [{"type": "a.Transformer", "path": "../.."}],
        [{"type": "a.Transformer", "path": ["x"]}],
        *(
            [{"type": "sentence_transformers.models.Transformer", "path": path}]
            for path in ("9" * 1000, "a\0b", "\ud800")
        ),
        {"type": "a.Transformer"},
    ],
)
def test_invalid_lists_of_modules(bert: Bert, modules: Any) -> None:
    """A module's path must not lead out of the directory, and be one that a folder can have."""
    directory = bert()
    (directory / "modules.json").write_text(json.dumps(modules))
    with pytest.raises(CheckpointError, match=str(directory)):
        load(directory)
