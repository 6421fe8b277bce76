"""Are sizes in config.json checked, and unsupported settings refused?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from damaged_models import Bert, changed, load
from zoo import write_family

from birchbark.errors import CheckpointError

WRONG = [None, True, -1, 0, 1.5, 10**30, "16", "x", [16], {}, 1e400, 7]


@pytest.mark.parametrize("value", WRONG, ids=str)
@pytest.mark.parametrize(
    "key",
    [
        "hidden_size",
        "num_hidden_layers",
        "num_attention_heads",
        "intermediate_size",
        "vocab_size",
        "max_position_embeddings",
        "type_vocab_size",
    ],
)
def test_invalid_sizes_in_the_configuration(bert: Bert, key: str, value: Any) -> None:
    """Sizes of a wrong type, out of range, or inconsistent with the weights are rejected."""
    directory = bert(labels=1)
    changed(directory / "config.json", **{key: value})
    with pytest.raises(CheckpointError, match=r"config\.json"):
        load(directory)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("model_type", None),
        ("model_type", ["bert"]),
        ("model_type", {}),
        ("hidden_act", None),
        ("hidden_act", ["gelu"]),
        ("layer_norm_eps", "small"),
        ("layer_norm_eps", -1),
        ("layer_norm_eps", float("nan")),
        ("layer_norm_eps", None),
        ("position_embedding_type", {}),
        ("num_hidden_layers", 1),
    ],
)
def test_invalid_settings_in_the_configuration(bert: Bert, key: str, value: Any) -> None:
    """Too few layers for the weights and features that the graph lacks are rejected."""
    directory = bert(labels=1)
    changed(directory / "config.json", **{key: value})
    with pytest.raises(CheckpointError, match=str(directory)):
        load(directory)


@pytest.mark.parametrize("family", ["roberta", "distilbert", "electra", "albert"])
@pytest.mark.parametrize("value", [None, "1", -1, 10**30, [1]], ids=str)
def test_invalid_sizes_of_other_families(family: str, value: Any, tmp_path: Path) -> None:
    """Each family has its own keys for them."""
    directory = write_family(tmp_path / family, family, 1)
    keys = {"roberta": "pad_token_id", "distilbert": "dim", "electra": "embedding_size"}
    changed(directory / "config.json", **{keys.get(family, "num_hidden_groups"): value})
    with pytest.raises(CheckpointError, match=r"config\.json"):
        load(directory)
