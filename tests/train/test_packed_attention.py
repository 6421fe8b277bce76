"""Do all ways to compute attention give the same values and gradients?"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from birchbark.train.packed_attention import (  # noqa: E402
    AttentionSettings,
    attend,
    attend_with_scores,
)
from birchbark.train.packed_inputs import Spans  # noqa: E402

HEADS, WIDTH = 3, 24
LENGTHS = [2, 5, 5, 9]
SCALE = (WIDTH / HEADS) ** -0.5
STARTS = np.cumsum([0, *LENGTHS[:-1]])


def expected(query: Any, key: Any, value: Any) -> Any:
    """Compute attention input by input and head by head, as in Vaswani et al. 2017."""
    single = len(query) < len(key)
    contexts = []
    for number, (start, length) in enumerate(zip(STARTS, LENGTHS, strict=True)):
        of_query = slice(number, number + 1) if single else slice(start, start + length)
        heads = []
        for head in range(HEADS):
            columns = slice(head * WIDTH // HEADS, (head + 1) * WIDTH // HEADS)
            q, k = query[of_query, columns], key[start : start + length, columns]
            weights = (q @ k.T / np.sqrt(WIDTH / HEADS)).softmax(-1)
            heads.append(weights @ value[start : start + length, columns])
        contexts.append(torch.cat(heads, 1))
    return torch.cat(contexts)


def compute_with_scores(*arguments: Any) -> Any:
    return attend_with_scores(*arguments)[0]


@pytest.mark.parametrize("pads", [False, True])
@pytest.mark.parametrize("compute", [attend, compute_with_scores])
@pytest.mark.parametrize("single", [False, True])
def test_attention_equals_its_definition(compute: Any, single: bool, pads: bool) -> None:
    """Inputs do not see each other; with one query for each input, only that is answered."""
    torch.manual_seed(0)
    spans = Spans.of(LENGTHS, "cpu", pads=pads)
    query, key, value = (torch.randn(sum(LENGTHS), WIDTH, requires_grad=True) for _ in range(3))
    queries = query[spans.starts] if single else query
    actual = compute(queries, key, value, spans, AttentionSettings(HEADS, 0.0, SCALE))
    wanted = expected(queries, key, value)
    torch.testing.assert_close(actual, wanted)
    for ours, theirs in zip(
        torch.autograd.grad(actual.sin().sum(), (query, key, value), retain_graph=True),
        torch.autograd.grad(wanted.sin().sum(), (query, key, value)),
        strict=True,
    ):
        torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize("compute", [attend, compute_with_scores])
def test_attention_weights_are_dropped(compute: Any) -> None:
    """About as many are dropped as asked for; the others are scaled, so that their mean stays."""
    torch.manual_seed(0)
    spans = Spans.of([4] * 2000, "cpu")
    query, key = (torch.zeros(8000, 1) for _ in range(2))
    dropped = compute(query, key, torch.ones(8000, 1), spans, AttentionSettings(1, 0.25, 1.0))
    assert set(np.round(np.unique(dropped) * 3).astype(int)) == {0, 1, 2, 3, 4}
    assert float(dropped.mean()) == pytest.approx(1, abs=0.02)


def test_blocks_on_a_gpu_hold_inputs_of_similar_length() -> None:
    """All of at most 64 tokens, then up to twice the shortest; equal lengths need no padding."""
    spans = Spans.of([3, 64, 65, 130, 131, 131], "cpu", pads=True)
    found = [(block.inputs, block.length, block.tokens) for block in spans.blocks]
    assert found == [(2, 64, 67), (2, 130, 195), (2, 131, 262)]
    assert [block.padding is None for block in spans.blocks] == [False, False, True]
    unpadded = Spans.of([3, 64, 64], "cpu").blocks
    assert [(b.inputs, b.length, b.padding) for b in unpadded] == [(1, 3, None), (2, 64, None)]
