"""How well does each word of the query find its like in a segment?

Late interaction, as ColBERT has it (Khattab & Zaharia 2020): query and segment are read apart, as
for an embedding, but every token keeps its vector. Nothing is trained for it: an embedding's own
token vectors do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from birchbark.checkpoint.reader import Checkpoint
from birchbark.records import Float32s, Ids
from birchbark.score.bert import ApartScorer
from birchbark.score.scorer import check_room
from birchbark.score.session import NewSession, Session, row_starts


class LateInteractionScorer(ApartScorer):
    """MaxSim: each query token's largest cosine with a token of the segment, mean over the query.

    The segment's special tokens take part, the query's do not. Negative values become 0. Vectors
    are not remembered, unless they were read ahead: a segment has as many as tokens.
    """

    kind = "late-interaction"

    def __init__(
        self, checkpoint: Checkpoint, threads: int | None = None, session: NewSession = Session
    ) -> None:
        """Load `checkpoint`, whose head is a Pooling of tokens."""
        super().__init__(checkpoint, threads, session)
        self._ahead: Mapping[bytes, Float32s] = {}
        self.name = f"late interaction of {checkpoint.name} tokens"

    def score(self, query: str, pieces: Sequence[Ids]) -> Float32s:
        """MaxSim in [0, 1], float32 (n,); 0 for a query without tokens."""
        check_room(pieces, self._room)
        asked = self.encode([query])[0]
        own, *others = self._read([asked, *pieces])
        ((first, end),) = self._pieces.sides(None, len(asked))
        return _similar(own[first:end], others)

    def read_ahead(self, texts: Sequence[Ids]) -> None:
        """See ApartScorer; what was read ahead before is forgotten."""
        self._ahead = {}
        vectors = self._read(texts)
        self._ahead = {text.tobytes(): one for text, one in zip(texts, vectors, strict=True)}

    def _read(self, texts: Sequence[Ids]) -> list[Float32s]:
        """Unit vectors (tokens, hidden) of each text, special tokens included."""
        keys, ahead = [text.tobytes() for text in texts], self._ahead
        distinct = dict(zip(keys, texts, strict=True))
        new = {k: self._pieces.single(text) for k, text in distinct.items() if k not in ahead}
        if not new:
            return [ahead[key] for key in keys]
        rows = self._session.run(list(new.values()))
        starts = row_starts([len(one) for one in new.values()], by_token=True)
        found = {**ahead, **dict(zip(new, np.split(rows, starts[1:-1]), strict=True))}
        return [found[key] for key in keys]


def _similar(query: Float32s, texts: Sequence[Float32s]) -> Float32s:
    """MaxSim of unit vectors (tokens, hidden) with those of each text: float32 (n,)."""
    if not len(query) or not texts:
        return np.zeros(len(texts), np.float32)
    # No matrix product: its last bits would depend on how many texts there are.
    cosines = np.einsum("th,qh->tq", np.concatenate(texts), query)
    starts = row_starts([len(one) for one in texts], by_token=True)[:-1]
    best = np.maximum.reduceat(cosines, starts, axis=0)
    clipped: Float32s = np.clip(best.mean(1), 0, 1).astype(np.float32)
    return clipped
