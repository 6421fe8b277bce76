"""Does each token of the query count with its most similar one of the text, in any company?"""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from reference import Reference

from birchbark.checkpoint.heads import Pooling
from birchbark.checkpoint.reader import Checkpoint
from birchbark.errors import CheckpointError, InputError
from birchbark.score.embedding import EmbeddingScorer
from birchbark.score.late_interaction import LateInteractionScorer
from birchbark.score.model import load_scorer
from birchbark.score.session import Session
from birchbark.score.together import together
from conftest import VOCABULARY, WORDS, write_bert

TEXTS = [" ".join(random.Random(i).choices(WORDS, k=i % 9)) for i in range(40)]  # empty ones too
QUERY = "birch canoe river"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A classifier: late interaction takes any encoder, whatever its head."""
    return write_bert(tmp_path / "bert", labels=1)


def opened(model: Path, **how: object) -> LateInteractionScorer:
    """Late interaction of the last layer."""
    scorer = load_scorer(model, pooling=Pooling("tokens"), **how)  # type: ignore[arg-type]
    assert isinstance(scorer, LateInteractionScorer)
    return scorer


def by_hand(model: Path, query: str, text: str) -> float:
    """ColBERT's sum of maxima, as a mean, in float64."""

    def vectors(words: str) -> np.ndarray:
        ids = [2, *(VOCABULARY.index(word) for word in words.split()), 3]
        rows = Reference(model).encode(ids, [0] * len(ids))
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)

    best = (vectors(query)[1:-1] @ vectors(text).T).max(1)
    return float(np.clip(best.mean(), 0, 1))


def test_scores_by_hand(model: Path) -> None:
    """All tokens of a text take part; of the query, those of its words."""
    scorer = opened(model)
    expected = [by_hand(model, QUERY, text) for text in TEXTS]
    found = scorer.score(QUERY, scorer.encode(TEXTS))
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert len(set(np.round(expected, 4))) > 30


def test_company_changes_no_bit(model: Path) -> None:
    """Alone, with others, on other threads and batches, read ahead, asked together."""
    scorer = opened(model, threads=1)
    pieces = scorer.encode(TEXTS)
    found = scorer.score(QUERY, pieces)
    alone = np.concatenate([scorer.score(QUERY, [piece]) for piece in pieces])
    assert alone.tobytes() == found.tobytes()
    checkpoint = Checkpoint.open(model, pooling=Pooling("tokens"))
    inputs = [np.array([2, *piece, 3], np.int32) for piece in pieces]
    rows = [Session(checkpoint, n, size).run(inputs) for n, size in ((1, 4096), (4, 16))]
    assert rows[0].tobytes() == rows[1].tobytes()
    assert len(rows[0]) == sum(map(len, inputs))
    assert opened(model, session=together()).score(QUERY, pieces).tobytes() == found.tobytes()


def test_what_is_read_ahead_is_not_read_again(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Queries too; what was read ahead before is forgotten; scores are the same."""
    scorer, other = opened(model), opened(model)
    pieces = scorer.encode(TEXTS)
    found = other.score(QUERY, pieces)
    runs: list[int] = []
    run = Session.run
    monkeypatch.setattr(Session, "run", lambda *a: runs.append(len(a[1])) or run(*a))
    scorer.read_ahead([*scorer.encode([QUERY]), *pieces, *pieces])
    assert runs == [1 + len({piece.tobytes() for piece in pieces})]
    assert scorer.score(QUERY, pieces).tobytes() == found.tobytes()
    assert len(runs) == 1
    scorer.read_ahead(pieces[:3])
    assert scorer.score(QUERY, pieces).tobytes() == found.tobytes()
    assert len(runs) == 3


def test_nothing_to_compare(model: Path) -> None:
    """No text, no words asked: no score, or 0."""
    scorer = opened(model)
    assert scorer.score(QUERY, []).shape == (0,)
    assert scorer.score("", scorer.encode(["birch", ""])).tolist() == [0, 0]


def test_it_is_another_scorer_than_the_embedding(model: Path) -> None:
    """By its name, its fingerprint and its kind; nothing takes it for vectors to keep."""
    late, mean = opened(model), load_scorer(model, pooling=Pooling("mean"))
    assert late.fingerprint != mean.fingerprint
    assert late.kind == "late-interaction"
    assert late.name == "late interaction of bert tokens"
    assert not isinstance(late, EmbeddingScorer)
    deeper = load_scorer(model, pooling=Pooling("tokens", 1))
    assert deeper.fingerprint != late.fingerprint


def test_what_does_not_fit_is_refused(model: Path) -> None:
    """A text or query longer than the model reads; a pooling that is none."""
    scorer = opened(model)
    room = scorer.room(QUERY)
    with pytest.raises(InputError, match="too long"):
        scorer.score(QUERY, scorer.encode([" ".join(["birch"] * (room + 1))]))
    with pytest.raises(InputError, match="too long"):
        scorer.room(" ".join(["birch"] * (room + 1)))
    with pytest.raises(CheckpointError, match="cls or mean or max or tokens"):
        Pooling("words")
