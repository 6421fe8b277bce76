"""How is no pair scored twice? The store is asked first, and keeps what is new."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from birchbark.records import Float32s
from birchbark.score.scorer import Scorer
from birchbark.score.store import ScoreStore

BATCH_TOKENS = 4096  # what a kill can cost: a second of a small model, ten of BERT-base


class Remembering:
    """A scorer that asks `store` first, and scores only what is not there: the same bits.

    scored, known: distinct pairs so far that were scored, and that were found.
    """

    def __init__(self, scorer: Scorer, store: ScoreStore) -> None:
        """`store` must have been opened for `scorer`."""
        self.name, self.kind, self.fingerprint = scorer.name, scorer.kind, scorer.fingerprint
        self.room, self.spans = scorer.room, scorer.spans
        self._scorer, self._store = scorer, store
        self.scored = self.known = 0

    def score(self, query: str, texts: Sequence[str]) -> Float32s:
        """See Scorer; equal texts are scored once, and each batch is kept before the next."""
        place = {text: i for i, text in enumerate(dict.fromkeys(texts))}
        distinct = list(place)
        keys = self._store.keys(query, distinct)
        scores, known = self._store.find(keys)
        self.known += int(known.sum())
        for batch in self._batches(distinct, np.flatnonzero(~known).tolist()):
            scores[batch] = self._scorer.score(query, [distinct[i] for i in batch])
            self._store.add(keys[batch], scores[batch])
            self.scored += len(batch)
        return scores[[place[text] for text in texts]]

    def _batches(self, texts: Sequence[str], new: list[int]) -> Iterator[list[int]]:
        """Positions `new` by length, about BATCH_TOKENS tokens a batch: few lengths in each."""
        length = {i: len(self.spans(texts[i])) for i in new}
        batch: list[int] = []
        tokens = 0
        for i in sorted(new, key=length.__getitem__):
            batch.append(i)
            tokens += length[i] + 2
            if tokens >= BATCH_TOKENS:
                yield batch
                batch, tokens = [], 0
        if batch:
            yield batch
