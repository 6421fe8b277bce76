"""Are int8 scores close to those in float32, and as independent of the batch?"""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from zoo import FAMILIES, IDS, TYPES, write_family

from birchbark import defaults
from birchbark.checkpoint.checkpoint import Checkpoint
from birchbark.checkpoint.heads import Pooling
from birchbark.checkpoint.locate import locate
from birchbark.score import int8_graph
from birchbark.score.int8_graph import max_int8_weight
from birchbark.score.load_scorer import load_scorer
from birchbark.score.precision import Precision
from birchbark.score.scorer import score_texts
from birchbark.score.session import OnnxSession

Bert = Callable[..., Path]
INT8 = Precision.INT8
ON_CPU = [precision for precision in Precision if precision.runs_on_cpu]


@pytest.mark.parametrize("pooling", [None, Pooling("mean"), Pooling("max"), Pooling("cls", 1)])
@pytest.mark.parametrize("family", FAMILIES)
def test_scores_do_not_depend_on_batch_threads_or_order(
    family: str, pooling: Pooling | None, tmp_path: Path
) -> None:
    """Scores are independent of the batch, as in float32, and close to those in float32."""
    directory = write_family(tmp_path / family, family, 2)
    checkpoint = Checkpoint.open(directory, pooling=pooling)
    scores = OnnxSession(checkpoint, threads=1, precision=INT8).run(IDS, TYPES)
    for threads, tokens in ((1, 1), (2, 40), (2, 10_000)):
        session = OnnxSession(checkpoint, threads, tokens, INT8)
        assert np.array_equal(session.run(IDS[::-1], TYPES[::-1])[::-1], scores)
    exact = OnnxSession(checkpoint).run(IDS, TYPES)
    assert not np.array_equal(exact, scores)
    assert np.abs(exact - scores).max() < 0.5 * np.abs(exact).max()


def test_embeddings_alone_have_no_linear_layer(bert: Bert) -> None:
    """Pooled embeddings (layer 0) are the same in both precisions."""
    checkpoint = Checkpoint.open(bert(), pooling=Pooling("cls", 0))
    exact = OnnxSession(checkpoint).run(IDS, TYPES)
    assert np.array_equal(OnnxSession(checkpoint, precision=INT8).run(IDS, TYPES), exact)


@pytest.mark.parametrize("precision", ON_CPU)
def test_scores_do_not_depend_on_the_batch_at_real_sizes(precision: Precision) -> None:
    """Large matrix products take other code paths than tiny ones."""
    checkpoint = Checkpoint.open(locate("all-MiniLM-L6-v2"))
    rng = random.Random(1)
    lengths = [rng.choice((5, 12, 36, 37, 150)) for _ in range(60)]
    ids = [[101, *(rng.randrange(1000, 30_000) for _ in range(n)), 102] for n in lengths]
    scores = OnnxSession(checkpoint, 2, 4096, precision).run(ids)
    assert np.array_equal(OnnxSession(checkpoint, 1, 256, precision).run(ids), scores)
    alone = OnnxSession(checkpoint, 1, 1, precision)
    for i in (0, 17, 41):
        assert np.array_equal(alone.run([ids[i]])[0], scores[i])


def test_real_embeddings_stay_close() -> None:
    """Cosines of real sentences change by at most 0.03."""
    texts = [
        "Delete an entire directory tree.",
        "How do I get rid of a folder?",
        "How do I get to the railway station?",
        "The shop opens at nine.",
        "Return an iterator over the words of a text.",
        "A canoe of birch bark rides the river.",
    ]
    exact, int8 = (load_scorer(defaults.EMBEDDING_BASE, precision=p) for p in ON_CPU)
    for one, other in pairwise(texts):
        expected = score_texts(exact, one, texts)
        np.testing.assert_allclose(score_texts(int8, one, texts), expected, rtol=0, atol=0.03)
        assert score_texts(int8, one, [other]) == score_texts(int8, one, texts)[texts.index(other)]


def test_precisions_have_different_fingerprints(
    bert: Bert, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Precisions, and int8 weights that are rounded differently, have different fingerprints."""
    directory = bert(labels=1)
    fingerprints = {load_scorer(directory, precision=p).fingerprint for p in (*ON_CPU, *ON_CPU)}
    assert len(fingerprints) == 2
    monkeypatch.setattr(int8_graph, "SMOOTHING", 0.5)
    assert load_scorer(directory, precision=INT8).fingerprint not in fingerprints


def test_processors_that_would_saturate_get_smaller_weights(
    bert: Bert, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With weights of 7 bits, scores are still close."""
    assert max_int8_weight() in (64, 127)
    monkeypatch.setattr(int8_graph, "max_int8_weight", lambda: 64)
    checkpoint = Checkpoint.open(bert(labels=1))
    session = OnnxSession(checkpoint, precision=INT8)
    exact = OnnxSession(checkpoint).run(IDS, TYPES)
    np.testing.assert_allclose(session.run(IDS, TYPES), exact, atol=0.1 * np.abs(exact).max())
