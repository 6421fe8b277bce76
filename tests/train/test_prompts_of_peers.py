"""Are prompts put before queries and documents as sentence-transformers puts them?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from peer_models import QUERIES, TEXTS, write_encoder

from birchbark.score.embedding import EmbeddingScorer
from birchbark.score.load_scorer import load_scorer

peers = pytest.importorskip("sentence_transformers", reason="it is not installed")

pytestmark = pytest.mark.filterwarnings("default")

PROMPTS = {
    "none": {},
    "query": {"query": "Represent this query: "},
    "both": {"query": "query: ", "document": "search_document: "},
    "unspaced": {"query": "query:", "document": "passage"},
    "words": {"query": "[Q] ", "document": " passage text  "},
}


@pytest.mark.parametrize("mode", ["cls", "mean"])
@pytest.mark.parametrize("prompts", PROMPTS)
@pytest.mark.parametrize("kind", ["wordpiece", "bytes", "unigram"])
def test_cosines_with_prompts(kind: str, prompts: str, mode: str, tmp_path: Path) -> None:
    """Cosines equal those of encode_query and encode_document, whatever the tokeniser."""
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer

    base = write_encoder(tmp_path / "base", kind)
    peer = peers.SentenceTransformer(
        modules=[Transformer(str(base)), Pooling(24, pooling_mode=mode)],
        prompts=PROMPTS[prompts],
        device="cpu",
    )
    peer.save(str(tmp_path / "model"))
    scorer = load_scorer(tmp_path / "model", 1)
    assert isinstance(scorer, EmbeddingScorer)
    queries, texts = (
        encode(of, normalize_embeddings=True)
        for encode, of in ((peer.encode_query, QUERIES), (peer.encode_document, TEXTS))
    )
    encoded = scorer.encode(TEXTS)
    np.testing.assert_allclose(scorer.embed(encoded), texts, rtol=0, atol=1e-5)
    for query, vector in zip(QUERIES, queries, strict=True):
        np.testing.assert_allclose(scorer.embed_query(query), vector, rtol=0, atol=1e-5)
        expected = np.clip(texts @ vector, 0, 1)
        np.testing.assert_allclose(scorer.score(query, encoded), expected, rtol=0, atol=1e-5)
    for text, ids in zip(TEXTS, encoded, strict=True):
        spans = scorer.spans(text)
        assert len(spans) == len(ids)
        assert all(0 <= start <= end <= len(text) for start, end in spans)


def test_passage_prompts_are_those_of_documents(tmp_path: Path) -> None:
    """The documentation says so; sentence-transformers 6.2 finds an empty prompt `document`."""
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer

    base = write_encoder(tmp_path / "base", "bytes")
    prompts = {"query": "query: ", "passage": "passage: ", "corpus": "corpus: "}
    peer = peers.SentenceTransformer(
        modules=[Transformer(str(base)), Pooling(24)], prompts=prompts, device="cpu"
    )
    del peer.prompts["document"]
    peer.save(str(tmp_path / "model"))
    scorer = load_scorer(tmp_path / "model", 1)
    expected = peer.encode_document(TEXTS, normalize_embeddings=True)
    np.testing.assert_allclose(scorer.embed(scorer.encode(TEXTS)), expected, rtol=0, atol=1e-5)
