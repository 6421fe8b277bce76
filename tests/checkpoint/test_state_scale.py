"""Does a copy of a model state a scale, and is it else the same?"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from birchbark.checkpoint.checkpoint import Checkpoint
from birchbark.checkpoint.score_scale import ScoreScale
from birchbark.checkpoint.state_scale import copy_with_scale
from birchbark.errors import InputError


def test_a_copy_states_the_scale(bert: Callable[..., Path], tmp_path: Path) -> None:
    """What else the model states for Birchbark stays, and so do its outputs."""
    model = bert(labels=1)
    config = json.loads((model / "config.json").read_text())
    config["birchbark"] = {"temperature": 2.0, "embedding_weight": 0.7}
    (model / "config.json").write_text(json.dumps(config))
    (model / ".hidden").write_text("x")
    copy_with_scale(model, ScoreScale(0.5, 3.0), tmp_path / "copy")
    copied = Checkpoint.open(tmp_path / "copy")
    assert copied.scale == ScoreScale(0.5, 3.0, stated=True)
    assert copied.embedding_weight == 0.7
    assert copied.outputs_fingerprint == Checkpoint.open(model).outputs_fingerprint
    assert not (tmp_path / "copy" / ".hidden").exists()


def test_nothing_is_overwritten_unasked(bert: Callable[..., Path], tmp_path: Path) -> None:
    """Asked, a model replaces a model."""
    model = bert()
    copy_with_scale(model, ScoreScale(0.5), tmp_path / "copy")
    with pytest.raises(InputError, match="exists"):
        copy_with_scale(model, ScoreScale(0.6), tmp_path / "copy")
    copy_with_scale(model, ScoreScale(0.6), tmp_path / "copy", replace=True)
    assert Checkpoint.open(tmp_path / "copy").scale.shift == 0.6
