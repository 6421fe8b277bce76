"""How are queries embedded as an index's stored vectors were, and compared with them?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from shlex import quote

import numpy as np

from birchbark.errors import InputError
from birchbark.index.attachment_reader import Attachment
from birchbark.index.index import Index
from birchbark.pipeline.stored.precompute import STATIC, is_own
from birchbark.pipeline.stored.stored_segments import PrecomputedSegments
from birchbark.pipeline.stored.vector_scorer import embedding_scorer
from birchbark.pipeline.stored.vector_sets import searched_sets, vector_sets
from birchbark.records import Float32s
from birchbark.score.embedding import EmbeddingScorer
from birchbark.score.scorer import Scorer
from birchbark.score.token_limits import cut_text
from birchbark.score.vector_quantization import dequantize_vectors
from birchbark.segment.by_name import parse_segmenter

ATTACH = "birchbark index attach"


class StoredEmbedding:
    """A model that embeds queries, and the vectors that an index stores of it."""

    def __init__(
        self, vectors: Attachment, scorer: EmbeddingScorer, query_tokens: int | None
    ) -> None:
        """query_tokens: how many tokens of a query the model reads; None for all."""
        self.vectors, self._scorer, self._query_tokens = vectors, scorer, query_tokens

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the model."""
        return self._scorer.outputs_fingerprint

    def has_tokens(self, query: str) -> bool:
        """Whether the model reads anything of a query."""
        return any(start < end for start, end in self._scorer.spans(query))

    def cut_tokens(self, query: str) -> int:
        """Return how many tokens of a query the model does not read; InputError if too many are."""
        return self._cut(query)[1]

    def embed(self, query: str) -> Float32s:
        """Return the vector (H,) of a query; InputError if it is too long."""
        return self._scorer.embed_query(self._cut(query)[0])

    def scores(self, query: str, doc_ids: Sequence[str]) -> Float32s:
        """Return the scores (n,) of documents, in the order of cosines; NaN without vectors.

        They are the model's score of the nearest segment; those that are clipped to 0 or 1
        otherwise keep their order.
        """
        vector = self.embed(query)
        cosines = [
            np.einsum("nh,h->n", dequantize_vectors(rows), vector).max()
            if rows and len(rows["spans"])
            else np.nan
            for rows in self.vectors.rows(doc_ids)
        ]
        return self._scorer.checkpoint.scale.ranking_similarities(np.array(cosines, np.float32))

    def _cut(self, query: str) -> tuple[str, int]:
        """Return what the model reads of a query, and the number of the other tokens."""
        read, cut = cut_text(self._scorer, query, self._query_tokens)
        self._scorer.token_budget(read)  # raises InputError
        return read, cut


def open_stored_embedding(
    index: Index, name: str | None, load: Callable[[str], Scorer], query_tokens: int | None
) -> StoredEmbedding:
    """Open a set of vectors with the model that computed them.

    name: of the set; None for the first one. load: returns the scorer of a model by its name.
    Raises InputError if there is no such set, or if `load` returns another model or version.
    """
    chosen = _vector_set(index, name)
    config = index.attachments[chosen].config
    if not is_own(config):
        raise InputError(
            f"the {chosen} of this index were stored by another program",
            where=str(index.directory),
            remedy=f"birchbark index detach {quote(str(index.directory))} {chosen}, then attach",
        )
    scorer = load(config["model"])
    vectors = PrecomputedSegments(index, scorer, parse_segmenter(config["segments"])).vectors
    embedding = embedding_scorer(scorer)
    if embedding is None or vectors is None:
        raise InputError(
            f"the vectors were made by a model or version other than {config['model']}",
            where=str(index.directory),
            remedy=f"{ATTACH} {quote(str(index.directory))}",
        )
    return StoredEmbedding(vectors, embedding, query_tokens)


def _vector_set(index: Index, name: str | None) -> str:
    """Return the name of the index's set of vectors, the first one by default.

    Raises InputError if there is no such set, or if it holds vectors of tokens.
    """
    sets, where = searched_sets(index.attachments), str(index.directory)
    of_tokens = [other for other in vector_sets(index.attachments) if other not in sets]
    if name == STATIC and name in index.attachments:
        return name
    if name in of_tokens or (of_tokens and not sets):
        raise InputError(
            "vectors of tokens find no candidates, they only re-rank",
            where=where,
            found=name or of_tokens[0],
            wanted=" or ".join(sets) or "a set with a vector per segment",
            remedy="" if sets else f"{ATTACH} {quote(where)}",
        )
    if not sets:
        raise InputError("the index has no vectors", where=where, remedy=f"{ATTACH} {quote(where)}")
    if name is not None and name not in sets:
        raise InputError(
            "no such set of vectors", where=where, found=name, wanted=" or ".join(sets)
        )
    return name or sets[0]
