"""Are untrusted modules and settings of sentence-transformers refused before weights are read?"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from damaged_models import INPUTS, Bert, load, multi_vector, write_modules

from birchbark.checkpoint.checkpoint import Checkpoint
from birchbark.errors import CheckpointError
from birchbark.score.describe import describe
from birchbark.score.load_scorer import load_scorer


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
        Checkpoint.open(write_modules(bert(), kinds))


@pytest.mark.parametrize("kind", ["custom.Dense", "Dense", "x.sentence_transformers.Dense"])
def test_modules_with_code_of_their_own(bert: Bert, kind: str) -> None:
    """A module of another package is none of those that it is named after."""
    directory = write_modules(bert(), "Transformer Pooling Dense")
    modules = json.loads((directory / "modules.json").read_text())
    modules[2]["type"] = kind
    (directory / "modules.json").write_text(json.dumps(modules))
    with pytest.raises(CheckpointError, match=rf"unsupported module.*found {kind}"):
        Checkpoint.open(directory)


@pytest.mark.parametrize("path", ["a/b", "../x", "/etc", "x/..", "./a/b"])
def test_paths_of_modules(bert: Bert, path: str) -> None:
    """A module is in the model directory, or in a folder of it, where no file can be a pipe."""
    directory = write_modules(bert(), "Transformer Pooling Dense")
    modules = json.loads((directory / "modules.json").read_text())
    modules[2]["path"] = path
    (directory / "modules.json").write_text(json.dumps(modules))
    with pytest.raises(CheckpointError, match="module outside the model directory"):
        Checkpoint.open(directory)


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
