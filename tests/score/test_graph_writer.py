"""Are linear layers split, joined and scaled as their products are?"""

from __future__ import annotations

import numpy as np
import pytest

from birchbark.errors import CheckpointError
from birchbark.score.graph_writer import Graph, Linear

WEIGHT = np.arange(8, dtype=np.float32).reshape(4, 2)
BIAS = np.array([1, 2, 3, 4], np.float32)


def test_a_layer_is_split_into_equal_shares_and_joined_again() -> None:
    """Each share has its own name; a layer without a bias has shares without one."""
    first, second = Linear("qk", WEIGHT, BIAS).split(2)
    assert (first.name, second.name) == ("qk 1", "qk 2")
    assert second.weight.tolist() == [[4, 5], [6, 7]]
    assert second.bias is not None
    assert second.bias.tolist() == [3, 4]
    joined = Linear.join([first, second])
    assert joined.name == "qk 1 + qk 2"
    np.testing.assert_array_equal(joined.weight, WEIGHT)
    np.testing.assert_array_equal(joined.bias, BIAS)
    shares = Linear("qk", WEIGHT, None).split(2)
    assert Linear.join(shares).bias is None


def test_a_scaled_layer_has_scaled_outputs() -> None:
    """The bias is scaled as well."""
    layer = Linear("q", WEIGHT, BIAS).scaled(np.float32(0.5))
    assert layer.weight.tolist() == (WEIGHT / 2).tolist()
    assert layer.bias is not None
    assert layer.bias.tolist() == [0.5, 1, 1.5, 2]


def test_a_weight_is_added_once() -> None:
    """Layers that share weights refer to them by the same name."""
    graph = Graph({}, "model")
    assert graph.weight(WEIGHT, "shared") == graph.weight(WEIGHT, "shared") == "shared"
    assert list(graph.weights) == ["shared"]
    assert len(graph.constants) == 1


def test_a_bias_may_be_missing_only_where_it_is_optional() -> None:
    """Otherwise the error names it."""
    tensors = {"out.weight": WEIGHT}
    assert Graph(tensors, "model", optional_biases=True).linear_layer("out", 4, 2).bias is None
    with pytest.raises(CheckpointError, match=r"weights out\.bias do not fit config\.json"):
        Graph(tensors, "model").linear_layer("out", 4, 2)
