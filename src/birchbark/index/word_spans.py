"""Where are the words in many texts, found by compiled code with the rule of `text.words`?

Indexing takes three steps. This module splits texts into spans, string_ids.py assigns the same
number to equal spans, and vocabulary.py analyzes each distinct span once.

Only the rule for ASCII is compiled. Texts are first split at blanks, which no word contains. A
chunk between blanks that is all ASCII is split into words, and each becomes a span. Any other chunk
becomes a single span, which `words` splits later. A test verifies that `words` returns the same for
the spans as for the text.
"""

from __future__ import annotations

import string
from collections.abc import Iterable, Sequence, Sized
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from birchbark.compiled import compiled
from birchbark.text.words import BETWEEN_DIGITS, BETWEEN_LETTERS

# The kind of each byte, as flags.
LETTER, DIGIT, UNDERSCORE, BLANK, NON_ASCII = 1, 2, 4, 64, 128
JOINS = 3  # LETTER << JOINS marks a byte that joins two letters, DIGIT << JOINS two digits
KINDS = np.zeros(256, np.uint8)
for _kind, _characters in (
    (LETTER, string.ascii_letters),
    (DIGIT, string.digits),
    (UNDERSCORE, "_"),
    (BLANK, " \t\r\n"),
    (LETTER << JOINS, BETWEEN_LETTERS),
    (DIGIT << JOINS, BETWEEN_DIGITS),
):
    KINDS[[*map(ord, _characters)]] |= _kind
KINDS[128:] = NON_ASCII


@dataclass(frozen=True, slots=True)
class WordSpans:
    """Spans of texts. Span i is data[begins[i]:ends[i]], in UTF-8.

    data: the bytes that contain all spans. begins, ends: int64 (spans,). firsts: int64
    (texts + 1,), the first span of each text.
    """

    data: bytes
    begins: NDArray[np.int64]
    ends: NDArray[np.int64]
    firsts: NDArray[np.int64]

    def strings(self, positions: NDArray[np.int64]) -> list[str]:
        """Return the spans at `positions`."""
        begins, ends = self.begins[positions].tolist(), self.ends[positions].tolist()
        return [str(self.data[a:b], "utf-8") for a, b in zip(begins, ends, strict=True)]


def word_spans(texts: Sequence[str]) -> WordSpans:
    """Split `texts` into spans: ASCII words, and chunks between blanks that are not all ASCII."""
    data, bounds = _join(texts)
    return WordSpans(data, *_cut(np.frombuffer(data, np.uint8), bounds, KINDS))


def token_spans(tokens: Sequence[Sequence[str]]) -> WordSpans:
    """Return a span per token of each text, for texts that another tokeniser has split."""
    data, bounds = _join([token for of_text in tokens for token in of_text])
    return WordSpans(data, bounds[:-1], bounds[1:], _bounds(tokens))


def _join(strings: Iterable[str]) -> tuple[bytes, NDArray[np.int64]]:
    """Return the UTF-8 of `strings` end to end, and where each one begins, (strings + 1,)."""
    encoded = [text.encode() for text in strings]
    return b"".join(encoded), _bounds(encoded)


def _bounds(items: Iterable[Sized]) -> NDArray[np.int64]:
    """Return where each of `items` begins if they are joined end to end, and the total length."""
    return np.array([0, *accumulate(map(len, items))], np.int64)


@compiled
def _cut(data: Any, bounds: Any, kinds: Any) -> tuple[Any, Any, Any]:
    """Return `begins`, `ends` and `firsts` of WordSpans; text t is data[bounds[t]:bounds[t + 1]].

    data: uint8 (bytes,). bounds: (texts + 1,). kinds: (256,), see KINDS.
    """
    # A byte separates two spans of a text, so there cannot be more spans than this.
    limit = (len(data) + len(bounds)) // 2 + 1
    begins, ends = np.empty(limit, np.int64), np.empty(limit, np.int64)
    firsts = np.zeros(len(bounds), np.int64)
    count = 0
    for text in range(len(bounds) - 1):
        at, stop = bounds[text], bounds[text + 1]
        while at < stop:
            # Find the next blank, and the kinds of the bytes before it.
            begin, seen = at, 0
            while at < stop and kinds[data[at]] != BLANK:
                seen |= kinds[data[at]]
                at += 1
            # Add the chunk as a single span, or split it into words.
            if seen & NON_ASCII:
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
    """Append the words in data[at:stop] to the spans; return the new number of spans."""
    word = LETTER | DIGIT | UNDERSCORE
    while at < stop:
        # Extend the word, also across a joining byte between two letters or two digits.
        begin, seen = at, 0
        while at < stop and kinds[data[at]] & word:
            seen |= kinds[data[at]]
            at += 1
            if at + 1 < stop and kinds[data[at - 1]] & kinds[data[at + 1]] & (
                kinds[data[at]] >> JOINS
            ):
                at += 1
        # Add it unless it has only underscores; skip a byte that does not begin a word.
        if seen & (LETTER | DIGIT):
            begins[count], ends[count] = begin, at
            count += 1
        elif at == begin:
            at += 1
    return count
