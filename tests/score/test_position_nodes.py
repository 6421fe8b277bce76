"""Do positions enter attention as their formulas say?"""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from zoo import FAMILIES, write_family

from birchbark.checkpoint.checkpoint import Checkpoint
from birchbark.checkpoint.encoder_config import EncoderConfig
from birchbark.checkpoint.positions import RotaryPositions
from birchbark.score.graph_writer import Graph, Linear
from birchbark.score.position_nodes import (
    Positions,
    Relative,
    Rotary,
    Unattended,
    positions_in_attention,
)
from birchbark.score.runtime import open_graph

NONE = Linear("none", np.zeros((1, 1), np.float32), None)


def computed(graph: Graph, result: str, **feed: Any) -> Any:
    """Return what the graph computes from these inputs."""
    from onnx import TensorProto, helper

    graph.name_output(result, "out")
    inputs = [
        helper.make_tensor_value_info(
            name, TensorProto.INT64 if value.dtype == np.int64 else TensorProto.FLOAT, value.shape
        )
        for name, value in feed.items()
    ]
    out = helper.make_tensor_value_info("out", TensorProto.FLOAT, None)
    session = open_graph(graph.serialize("test", inputs, [out]), graph.weights)
    return session.run(["out"], feed)[0]


@pytest.fixture
def config(tmp_path: Path) -> EncoderConfig:
    """One head of two dimensions, of which the first pair turns by 1 for each position."""
    config = Checkpoint.open(write_family(tmp_path / "m", "modernbert", 1)).config
    return replace(config, hidden=2, heads=1, rotary=RotaryPositions((10.0, 10.0), (0, 1)))


def test_tokens_that_are_not_attended_to_have_no_weight() -> None:
    """The scores of all others stay as they are."""
    graph = Graph({}, "model")
    positions = Unattended(graph, Positions(), "types")
    scores = np.arange(6, dtype=np.float32).reshape(1, 1, 2, 3)
    adjusted = positions.adjust("scores", "q", "k")
    found = computed(graph, adjusted, scores=scores, types=np.array([[0, 1, 0]]))
    assert found.tolist() == [[[[0, -math.inf, 2], [3, -math.inf, 5]]]]


def test_vectors_turn_with_their_position(config: EncoderConfig) -> None:
    """The first position does not turn, and [CLS] alone is there."""
    assert config.rotary
    graph = Graph({}, "model")
    rotary = Rotary(graph, config, config.rotary)
    rotary.enter_layer(0, NONE, NONE, cls_only=True)
    assert rotary.rotate_queries("x") == "x"
    rotary.enter_layer(0, NONE, NONE, cls_only=False)
    x = np.array([1, 0], np.float32) * np.ones((1, 3, 1, 1), np.float32)
    found = computed(graph, rotary.rotate("x"), x=x, ids=np.zeros((1, 3), np.int64))
    expected = [[math.cos(n), math.sin(n)] for n in range(3)]
    np.testing.assert_allclose(found[0, :, 0], expected, atol=1e-6)


def test_local_layers_see_a_window(config: EncoderConfig) -> None:
    """Global layers see everything."""
    assert config.rotary
    graph = Graph({}, "model")
    rotary = Rotary(graph, config, config.rotary)
    rotary.enter_layer(0, NONE, NONE, cls_only=False)
    assert rotary.adjust("scores", "q", "k") == "scores"
    rotary.enter_layer(1, NONE, NONE, cls_only=False)
    adjusted = rotary.adjust("scores", "q", "k")
    scores, ids = np.zeros((1, 1, 3, 3), np.float32), np.zeros((1, 3), np.int64)
    found = computed(graph, adjusted, scores=scores, ids=ids)
    assert (found[0, 0] == 0).tolist() == [[1, 1, 0], [1, 1, 1], [0, 1, 1]]


@pytest.mark.parametrize("family", FAMILIES)
def test_each_family_has_its_kind_of_positions(family: str, tmp_path: Path) -> None:
    """In most of them, attention has nothing to do with positions."""
    checkpoint = Checkpoint.open(write_family(tmp_path / family, family, 1))
    graph = Graph(checkpoint.tensors(), "model")
    found = positions_in_attention(graph, checkpoint.family.names, checkpoint.config)
    assert type(found) is {"modernbert": Rotary, "deberta-v2": Relative}.get(family, Positions)
