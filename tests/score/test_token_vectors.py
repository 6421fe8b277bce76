"""Are rounded token vectors compared exactly, and the same way wherever they come from?"""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from birchbark.checkpoint.score_scale import ScoreScale
from birchbark.checkpoint.weights import quantize_rows
from birchbark.errors import ArtifactError, InputError
from birchbark.score.late_interaction import LateInteractionScorer
from birchbark.score.load_scorer import load_scorer
from birchbark.score.token_vectors import (
    LARGEST,
    PER_SEGMENT,
    RoundedLateInteractionScorer,
    max_sim,
    quantize_query,
    quantize_token_vectors,
)
from conftest import WORDS, write_bert

TEXTS = [" ".join(random.Random(i).choices(WORDS, k=i % 9)) for i in range(40)]  # empty ones too


def unit_vectors(seed: int, count: int, size: int) -> np.ndarray:
    vectors = np.random.default_rng(seed).normal(size=(count, size)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def rows_of(vectors: np.ndarray, lengths: list[int], bits: int) -> dict[str, np.ndarray]:
    return quantize_token_vectors(vectors, bits) | {PER_SEGMENT: np.array(lengths, np.uint32)}


@pytest.fixture
def scorer(tmp_path: Path) -> LateInteractionScorer:
    loaded = load_scorer(write_bert(tmp_path / "bert"), pooling="tokens")
    assert isinstance(loaded, LateInteractionScorer)
    return loaded


@given(
    st.integers(0, 2**32 - 1),
    st.lists(st.integers(0, 9), max_size=6),
    st.integers(1, 5),
    st.sampled_from([2, 16, 384, 1024]),
    st.sampled_from([8, 4]),
)
@settings(max_examples=60, deadline=None)
def test_max_sim_is_that_of_the_rounded_vectors(
    seed: int, lengths: list[int], tokens: int, size: int, bits: int
) -> None:
    """It is the mean over the query's tokens of the highest product, for any shape."""
    vectors, query = unit_vectors(seed, sum(lengths), size), unit_vectors(seed + 1, tokens, size)
    integers, scales = quantize_rows(vectors, LARGEST[bits])
    products = (integers * scales[:, None].astype(np.float64)) @ query.T  # (rows, tokens)
    ends = np.cumsum(lengths, dtype=int)
    expected = [
        products[end - length : end].max(0).mean() if length else 0
        for end, length in zip(ends, lengths, strict=True)
    ]
    found = max_sim(quantize_query(query), rows_of(vectors, lengths, bits))
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, atol=2e-4 if size < 1024 else 1e-3)


def test_the_largest_numbers_do_not_overflow() -> None:
    """Equal vectors of equal numbers have MaxSim 1, in as many dimensions as models have."""
    for size in (384, 768, 1024, 4096):
        vectors = np.full((3, size), size**-0.5, np.float32)
        for bits in (8, 4):
            (score,) = max_sim(quantize_query(vectors), rows_of(vectors, [3], bits))
            assert score == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("bits", [8, 4])
def test_stored_rows_score_as_texts_do(scorer: LateInteractionScorer, bits: int) -> None:
    """Bit for bit, in any batch and order, and near the unrounded scores."""
    quantized = RoundedLateInteractionScorer(scorer, bits)
    token_ids = scorer.encode(TEXTS)
    scores = quantized.score("birch canoe river", token_ids)
    alone = [quantized.score("birch canoe river", [ids]) for ids in token_ids]
    assert np.concatenate(alone).tobytes() == scores.tobytes()
    stored = quantized.quantize(token_ids)[::-1]
    joined = {name: np.concatenate([rows[name] for rows in stored]) for name in stored[0]}
    for compared in (quantized.compare("birch canoe river", [joined]), stored):
        if compared is stored:
            compared = quantized.compare("birch canoe river", stored)
        assert np.concatenate(compared).tobytes() == scores[::-1].tobytes()
    difference = np.abs(scores - scorer.score("birch canoe river", token_ids)).max()
    assert 0 < difference < (0.004 if bits == 8 else 0.07)
    assert quantized.score("", token_ids[:3]).tolist() == [0, 0, 0]
    assert quantized.score("birch", []).shape == (0,)
    assert quantized.compare("birch", []) == []


def test_vectors_of_4_bits_take_half_the_space(scorer: LateInteractionScorer) -> None:
    """A byte holds two numbers, from which both can be told."""
    vectors = unit_vectors(3, 50, 16)
    integers, scales = quantize_rows(vectors, 7)
    packed = quantize_token_vectors(vectors, 4)
    assert (packed["vectors"].dtype, packed["vectors"].shape) == (np.uint8, (50, 8))
    low, high = packed["vectors"] & 15, packed["vectors"] >> 4
    assert (np.hstack([low, high]).astype(int) - 8 == integers).all()
    assert (packed["scales"] == scales).all()
    assert RoundedLateInteractionScorer(scorer, 4).no_rows["vectors"].shape == (0, 8)


def test_what_cannot_be_stored_is_refused(scorer: LateInteractionScorer) -> None:
    """Other numbers of bits, 4 bits of an odd number of dimensions, and rows that do not add up."""
    with pytest.raises(InputError, match="expected 8 or 4, found 16"):
        RoundedLateInteractionScorer(scorer, 16)
    with pytest.raises(InputError, match="an even number of dimensions"):
        quantize_token_vectors(unit_vectors(0, 2, 3), 4)
    with pytest.raises(ArtifactError, match="expected 3 rows, found 2"):
        max_sim(quantize_query(unit_vectors(1, 1, 4)), rows_of(unit_vectors(0, 2, 4), [3], 8))


def test_scores_are_on_the_scale_that_the_model_states(tmp_path: Path) -> None:
    """Scores without rounding are on that scale, too."""
    model = write_bert(tmp_path / "bert")
    plain = load_scorer(model, pooling="tokens")
    assert isinstance(plain, LateInteractionScorer)
    token_ids = plain.encode(TEXTS)
    plain.checkpoint = replace(plain.checkpoint, scale=ScoreScale(0.25, 2.0))
    quantized = RoundedLateInteractionScorer(plain, 8)
    scores = quantized.score("birch canoe river", token_ids)
    np.testing.assert_allclose(scores, plain.score("birch canoe river", token_ids), atol=0.008)
    assert 0 < scores.min() < scores.max() < 0.5
