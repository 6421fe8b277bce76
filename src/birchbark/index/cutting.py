"""Where are the words in many texts? The compiled counterpart of `text.words`.

Only the rule for ASCII is compiled. Texts are first cut at blanks, which no word spans; of the
chunks between them, those of ASCII are cut into words, and any other is one piece, whole, for
`words` to cut. So `words` of the pieces are the words of the text, which a test holds.
"""

from __future__ import annotations

import string
from collections.abc import Iterable, Sequence, Sized
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from birchbark.index.compiled import compiled
from birchbark.text.words import BETWEEN_DIGITS, BETWEEN_LETTERS

LETTER, DIGIT, UNDERSCORE, BLANK, BEYOND = 1, 2, 4, 64, 128
JOINS = 3  # a byte of kind LETTER << JOINS joins two letters, DIGIT << JOINS two digits
KINDS = np.zeros(256, np.uint8)
for _kind, _signs in (
    (LETTER, string.ascii_letters),
    (DIGIT, string.digits),
    (UNDERSCORE, "_"),
    (BLANK, " \t\r\n"),
    (LETTER << JOINS, BETWEEN_LETTERS),
    (DIGIT << JOINS, BETWEEN_DIGITS),
):
    KINDS[[*map(ord, _signs)]] |= _kind
KINDS[128:] = BEYOND


@dataclass(frozen=True, slots=True)
class Pieces:
    """Pieces of texts. Piece i is data[begins[i]:ends[i]], UTF-8.

    begins, ends: int64 (n,). firsts: int64 (texts + 1,), each text's first piece.
    """

    data: bytes
    begins: NDArray[np.int64]
    ends: NDArray[np.int64]
    firsts: NDArray[np.int64]

    def take(self, numbers: NDArray[np.int64]) -> list[str]:
        """The pieces of these numbers."""
        begins, ends = self.begins[numbers].tolist(), self.ends[numbers].tolist()
        return [str(self.data[a:b], "utf-8") for a, b in zip(begins, ends, strict=True)]


def cut(texts: Sequence[str]) -> Pieces:
    """The pieces of `texts`: a word of ASCII each, or what stands between blanks."""
    data, bounds = _joined(texts)
    return Pieces(data, *_cut(np.frombuffer(data, np.uint8), bounds, KINDS))


def given(tokens: Sequence[Sequence[str]]) -> Pieces:
    """The tokens of each text as its pieces, where another rule has cut it."""
    data, bounds = _joined([token for found in tokens for token in found])
    return Pieces(data, bounds[:-1], bounds[1:], _bounds(tokens))


def _joined(strings: Iterable[str]) -> tuple[bytes, NDArray[np.int64]]:
    """The UTF-8 of `strings` end to end; where each begins, and the end."""
    encoded = [text.encode() for text in strings]
    return b"".join(encoded), _bounds(encoded)


def _bounds(found: Iterable[Sized]) -> NDArray[np.int64]:
    """Where each of `found` begins if they stand end to end, and the end."""
    return np.array([0, *accumulate(map(len, found))], np.int64)


@compiled
def _cut(data: Any, bounds: Any, kinds: Any) -> tuple[Any, Any, Any]:
    """`begins`, `ends` and `firsts` of Pieces; text t is data[bounds[t]:bounds[t + 1]]."""
    most = (len(data) + len(bounds)) // 2 + 1
    begins, ends = np.empty(most, np.int64), np.empty(most, np.int64)
    firsts = np.zeros(len(bounds), np.int64)
    count = 0
    for text in range(len(bounds) - 1):
        at, stop = bounds[text], bounds[text + 1]
        while at < stop:
            begin, seen = at, 0
            while at < stop and kinds[data[at]] != BLANK:
                seen |= kinds[data[at]]
                at += 1
            if seen & BEYOND:
                begins[count], ends[count] = begin, at
                count += 1
            else:
                count = _cut_ascii(data, begin, at, kinds, begins, ends, count)
            at += 1
        firsts[text + 1] = count
    return begins[:count], ends[:count], firsts


@compiled
def _cut_ascii(
    data: Any, at: int, stop: int, kinds: Any, begins: Any, ends: Any, count: int
) -> int:
    """Add the words in data[at:stop]; returns the count of pieces then."""
    word = LETTER | DIGIT | UNDERSCORE
    while at < stop:
        begin, seen = at, 0
        while at < stop and kinds[data[at]] & word:
            seen |= kinds[data[at]]
            at += 1
            if at + 1 < stop and kinds[data[at - 1]] & kinds[data[at + 1]] & (
                kinds[data[at]] >> JOINS
            ):
                at += 1
        if seen & (LETTER | DIGIT):
            begins[count], ends[count] = begin, at
            count += 1
        elif at == begin:
            at += 1
    return count
