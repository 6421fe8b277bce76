"""How similar are query and segment as sentence embeddings?"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from threading import Lock

import numpy as np

from birchbark.checkpoint.reader import Checkpoint
from birchbark.records import Float32s, Ids
from birchbark.score.bert import ApartScorer
from birchbark.score.scorer import check_room
from birchbark.score.session import NewSession, Session

REMEMBERED = 100_000


class EmbeddingScorer(ApartScorer):
    """Cosine of the query's and the segment's embedding; negative values become 0.

    Segment vectors are remembered, the last 100,000 of them (150 MB at 384 dimensions), so that a
    sentence met again, for this or another query, costs nothing.
    """

    kind = "embedding"

    def __init__(
        self,
        checkpoint: Checkpoint,
        threads: int | None = None,
        session: NewSession = Session,
    ) -> None:
        """Load `checkpoint`, whose head is a Pooling."""
        super().__init__(checkpoint, threads, session)
        self.name = f"cosine of {checkpoint.name} embeddings"
        self._vectors: dict[bytes, Float32s] = {}
        self._remembering = Lock()  # not held while the model runs

    def score(self, query: str, pieces: Sequence[Ids]) -> Float32s:
        """Cosines in [0, 1], float32 (n,)."""
        return self.cosines(query, self.embed(pieces))

    def cosines(self, query: str, vectors: Float32s) -> Float32s:
        """Of the query and unit vectors (n, hidden), in [0, 1], float32 (n,)."""
        if not len(vectors):
            return np.empty(0, np.float32)
        cosines = np.einsum("nh,h->n", vectors, self.embed(self.encode([query]))[0])
        clipped: Float32s = np.clip(cosines, 0, 1).astype(np.float32)
        return clipped

    def read_ahead(self, texts: Sequence[Ids]) -> None:
        """See ApartScorer; remembered as all that is embedded."""
        self.embed(texts)

    def embed(self, pieces: Sequence[Ids]) -> Float32s:
        """Unit vectors (n, hidden) of encoded texts."""
        if not pieces:
            return np.empty((0, self.checkpoint.shape.hidden), np.float32)
        check_room(pieces, self._room)
        known, keys = self._vectors, [piece.tobytes() for piece in pieces]
        # Found once: another thread may forget them meanwhile.
        found = {key: vector for key in keys if (vector := known.get(key)) is not None}
        new = {k: p for k, p in zip(keys, pieces, strict=True) if k not in found}
        inputs = [self._pieces.single(piece) for piece in new.values()]
        # Copied: a view would keep its whole batch.
        made = {k: v.copy() for k, v in zip(new, self._session.run(inputs), strict=True)}
        found |= made
        with self._remembering:
            known |= made
            for oldest in list(islice(known, max(0, len(known) - REMEMBERED))):
                del known[oldest]
        return np.stack([found[key] for key in keys])
