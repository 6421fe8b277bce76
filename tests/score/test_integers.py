"""Are scores in 8-bit integers near those in float32, and as indifferent to their company?"""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from zoo import FAMILIES, write_family

from birchbark.checkpoint.heads import Pooling
from birchbark.checkpoint.named import EMBEDDING_MODEL, locate
from birchbark.checkpoint.reader import Checkpoint
from birchbark.checkpoint.weights import quantised
from birchbark.score import integers
from birchbark.score.integers import largest_weight
from birchbark.score.model import load_scorer
from birchbark.score.precision import Precision
from birchbark.score.scorer import score_texts
from birchbark.score.session import Session

Bert = Callable[..., Path]
INT8 = Precision.INT8
RANDOM = np.random.default_rng(7)
IDS = [RANDOM.integers(5, 25, n).tolist() for n in (3, 9, 9, 17, 31, 32, 9, 31)]
TYPES = [[0] * (len(i) // 2) + [1] * (len(i) - len(i) // 2) for i in IDS]


@pytest.mark.parametrize("pooling", [None, Pooling("mean"), Pooling("max"), Pooling("cls", 1)])
@pytest.mark.parametrize("family", FAMILIES)
def test_company_and_threads_change_no_bit(
    family: str, pooling: Pooling | None, tmp_path: Path
) -> None:
    """As in float32 (test_families.py); and scores are near, as far as random weights let them."""
    directory = write_family(tmp_path / family, family, 2)
    checkpoint = Checkpoint.open(directory, pooling=pooling)
    whole = Session(checkpoint, threads=1, precision=INT8).run(IDS, TYPES)
    for threads, tokens in ((1, 1), (2, 40), (2, 10_000)):
        session = Session(checkpoint, threads, tokens, INT8)
        assert np.array_equal(session.run(IDS[::-1], TYPES[::-1])[::-1], whole)
    exact = Session(checkpoint).run(IDS, TYPES)
    assert not np.array_equal(exact, whole)
    assert np.abs(exact - whole).max() < 0.5 * np.abs(exact).max()


@pytest.mark.parametrize("precision", list(Precision))
def test_company_changes_no_bit_at_real_sizes(precision: Precision) -> None:
    """Matrix products of hundreds of rows and columns take other paths than tiny ones."""
    checkpoint = Checkpoint.open(locate("all-MiniLM-L6-v2"))
    chance = random.Random(1)
    lengths = [chance.choice((5, 12, 36, 37, 150)) for _ in range(60)]
    ids = [[101, *(chance.randrange(1000, 30_000) for _ in range(n)), 102] for n in lengths]
    whole = Session(checkpoint, 2, 4096, precision).run(ids)
    assert np.array_equal(Session(checkpoint, 1, 256, precision).run(ids), whole)
    alone = Session(checkpoint, 1, 1, precision)
    for i in (0, 17, 41):
        assert np.array_equal(alone.run([ids[i]])[0], whole[i])


def test_real_embeddings_stay_near() -> None:
    """Cosines of real sentences move by a few hundredths at most."""
    texts = [
        "Delete an entire directory tree.",
        "How do I get rid of a folder?",
        "How do I get to the railway station?",
        "The shop opens at nine.",
        "Return an iterator over the words of a text.",
        "A canoe of birch bark rides the river.",
    ]
    exact, near = (load_scorer(EMBEDDING_MODEL, precision=p) for p in Precision)
    for one, other in pairwise(texts):
        expected = score_texts(exact, one, texts)
        np.testing.assert_allclose(score_texts(near, one, texts), expected, rtol=0, atol=0.03)
        assert score_texts(near, one, [other]) == score_texts(near, one, texts)[texts.index(other)]


def test_precisions_have_fingerprints_of_their_own(
    bert: Bert, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Scores of one are never taken for the other's; nor where weights are rounded otherwise."""
    directory = bert(labels=1)
    found = {load_scorer(directory, precision=p).fingerprint for p in (*Precision, *Precision)}
    assert len(found) == 2
    monkeypatch.setattr(integers, "SHARE", 0.5)
    assert load_scorer(directory, precision=INT8).fingerprint not in found


def test_processors_that_would_cut_sums_get_smaller_weights(
    bert: Bert, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seven bits of them; the scores are near still."""
    assert largest_weight() in (64, 127)
    monkeypatch.setattr(integers, "largest_weight", lambda: 64)
    checkpoint = Checkpoint.open(bert(labels=1))
    session = Session(checkpoint, precision=INT8)
    exact = Session(checkpoint).run(IDS, TYPES)
    np.testing.assert_allclose(session.run(IDS, TYPES), exact, atol=0.1 * np.abs(exact).max())


@given(st.integers(0, 2**32 - 1), st.sampled_from([64, 127]))
def test_rounded_weights_are_within_half_a_step(seed: int, most: int) -> None:
    """Of each output's own scale; an output without weights stays zero."""
    chance = np.random.default_rng(seed)
    weight = chance.normal(size=(5, 7)).astype(np.float32) * chance.lognormal(0, 3, (5, 1))
    weight = weight.astype(np.float32)
    weight[2] = 0
    whole, scale = quantised(weight, most)
    assert np.abs(whole.astype(int)).max() <= most
    assert (np.abs(whole * scale[:, None] - weight) <= 0.501 * scale[:, None]).all()
