"""Are the vectors of a static embedding those of sentence-transformers, whatever the batch?"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from zoo import TABLE, TEXTS, load_table, write_table

from birchbark.score.embedding import EmbeddingScorer
from birchbark.score.static_session import BLOCK_TOKENS
from conftest import VOCABULARY


@pytest.fixture(scope="module")
def scorer(tmp_path_factory: pytest.TempPathFactory) -> EmbeddingScorer:
    return load_table(write_table(tmp_path_factory.mktemp("static") / "model"))


@pytest.mark.parametrize("name", ["embedding.weight", "embeddings"])
def test_a_text_is_the_unit_vector_of_the_sum_of_its_tokens(tmp_path: Path, name: str) -> None:
    """Special tokens do not count, and an empty text has zeros.

    Model2Vec names the table in another way.
    """
    scorer = load_table(write_table(tmp_path / "model", name))
    ids = scorer.encode(TEXTS)
    assert [VOCABULARY[i] for i in ids[0]] == ["the", "birch", "bark", "canoe"]
    vectors = scorer.embed(ids)
    sums = np.stack([TABLE[one].sum(axis=0) for one in ids])
    norms = np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-9)
    np.testing.assert_allclose(vectors, sums / norms, atol=1e-6)
    assert not vectors[-1].any()
    assert scorer.score("bees", scorer.encode(["bees"])) == pytest.approx([1.0])


@given(st.lists(st.lists(st.integers(0, len(VOCABULARY) - 1), max_size=900), max_size=9))
def test_a_vector_does_not_depend_on_the_other_texts(
    scorer: EmbeddingScorer, texts: list[list[int]]
) -> None:
    """Bit for bit, however texts are divided into blocks of tokens."""
    ids = [np.array(text, np.int32) for text in texts]
    together = scorer.embed(ids, keep=False)
    for one, vector in zip(ids, together, strict=True):
        np.testing.assert_array_equal(scorer.embed([one], keep=False)[0], vector)


def test_a_text_longer_than_a_block_is_read_whole(scorer: EmbeddingScorer) -> None:
    """There is no limit of 512 tokens."""
    ids = np.full(3 * BLOCK_TOKENS, 7, np.int32)
    ids[-1] = 8
    sums = TABLE[ids].astype(np.float64).sum(axis=0)
    np.testing.assert_allclose(scorer.embed([ids])[0], sums / np.linalg.norm(sums), atol=1e-4)


@pytest.mark.skipif(find_spec("sentence_transformers") is None, reason="not installed")
def test_vectors_are_those_of_sentence_transformers(tmp_path: Path) -> None:
    """Both read the same folder."""
    from sentence_transformers import SentenceTransformer

    folder = write_table(tmp_path / "model")
    scorer = load_table(folder)
    theirs = SentenceTransformer(str(folder)).encode(TEXTS[:-1], normalize_embeddings=True)
    np.testing.assert_allclose(scorer.embed(scorer.encode(TEXTS[:-1])), theirs, atol=1e-6)
