"""Is a static embedding read correctly, and are its vectors those of sentence-transformers?"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import save_file

from birchbark.checkpoint.score_scale import ScoreScale
from birchbark.checkpoint.static_embedding import write_static_embedding
from birchbark.errors import CheckpointError, InputError
from birchbark.score.describe import describe
from birchbark.score.embedding import EmbeddingScorer
from birchbark.score.load_scorer import load_scorer
from birchbark.score.static_session import BLOCK_TOKENS
from conftest import VOCABULARY, write_static

TABLE = np.random.default_rng(3).normal(size=(len(VOCABULARY), 8)).astype(np.float32)
TEXTS = ["the birch bark canoe", "bees dance . dance !", "unknown river", "stone", ""]


def write(folder: Path, name: str = "embedding.weight") -> Path:
    return write_static(folder, TABLE, name)


def load(folder: Path) -> EmbeddingScorer:
    scorer = load_scorer(folder)
    assert isinstance(scorer, EmbeddingScorer)
    return scorer


@pytest.fixture(scope="module")
def scorer(tmp_path_factory: pytest.TempPathFactory) -> EmbeddingScorer:
    return load(write(tmp_path_factory.mktemp("static") / "model"))


@pytest.mark.parametrize("name", ["embedding.weight", "embeddings"])
def test_a_text_is_the_unit_vector_of_the_sum_of_its_tokens(tmp_path: Path, name: str) -> None:
    """Special tokens do not count, and an empty text has zeros.

    Model2Vec names the table in another way.
    """
    scorer = load(write(tmp_path / "model", name))
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

    folder = write(tmp_path / "model")
    scorer = load(folder)
    theirs = SentenceTransformer(str(folder)).encode(TEXTS[:-1], normalize_embeddings=True)
    np.testing.assert_allclose(scorer.embed(scorer.encode(TEXTS[:-1])), theirs, atol=1e-6)


def test_what_is_written_is_read_again_in_8_bits(tmp_path: Path) -> None:
    """The table is read with its scale, and is close to the vectors in full precision."""
    folder, scale = tmp_path / "written", ScoreScale(0.1, 0.8, stated=True)
    exact = load(write(tmp_path / "exact"))
    tokenizer = tmp_path / "exact" / "tokenizer.json"
    write_static_embedding(folder, TABLE, tokenizer, scale, "# card")
    written = load(folder)
    assert written.checkpoint.scale == scale
    ids = exact.encode(TEXTS[:-1])
    assert (written.embed(ids) * exact.embed(ids)).sum(axis=1) == pytest.approx(1.0, abs=1e-3)
    assert written.fingerprint != exact.fingerprint
    assert str(describe(folder, "x")).startswith("static embedding of 8 dimensions, 0.0 MB")


def test_what_is_unknown_is_refused(tmp_path: Path) -> None:
    """The weights and mapping of a quantised vocabulary are refused, and so are two tables."""
    folder = write(tmp_path / "model")
    for other in ({"weights": TABLE[:, 0].copy()}, {"embeddings": TABLE}):
        save_file({"embedding.weight": TABLE} | other, folder / "model.safetensors")
        with pytest.raises(CheckpointError, match="unsupported static embedding"):
            load(folder)


def test_a_table_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    """Fewer rows than tokens, numbers that are not finite, or a pooling."""
    folder = write(tmp_path / "model")
    with pytest.raises(InputError, match="no layers to pool"):
        load_scorer(folder, pooling="mean")
    save_file({"embedding.weight": TABLE[:9]}, folder / "model.safetensors")
    with pytest.raises(CheckpointError, match="vocabulary and weights do not match"):
        load(folder)
    save_file({"embedding.weight": TABLE * np.float32(np.nan)}, folder / "model.safetensors")
    with pytest.raises(CheckpointError, match="not finite"):  # read at the first use
        load(folder).embed_query("birch")
