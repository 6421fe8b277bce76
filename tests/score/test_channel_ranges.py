"""Are the largest values of each channel found, stored, and used for the same weights alone?"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from birchbark.artifact import fingerprint
from birchbark.checkpoint.checkpoint import Checkpoint
from birchbark.checkpoint.heads import Pooling
from birchbark.errors import CheckpointError
from birchbark.score.channel_ranges import MADE_OF, STORED, channel_maxima, store_channel_maxima
from birchbark.score.load_scorer import load_scorer

Bert = Callable[..., Path]


def test_every_linear_layer_has_a_value_for_each_input(bert: Bert) -> None:
    """They are the same each time; pooled embeddings (layer 0) need none."""
    directory = bert(layers=2)
    maxima = channel_maxima(Checkpoint.open(directory))
    assert len(maxima) == 2 * 4
    assert {value.shape for value in maxima.values()} == {(16,), (24,)}
    again = channel_maxima(Checkpoint.open(directory))
    assert all(np.array_equal(maxima[name], again[name]) for name in maxima)
    assert channel_maxima(Checkpoint.open(directory, pooling=Pooling("cls", 0))) == {}


def test_stored_values_are_used_for_their_weights(bert: Bert) -> None:
    """For other weights they are computed again."""
    checkpoint = Checkpoint.open(bert(layers=1))
    computed = channel_maxima(checkpoint)
    store_channel_maxima(checkpoint)
    stored = channel_maxima(checkpoint)
    assert stored.keys() == computed.keys()
    assert all(np.array_equal(stored[name], computed[name]) for name in stored)
    negative = {name: -value for name, value in computed.items()}
    made_of = {MADE_OF: fingerprint(checkpoint.directory / "model.safetensors")}
    save_file(negative, checkpoint.directory / STORED, made_of)
    assert all((value >= 0).all() for value in channel_maxima(checkpoint).values())
    store_channel_maxima(checkpoint)
    weights = checkpoint.directory / "model.safetensors"
    save_file({name: 2 * value for name, value in load_file(weights).items()}, weights)
    changed = channel_maxima(checkpoint)
    assert not all(np.array_equal(changed[name], computed[name]) for name in changed)


@pytest.mark.parametrize("pooling", ["mean", "max", "tokens"])
def test_another_pooling_has_values_of_its_own(bert: Bert, pooling: str) -> None:
    """A cross-encoder computes its last layer for [CLS] alone, and joins other layers."""
    directory = bert(layers=2, labels=1)
    store_channel_maxima(Checkpoint.open(directory))
    scorers = [load_scorer(directory, pooling=pooling, precision="int8")]
    (directory / STORED).unlink()
    scorers += [load_scorer(directory, pooling=pooling, precision="int8")]
    with_file, without = (s.score("bee dance", [np.array([5, 6, 7], np.int32)]) for s in scorers)
    assert np.array_equal(with_file, without)


def test_a_damaged_file_is_told(bert: Bert) -> None:
    """It can be deleted, for its contents are computed then."""
    checkpoint = Checkpoint.open(bert(layers=1))
    (checkpoint.directory / STORED).write_bytes(b"damaged")
    with pytest.raises(CheckpointError, match=r"damaged file.*delete it"):
        channel_maxima(checkpoint)
