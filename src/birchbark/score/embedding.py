"""How similar are query and segment as sentence embeddings?"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import islice

import numpy as np

from birchbark.records import Float32s
from birchbark.score.checkpoint import Checkpoint
from birchbark.score.precision import Precision
from birchbark.score.scorer import check_room, too_long
from birchbark.score.session import Session
from birchbark.score.tokenizer import Pieces

REMEMBERED = 100_000


class EmbeddingScorer:
    """Cosine of the query's and the segment's embedding; negative values become 0.

    Segment vectors are remembered, the last 100,000 of them (150 MB at 384 dimensions), so that a
    sentence met again, for this or another query, costs nothing.
    """

    kind = "embedding"

    def __init__(
        self,
        checkpoint: Checkpoint,
        threads: int | None = None,
        precision: Precision = Precision.FP32,
    ) -> None:
        """Load `checkpoint`, whose head is a Pooling."""
        self.name = f"cosine of {checkpoint.name} embeddings{precision.suffix}"
        self._checkpoint = checkpoint
        self._pieces = Pieces(checkpoint)
        self._room = checkpoint.max_length - self._pieces.extra_single
        self._session = Session(checkpoint, threads, precision=precision)
        self._vectors: dict[str, Float32s] = {}

    @cached_property
    def fingerprint(self) -> str:
        """The checkpoint's, with the arithmetic: see Session.fingerprint."""
        return self._session.fingerprint(self._checkpoint.fingerprint)

    def room(self, query: str) -> int:
        """The model's length without special tokens; the query has an input of its own."""
        most = self._room
        length = len(self.spans(query))
        if length > most:
            raise too_long(query, length, most)
        return most

    def spans(self, text: str) -> list[tuple[int, int]]:
        """See Scorer."""
        return self._pieces.spans(text)

    def score(self, query: str, texts: Sequence[str]) -> Float32s:
        """Cosines in [0, 1], float32 (n,)."""
        if not texts:
            return np.empty(0, np.float32)
        cosines = np.einsum("nh,h->n", self.embed(texts), self.embed([query])[0])
        clipped: Float32s = np.clip(cosines, 0, 1).astype(np.float32)
        return clipped

    def embed(self, texts: Sequence[str]) -> Float32s:
        """Unit vectors (n, hidden) of `texts`."""
        if not texts:
            return np.empty((0, self._checkpoint.shape.hidden), np.float32)
        known = self._vectors
        new = list(dict.fromkeys(text for text in texts if text not in known))
        pieces = self._pieces.encode(new)
        check_room([len(p) for p in pieces], new, self._room)
        inputs = [self._pieces.single(p) for p in pieces]
        for text, vector in zip(new, self._session.run(inputs), strict=True):
            known[text] = vector.copy()  # a view would keep its whole batch
        found = np.stack([known[text] for text in texts])
        for oldest in list(islice(known, max(0, len(known) - REMEMBERED))):
            del known[oldest]
        return found
