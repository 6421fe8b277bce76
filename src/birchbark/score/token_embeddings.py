"""How similar are a query and a text if only the model's token embeddings are compared?

A text is the mean of its tokens' embeddings, weighted by idf. BERT's layers are not computed.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from birchbark.records import Float32s, Ids
from birchbark.score.bert_scorer import BertScorer


class TokenEmbeddings:
    """The token embeddings of a checkpoint, centred, normalised and weighted.

    A token's weight is ln(1 + its number in the vocabulary). Vocabularies are ordered by frequency,
    so that by Zipf's law this is an idf that no collection is needed for.
    """

    def __init__(self, scorer: BertScorer) -> None:
        """Compute the weighted embeddings of the scorer's checkpoint."""
        checkpoint, self._encode = scorer.checkpoint, scorer.encode
        vectors = np.asarray(checkpoint.tensors()[f"{checkpoint.family.names.words}.weight"])
        vectors = vectors.astype(np.float32)  # (V, E)
        vectors -= vectors.mean(axis=0)
        vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
        weights = np.log1p(np.arange(len(vectors), dtype=np.float32))  # (V,)
        self._vectors: Float32s = vectors * weights[:, None]

    def scores(self, query: str, texts: Sequence[str]) -> NDArray[np.float64]:
        """Return the cosine (n,) of each text with the query; 0 for one without tokens."""
        encoded_query, *encoded = self._encode([query, *texts])
        return self.cosines(encoded_query, encoded)

    def cosines(self, query: Ids, texts: Sequence[Ids]) -> NDArray[np.float64]:
        """Return the cosine (n,) of each encoded text with the encoded query; 0 for an empty one.

        The texts of one call are summed together, so the last bits may depend on the call.
        """
        lengths = [len(ids) for ids in texts]
        if not sum(lengths) or not len(query):
            return np.zeros(len(texts))
        wanted = self._vectors[query].sum(axis=0)  # (E,)
        flat = np.concatenate(list(texts))
        dots = self._vectors[flat] @ wanted  # (tokens,)
        owners = np.repeat(np.arange(len(texts)), lengths)
        sums = np.zeros((len(texts), self._vectors.shape[1]), np.float32)
        np.add.at(sums, owners, self._vectors[flat])
        norms = np.linalg.norm(sums, axis=1) * np.linalg.norm(wanted)
        numerators = np.bincount(owners, dots, len(texts))
        cosines = np.zeros(len(texts))
        np.divide(numerators, norms, out=cosines, where=norms > 0)
        return cosines
