"""How do texts become term numbers, so that each distinct span of text is analyzed only once?"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from birchbark.compiled import compiled
from birchbark.index.arrays import GrowingArray
from birchbark.index.string_ids import StringIds
from birchbark.index.word_spans import token_spans, word_spans
from birchbark.text.analyzer import Analyzer
from birchbark.text.words import pieces, words

STEP = 65_536  # terms that are numbered at once, so that other threads can run


class Vocabulary:
    """The terms of a field, numbered by first occurrence, and the terms of each distinct span."""

    def __init__(self, analyzer: Analyzer) -> None:
        self._analyzer = analyzer
        self._compiled = analyzer.tokens is words  # word_spans.py has a compiled version of it
        self._spans = StringIds()
        self._term_numbers: defaultdict[str, int] = defaultdict()
        self._term_numbers.default_factory = self._term_numbers.__len__
        # The terms of span s are span_terms[ends[s - 1]:ends[s]]; it consists of tokens[s] tokens.
        self._ends = GrowingArray(np.int64)
        self._span_terms = GrowingArray(np.uint32)
        self._tokens = GrowingArray(np.uint32)

    def __len__(self) -> int:
        """The number of distinct spans analyzed so far."""
        return len(self._tokens)

    @property
    def terms(self) -> list[str]:
        """All terms, in the order of their numbers."""
        return list(self._term_numbers)

    def read(self, texts: Sequence[str]) -> tuple[NDArray[np.uint32], NDArray[np.int64], int]:
        """Analyze `texts`.

        Returns the term numbers of all texts, end to end; the number of terms in each text,
        (texts,); and the total number of tokens, including stop words.
        """
        if self._compiled:
            spans = word_spans(texts)
        else:
            spans = token_spans([*map(self._analyzer.tokens, texts)])
        numbers, new = self._spans.assign(spans)
        self._analyze(spans.strings(new))
        of_spans = (self._ends.values, self._span_terms.values, self._tokens.values)
        terms, counts, tokens = _look_up(numbers, spans.firsts, *of_spans)
        return terms, counts, tokens

    def _analyze(self, spans: Sequence[str]) -> None:
        """Store the terms of new spans, in the order of their numbers."""
        normalise = self._analyzer.normalise
        terms: list[str] = []
        ends, counts = [], []
        for span in spans:
            unsplit = self._compiled and not span.isascii()
            count = 0
            for tokens in map(words, pieces(span)) if unsplit else ([span],):
                for token in tokens:
                    terms += normalise(token)
                count += len(tokens)
                if len(terms) > STEP:
                    self._store(terms)
            ends.append(len(self._span_terms) + len(terms))
            counts.append(count)
        self._store(terms)
        self._ends.extend(ends)
        self._tokens.extend(counts)

    def _store(self, terms: list[str]) -> None:
        """Append the numbers of `terms` to those of the spans, in steps; empty the list."""
        for begin in range(0, len(terms), STEP):
            some = terms[begin : begin + STEP]
            self._span_terms.extend([*map(self._term_numbers.__getitem__, some)])
        terms.clear()


@compiled
def _look_up(numbers: Any, firsts: Any, ends: Any, span_terms: Any, tokens: Any) -> Any:
    """Return the result of `Vocabulary.read` for texts whose spans are numbered.

    numbers: (n,), the numbers of the spans of all texts. firsts: (texts + 1,), each text's first
    span. ends: (distinct spans,), where each one's terms end in `span_terms`. span_terms: the terms
    of the distinct spans, end to end. tokens: (distinct spans,), the number of tokens in each.
    """
    # Count terms and tokens.
    size, token_count = 0, 0
    for number in numbers:
        size += ends[number] - (ends[number - 1] if number else 0)
        token_count += tokens[number]
    # Copy the terms of each span.
    terms = np.empty(size, np.uint32)
    counts = np.zeros(len(firsts) - 1, np.int64)
    at = 0
    for text in range(len(counts)):
        before = at
        for number in numbers[firsts[text] : firsts[text + 1]]:
            for j in range(ends[number - 1] if number else 0, ends[number]):
                terms[at] = span_terms[j]
                at += 1
        counts[text] = at - before
    return terms, counts, token_count
