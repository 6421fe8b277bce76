"""How is no pair scored twice? The scores that are known are asked first, and keep what is new."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from typing import Protocol, cast

import numpy as np
from numpy.typing import NDArray

from birchbark.records import Float32s, Ids
from birchbark.remember.file import Keys, keys_of, shaped
from birchbark.remember.lookup import Lookup
from birchbark.score.scorer import DocumentScorer, Scorer


class Scores(Protocol):
    """Scores by key: a ScoreStore on disk, or Recent or Known ones in memory."""

    def keys(self, query: str, pieces: Sequence[Ids]) -> Keys:
        """Keys (n, 2) of encoded texts for one query."""
        ...

    def find(self, keys: Keys) -> tuple[Float32s, NDArray[np.bool_]]:
        """Scores (n,) or vectors (n, width), NaN where there is none, and which are known (n,)."""
        ...

    def add(self, keys: Keys, scores: Float32s) -> None:
        """Keep the scores (n,) of `keys` (n, 2), which are not known yet."""
        ...


class Known(Lookup):
    """Scores in memory alone, 20 bytes each, or vectors."""

    def keys(self, query: str, pieces: Sequence[Ids]) -> Keys:
        """See Scores."""
        return keys_of("", query, pieces)


def beneath(scorer: Scorer) -> Scorer:
    """The scorer that computes, behind one that remembers."""
    return scorer.scorer if isinstance(scorer, Remembering) else scorer


def for_one_query(scorer: Scorer) -> Remembering:
    """`scorer`, remembering while one query lasts; what others ask beside is counted apart."""
    inner = scorer.apart() if isinstance(scorer, Remembering) else scorer
    return Remembering(inner, Known(scorer.width))


class Remembering:
    """A scorer that asks `scores` first, and has only scored what is not there: the same bits.

    scored, known: distinct pairs so far that were scored, and that were found.
    """

    def __init__(self, scorer: Scorer, scores: Scores, whole: Remembering | None = None) -> None:
        """`scores` hold those of `scorer` alone. whole: counts what this one counts, as well."""
        self.name, self.kind = scorer.name, scorer.kind
        self.room, self.spans, self.encode = scorer.room, scorer.spans, scorer.encode
        self.scorer, self._scores, self._whole = scorer, scores, whole
        self.scored = self.known = 0
        self._counting = Lock()

    def apart(self) -> Remembering:
        """The same, with counts of its own: those of one query, while others run beside it."""
        return Remembering(self.scorer, self._scores, self)

    @property
    def fingerprint(self) -> str:
        """The scorer's."""
        return self.scorer.fingerprint

    @property
    def encoding(self) -> str:
        """The scorer's."""
        return self.scorer.encoding

    @property
    def vocabulary(self) -> int:
        """The scorer's."""
        return self.scorer.vocabulary

    @property
    def width(self) -> int:
        """The scorer's."""
        return self.scorer.width

    def judge(self, values: Float32s) -> tuple[float, NDArray[np.float64]]:
        """See DocumentScorer; only where `width` is above 1."""
        return cast(DocumentScorer, self.scorer).judge(values)

    def score(self, query: str, pieces: Sequence[Ids]) -> Float32s:
        """See Scorer; equal pieces are scored once, and all are kept before this returns."""
        if not pieces:
            return np.empty((0, *shaped(self.width)), np.float32)
        keys = self._scores.keys(query, pieces)
        distinct, first, place = np.unique(keys, axis=0, return_index=True, return_inverse=True)
        scores, known = self._scores.find(distinct)
        new = np.flatnonzero(~known)
        if len(new):
            new = new[np.argsort(first[new])]  # in the order given
            scores[new] = self.scorer.score(query, [pieces[i] for i in first[new]])
            self._scores.add(distinct[new], scores[new])
        self._count(len(new), len(distinct) - len(new))
        return scores[place.reshape(-1)]

    def _count(self, scored: int, known: int) -> None:
        with self._counting:
            self.scored += scored
            self.known += known
        if self._whole:
            self._whole._count(scored, known)
