"""How many tokens does a model read at once, by its files?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from damaged_models import Bert, load

from birchbark.checkpoint.checkpoint import Checkpoint
from birchbark.checkpoint.locate import locate
from birchbark.checkpoint.tokenizer import CheckpointTokenizer
from birchbark.checkpoint.transformer_module import tokenizer_states_length
from birchbark.errors import CheckpointError
from birchbark.score.load_scorer import load_scorer
from conftest import write_bert

POSITIONS = 64


def state(directory: Path, name: str, **values: object) -> Checkpoint:
    path = directory / name
    stated = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps(stated | values))
    return Checkpoint.open(directory)


@pytest.mark.parametrize(
    ("stated", "length"),
    [(40, 40), (64, 64), (512, 64), (10**30, 64), (0, 64), (None, 64), ("40", 64)],
)
def test_the_tokeniser_may_state_fewer_than_the_encoder(
    tmp_path: Path, stated: object, length: int
) -> None:
    """A length above that of the encoder, or that is no number, has no effect."""
    model = write_bert(tmp_path / "bert", labels=1, positions=POSITIONS)
    checkpoint = state(model, "tokenizer_config.json", model_max_length=stated)
    assert checkpoint.max_length == length
    assert load_scorer(model).token_budget("birch") == length - 3 - (length - 3) // 5


def test_the_module_states_it_before_the_tokeniser(tmp_path: Path) -> None:
    """The module's own length counts, even if it is larger."""
    model = write_bert(tmp_path / "bert", positions=POSITIONS)
    state(model, "tokenizer_config.json", model_max_length=40)
    assert state(model, "sentence_bert_config.json", max_seq_length=50).max_length == 50


def test_stored_scores_are_of_the_stated_length(tmp_path: Path) -> None:
    """A length that changes nothing leaves them valid."""
    model = write_bert(tmp_path / "bert", labels=1, positions=POSITIONS)
    CheckpointTokenizer(Checkpoint.open(model)).save(model / "tokenizer.json")
    before = Checkpoint.open(model).fingerprint
    assert state(model, "tokenizer_config.json", model_max_length=512).fingerprint == before
    assert state(model, "tokenizer_config.json", model_max_length=40).fingerprint != before


@pytest.mark.parametrize("name", ["birchbark-minilm-l6", "birchbark-minilm-l3"])
def test_default_models_read_what_their_encoder_can(name: str) -> None:
    """So scores that were stored before lengths were read remain valid."""
    directory = locate(name)
    assert not tokenizer_states_length(directory, Checkpoint.open(directory).config)


@pytest.mark.parametrize("length", ["x", -1, 0, 2, 1.5, [64], True], ids=str)
def test_invalid_maximum_lengths(bert: Bert, length: Any) -> None:
    """Wrong types, and lengths that leave no room for text, are rejected."""
    directory = bert()
    (directory / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": length}))
    with pytest.raises(CheckpointError, match=r"max_seq_length|too short for any text"):
        load(directory)
