"""Are positions of ModernBERT and DeBERTa read from config.json, and unsupported ones refused?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from zoo import write_family

from birchbark.checkpoint.checkpoint import Checkpoint
from birchbark.checkpoint.positions import RelativePositions, RotaryPositions
from birchbark.errors import CheckpointError


def opened(directory: Path, family: str, **settings: Any) -> Checkpoint:
    path = write_family(directory / family, family, 1) / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | settings))
    return Checkpoint.open(directory / family)


def test_layers_are_global_or_local(tmp_path: Path) -> None:
    """Every n-th layer is global; newer files list the layers, and have angles per kind."""
    rotary = opened(tmp_path / "a", "modernbert").config.rotary
    assert rotary == RotaryPositions((160_000.0, 10_000.0, 160_000.0), (0, 4, 0))
    kinds = ["sliding_attention", "full_attention", "sliding_attention"]
    listed = opened(
        tmp_path / "b",
        "modernbert",
        layer_types=kinds,
        rope_parameters={"full_attention": {"rope_type": "default", "rope_theta": 80}},
        local_rope_theta=20,
    ).config.rotary
    assert listed == RotaryPositions((20.0, 80.0, 20.0), (4, 0, 4))
    assert listed.kinds == kinds
    assert listed.of_layers((1,)) == RotaryPositions((80.0,), (0,))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"global_attn_every_n_layers": 0}, "global_attn_every_n_layers: expected an integer"),
        ({"layer_types": ["full_attention"]}, "layer_types: expected 3 times full_attention"),
        ({"local_attention": 1}, "local_attention: expected an integer from 2, found 1"),
        ({"global_rope_theta": "x"}, "global_rope_theta: expected a number above 1, found x"),
        (
            {"global_rope_theta": 10**400},
            "global_rope_theta: expected a number above 1, found 1000",
        ),
        ({"rope_scaling": {"factor": 2}}, "rope_scaling: expected none"),
        ({"classifier_pooling": "max"}, "classifier_pooling: expected cls or mean, found max"),
        ({"classifier_activation": "silu"}, "classifier_activation: expected gelu or"),
        ({"num_attention_heads": 16}, "sizes in config.json contradict each other"),
    ],
)
def test_unsupported_settings_of_modernbert(
    settings: dict[str, Any], message: str, tmp_path: Path
) -> None:
    """They are refused instead of being ignored."""
    with pytest.raises(CheckpointError, match=message):
        opened(tmp_path, "modernbert", **settings)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"relative_attention": False}, "relative_attention: expected True, found False"),
        ({"position_biased_input": True}, "position_biased_input: expected False, found True"),
        ({"share_att_key": False}, "share_att_key: expected True"),
        ({"pos_att_type": ["c2p"]}, "pos_att_type"),
        ({"conv_kernel_size": 3}, "conv_kernel_size: expected 0, found 3"),
        ({"norm_rel_ebd": "rms"}, "norm_rel_ebd: expected layer_norm or none, found rms"),
        ({"position_buckets": 2}, "position_buckets: expected -1, or an integer from 4"),
        ({"max_relative_positions": "x"}, "max_relative_positions: expected -1"),
    ],
)
def test_unsupported_settings_of_deberta(
    settings: dict[str, Any], message: str, tmp_path: Path
) -> None:
    """They are refused instead of being ignored."""
    with pytest.raises(CheckpointError, match=message):
        opened(tmp_path, "deberta-v2", **settings)


def test_distances_beyond_the_buckets_share_embeddings() -> None:
    """Near distances have a row each; row `span` is distance 0."""
    relative = RelativePositions(span=8, buckets=8, longest=34, normalised=True)
    rows = relative.rows(34).tolist()
    assert rows[33] == 8
    assert rows[34:39] == [9, 10, 11, 12, 13]
    assert rows == sorted(rows)
    assert (rows[0], rows[-1]) == (1, 15)
    unshared = RelativePositions(span=34, buckets=0, longest=34, normalised=True)
    assert unshared.rows(34).tolist() == list(range(1, 68))
