"""Is a checkpoint in several safetensors files the same checkpoint?"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from birchbark.checkpoint.reader import Checkpoint
from birchbark.errors import CheckpointError
from birchbark.score.model import load_scorer
from birchbark.score.session import Session

Bert = Callable[..., Path]
IDS, TYPES = [np.array([2, 5, 6, 3, 7, 3])], [np.array([0, 0, 0, 0, 1, 1])]
SHARDS = [f"model-0000{i}-of-00003.safetensors" for i in (1, 2, 3)]
INDEX = "model.safetensors.index.json"


def split(directory: Path) -> Path:
    """The weights of `directory` in three files and an index, as transformers saves large ones."""
    whole = directory / "model.safetensors"
    tensors = load_file(whole)
    place = {name: SHARDS[i % 3] for i, name in enumerate(tensors)}
    for shard in SHARDS:
        part = {name: value for name, value in tensors.items() if place[name] == shard}
        save_file(part, directory / shard)
    whole.unlink()
    (directory / INDEX).write_text(json.dumps({"metadata": {}, "weight_map": place}))
    return directory


def run(directory: Path) -> np.ndarray:
    return Session(Checkpoint.open(directory), 1).run(IDS, TYPES)


@pytest.mark.parametrize("labels", [None, 1])
def test_shards_score_as_the_whole(bert: Bert, labels: int | None) -> None:
    """To the last bit."""
    assert np.array_equal(run(split(bert(labels=labels))), run(bert(labels=labels)))


def test_every_shard_is_in_the_fingerprint(bert: Bert) -> None:
    """Other weights in any of them, other scores."""
    seen = {Checkpoint.open(split(bert())).fingerprint}
    for shard in SHARDS:
        directory = split(bert())
        tensors = load_file(directory / shard)
        save_file({name: value + 1 for name, value in tensors.items()}, directory / shard)
        seen.add(Checkpoint.open(directory).fingerprint)
    assert len(seen) == 4


@pytest.mark.parametrize("shard", SHARDS)
def test_missing_and_cut_off_shards_are_told(bert: Bert, shard: str) -> None:
    """By name, with how many there should be."""
    directory = split(bert())
    whole = (directory / shard).read_bytes()
    (directory / shard).unlink()
    with pytest.raises(CheckpointError, match=rf"no {shard}.*all 3 files of {INDEX}"):
        load_scorer(directory)
    for length in (0, 7, 100, len(whole) - 1):
        (directory / shard).write_bytes(whole[:length])
        with pytest.raises(CheckpointError, match=rf"{shard}: damaged weights"):
            load_scorer(directory)


def test_a_shard_of_another_model_is_told(bert: Bert) -> None:
    """It has not the tensors that the index promises."""
    directory = split(bert())
    (directory / SHARDS[1]).write_bytes((directory / SHARDS[0]).read_bytes())
    with pytest.raises(CheckpointError, match=rf"{SHARDS[1]}: damaged weights: .* is not in this"):
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
        [],
    ],
)
def test_an_index_that_is_none_is_told(bert: Bert, listed: object) -> None:
    """Nor does it lead out of its directory."""
    directory = split(bert())
    (directory / INDEX).write_text(json.dumps(listed))
    with pytest.raises(CheckpointError, match=INDEX.replace(".", r"\.")):
        load_scorer(directory)


def test_one_file_goes_before_shards(bert: Bert) -> None:
    """As transformers chooses where both are there."""
    directory = bert()
    before = Checkpoint.open(directory).fingerprint
    (directory / INDEX).write_text("{}")
    assert Checkpoint.open(directory).fingerprint == before
