"""Is a model in several safetensors files equal to the same model in one?"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from birchbark.checkpoint.checkpoint import Checkpoint
from birchbark.errors import CheckpointError
from birchbark.score.load_scorer import load_scorer
from birchbark.score.session import OnnxSession

Bert = Callable[..., Path]
IDS, TYPES = [np.array([2, 5, 6, 3, 7, 3])], [np.array([0, 0, 0, 0, 1, 1])]
SHARDS = [f"model-0000{i}-of-00003.safetensors" for i in (1, 2, 3)]
INDEX = "model.safetensors.index.json"


def split(directory: Path) -> Path:
    """Split the weights of `directory` into three files with an index, as transformers does."""
    weights = directory / "model.safetensors"
    tensors = load_file(weights)
    weight_map = {name: SHARDS[i % 3] for i, name in enumerate(tensors)}
    for shard in SHARDS:
        save_file({n: v for n, v in tensors.items() if weight_map[n] == shard}, directory / shard)
    weights.unlink()
    (directory / INDEX).write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))
    return directory


def run(directory: Path) -> np.ndarray:
    return OnnxSession(Checkpoint.open(directory), 1).run(IDS, TYPES)


@pytest.mark.parametrize("labels", [None, 1])
def test_shards_score_as_one_file(bert: Bert, labels: int | None) -> None:
    """Scores from shards and from one file are equal to the last bit."""
    assert np.array_equal(run(split(bert(labels=labels))), run(bert(labels=labels)))


def test_every_shard_is_in_the_fingerprint(bert: Bert) -> None:
    """Changing the weights in any shard changes the fingerprint."""
    seen = {Checkpoint.open(split(bert())).fingerprint}
    for shard in SHARDS:
        directory = split(bert())
        tensors = load_file(directory / shard)
        save_file({name: value + 1 for name, value in tensors.items()}, directory / shard)
        seen.add(Checkpoint.open(directory).fingerprint)
    assert len(seen) == 4


@pytest.mark.parametrize("shard", SHARDS)
def test_missing_and_truncated_shards_are_rejected(bert: Bert, shard: str) -> None:
    """The error names the shard, and for a missing one the number of shards."""
    directory = split(bert())
    content = (directory / shard).read_bytes()
    (directory / shard).unlink()
    with pytest.raises(CheckpointError, match=rf"no {shard}.*all 3 files of {INDEX}"):
        load_scorer(directory)
    for length in (0, 7, 100, len(content) - 1):
        (directory / shard).write_bytes(content[:length])
        with pytest.raises(CheckpointError, match=rf"{shard}: damaged weights"):
            load_scorer(directory)


def test_a_shard_of_another_model_is_rejected(bert: Bert) -> None:
    """A shard that lacks tensors listed in the index is rejected."""
    directory = split(bert())
    (directory / SHARDS[1]).write_bytes((directory / SHARDS[0]).read_bytes())
    with pytest.raises(CheckpointError, match=rf"{SHARDS[1]}: damaged weights: this file lacks"):
        load_scorer(directory)


@pytest.mark.parametrize(
    "listed",
    [
        {},
        {"weight_map": {}},
        {"weight_map": []},
        {"weight_map": {"x": None}},
        {"weight_map": {"x": "../model.safetensors"}},
        {"weight_map": {"x": "/etc/passwd"}},
        {"weight_map": {"x": ""}},
        {"weight_map": {"x": ".."}},
        {"weight_map": {"x": "9" * 1000}},
        {"weight_map": {"x": "a\0b"}},
        [],
    ],
)
def test_an_invalid_index_is_rejected(bert: Bert, listed: object) -> None:
    """Its paths must not lead out of the directory."""
    directory = split(bert())
    (directory / INDEX).write_text(json.dumps(listed))
    with pytest.raises(CheckpointError, match=INDEX.replace(".", r"\.")):
        load_scorer(directory)


def test_one_file_takes_precedence_over_shards(bert: Bert) -> None:
    """If both exist, the single file is read, as in transformers."""
    directory = bert()
    before = Checkpoint.open(directory).fingerprint
    (directory / INDEX).write_text("{}")
    assert Checkpoint.open(directory).fingerprint == before
