"""Is MaxSim the mean of each query token's best match, whatever the batch?"""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from reference import Reference

from birchbark.checkpoint.checkpoint import Checkpoint
from birchbark.checkpoint.heads import Pooling
from birchbark.errors import CheckpointError, InputError
from birchbark.score.dynamic_batching import dynamic_batcher
from birchbark.score.embedding import EmbeddingScorer
from birchbark.score.late_interaction import LateInteractionScorer
from birchbark.score.load_scorer import load_scorer
from birchbark.score.session import OnnxSession
from conftest import VOCABULARY, WORDS, write_bert

TEXTS = [" ".join(random.Random(i).choices(WORDS, k=i % 9)) for i in range(40)]  # empty ones too
QUERY = "birch canoe river"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A classifier, since late interaction uses any encoder, whatever its head."""
    return write_bert(tmp_path / "bert", labels=1)


def opened(model: Path, **arguments: object) -> LateInteractionScorer:
    """Load the late interaction of the last layer."""
    scorer = load_scorer(model, pooling=Pooling("tokens"), **arguments)  # type: ignore[arg-type]
    assert isinstance(scorer, LateInteractionScorer)
    return scorer


def by_hand(model: Path, query: str, text: str) -> float:
    """Compute ColBERT's MaxSim, as a mean, in float64."""

    def vectors(words: str) -> np.ndarray:
        ids = [2, *(VOCABULARY.index(word) for word in words.split()), 3]
        rows = Reference(model).encode(ids, [0] * len(ids))
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)

    best = (vectors(query)[1:-1] @ vectors(text).T).max(1)
    return float(np.clip(best.mean(), 0, 1))


def test_scores_by_hand(model: Path) -> None:
    """All tokens of a text take part, but not the query's special tokens."""
    scorer = opened(model)
    expected = [by_hand(model, QUERY, text) for text in TEXTS]
    scores = scorer.score(QUERY, scorer.encode(TEXTS))
    assert scores.dtype == np.float32
    np.testing.assert_allclose(scores, expected, atol=1e-5)
    assert len(set(np.round(expected, 4))) > 30


def test_scores_do_not_depend_on_batch_or_threads(model: Path) -> None:
    """Scores are the same for any batch and number of threads, also if threads share the model."""
    scorer = opened(model, threads=1)
    token_ids = scorer.encode(TEXTS)
    scores = scorer.score(QUERY, token_ids)
    alone = np.concatenate([scorer.score(QUERY, [ids]) for ids in token_ids])
    assert alone.tobytes() == scores.tobytes()
    checkpoint = Checkpoint.open(model, pooling=Pooling("tokens"))
    inputs = [np.array([2, *ids, 3], np.int32) for ids in token_ids]
    rows = [OnnxSession(checkpoint, n, size).run(inputs) for n, size in ((1, 4096), (4, 16))]
    assert rows[0].tobytes() == rows[1].tobytes()
    assert len(rows[0]) == sum(map(len, inputs))
    shared = opened(model, session=dynamic_batcher())
    assert shared.score(QUERY, token_ids).tobytes() == scores.tobytes()


def test_prefetched_vectors_are_not_computed_again(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Prefetched vectors are reused until the next prefetch, and scores do not change."""
    scorer, other = opened(model), opened(model)
    token_ids = scorer.encode(TEXTS)
    expected = other.score(QUERY, token_ids)
    runs: list[int] = []
    run = OnnxSession.run
    monkeypatch.setattr(OnnxSession, "run", lambda *a: runs.append(len(a[1])) or run(*a))
    scorer.prefetch([QUERY], [*token_ids, *token_ids])
    assert runs == [1 + len({ids.tobytes() for ids in token_ids})]
    assert scorer.score(QUERY, token_ids).tobytes() == expected.tobytes()
    assert len(runs) == 1
    scorer.prefetch([], token_ids[:3])
    assert scorer.score(QUERY, token_ids).tobytes() == expected.tobytes()
    assert len(runs) == 3


def test_empty_inputs(model: Path) -> None:
    """No texts give no scores, a query without tokens scores 0."""
    scorer = opened(model)
    assert scorer.score(QUERY, []).shape == (0,)
    assert scorer.score("", scorer.encode(["birch", ""])).tolist() == [0, 0]


def test_it_differs_from_the_embedding_scorer(model: Path) -> None:
    """Name, fingerprint, kind and class differ, so its vectors are never stored as embeddings."""
    late, mean = opened(model), load_scorer(model, pooling=Pooling("mean"))
    assert late.fingerprint != mean.fingerprint
    assert late.kind == "late-interaction"
    assert late.name == "late interaction of bert tokens"
    assert not isinstance(late, EmbeddingScorer)
    deeper = load_scorer(model, pooling=Pooling("tokens", 1))
    assert deeper.fingerprint != late.fingerprint


def test_invalid_inputs_are_rejected(model: Path) -> None:
    """Texts or queries that are too long, and unsupported poolings, are rejected."""
    scorer = opened(model)
    token_budget = scorer.token_budget(QUERY)
    with pytest.raises(InputError, match="too long"):
        scorer.score(QUERY, scorer.encode([" ".join(["birch"] * (token_budget + 1))]))
    with pytest.raises(InputError, match="too long"):
        scorer.token_budget(" ".join(["birch"] * (token_budget + 1)))
    with pytest.raises(CheckpointError, match="cls or mean or max or tokens"):
        Pooling("words")
