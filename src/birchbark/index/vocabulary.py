"""Which terms do texts become, as numbers? Each distinct token is analyzed once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from birchbark.index.arrays import Growing
from birchbark.index.compiled import compiled
from birchbark.index.cutting import cut, given
from birchbark.index.numbering import Numbering
from birchbark.text.analyzer import Analyzer
from birchbark.text.words import words


class Vocabulary:
    """The terms of a field, numbered as they come, and what each piece of text stands for."""

    def __init__(self, chosen: Analyzer) -> None:
        self._analyzer = chosen
        self._words = chosen.tokens is words
        self._pieces = Numbering()
        self._terms: defaultdict[str, int] = defaultdict()
        self._terms.default_factory = self._terms.__len__
        self._ends = Growing(np.int64)  # piece → where its terms end in the next
        self._flat = Growing(np.uint32)
        self._tokens = Growing(np.uint32)  # piece → how many tokens it is

    def __len__(self) -> int:
        """How many pieces were analyzed."""
        return len(self._tokens)

    @property
    def terms(self) -> list[str]:
        """All terms, in the order of their numbers."""
        return list(self._terms)

    def read(self, texts: Sequence[str]) -> tuple[NDArray[np.uint32], NDArray[np.int64], int]:
        """The numbers of the terms of `texts`, end to end; how many each has; how many tokens."""
        pieces = cut(texts) if self._words else given([*map(self._analyzer.tokens, texts)])
        numbers, fresh = self._pieces.of(pieces)
        self._learn(pieces.take(fresh))
        known = (self._ends.values, self._flat.values, self._tokens.values)
        terms, counts, tokens = _spelled(numbers, pieces.firsts, *known)
        return terms, counts, tokens

    def _learn(self, pieces: Sequence[str]) -> None:
        """Analyze the pieces of the next numbers."""
        normalise = self._analyzer.normalise
        terms: list[str] = []
        ends, counts = [], []
        for piece in pieces:
            tokens = words(piece) if self._words and not piece.isascii() else [piece]
            for token in tokens:
                terms += normalise(token)
            ends.append(len(self._flat) + len(terms))
            counts.append(len(tokens))
        self._ends.extend(ends)
        self._tokens.extend(counts)
        self._flat.extend([*map(self._terms.__getitem__, terms)])


@compiled
def _spelled(numbers: Any, firsts: Any, ends: Any, flat: Any, tokens: Any) -> Any:
    """Pieces, by number, as `read` returns them. firsts: (texts + 1,) each text's first piece."""
    size, read = 0, 0
    for number in numbers:
        size += ends[number] - (ends[number - 1] if number else 0)
        read += tokens[number]
    terms = np.empty(size, np.uint32)
    counts = np.zeros(len(firsts) - 1, np.int64)
    at = 0
    for text in range(len(counts)):
        before = at
        for number in numbers[firsts[text] : firsts[text + 1]]:
            for j in range(ends[number - 1] if number else 0, ends[number]):
                terms[at] = flat[j]
                at += 1
        counts[text] = at - before
    return terms, counts, read
