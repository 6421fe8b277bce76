"""Which texts share terms with a query, and where are these terms?"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from birchbark.retrieve.engine import DocumentStore, term_weighting
from birchbark.text.analyzer import Analyzer, analyzer
from birchbark.text.words import placed_words, words

MAX_KNOWN_TOKENS = 1_000_000  # about 100 MB
# Words that ask, and say nothing about what is asked for. They do not count beside other words.
ASKING = frozenset(
    "am are can could did do does get had has have how i is may me might must my need needs our "
    "shall should us was we were what when where which who whom whose why will would you "
    "your".split()
)
MIN_PREFIX = 3  # letters; a stem is at least this similar to the word it comes from


class KnownTokens:
    """The distinct tokens that texts have shown so far, by their terms. Threads may share it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._known: set[str] = set()
        self._tokens: dict[str, set[str]] = {}  # term → tokens that have it

    def matching(
        self, tokens: Iterable[set[str]], terms: Iterable[str], analyzer: Analyzer
    ) -> dict[str, list[str]]:
        """See `TermIndex.matching`. analyzer: the same in all calls."""
        seen: set[str] = set().union(*tokens)
        with self._lock:
            if len(self._known) > MAX_KNOWN_TOKENS:
                self._known, self._tokens = set(), {}
            for token in seen - self._known:
                for term in analyzer.normalise(token):
                    self._tokens.setdefault(term, set()).add(token)
                self._known.add(token)
            found: dict[str, list[str]] = {}
            for term in terms:
                for token in self._tokens.get(term, ()):
                    found.setdefault(token, []).append(term)
            return found


class TermIndex:
    """The terms of tokens and their weights; shared by all queries.

    A token is analyzed once, not once per query.
    """

    def __init__(self, store: DocumentStore, known: KnownTokens | None = None) -> None:
        """Use the analyzer and idf of `store`; without them, `english` and equal weights.

        known: the tokens of another index with the same analyzer.
        """
        self._weighting = term_weighting(store)
        self.analyzer: Analyzer = (
            self._weighting.analyzer if self._weighting else analyzer("english")
        )
        self._known = known or KnownTokens()

    def overlap(self, query: str) -> TermOverlap:
        """Return the scoring of texts for one query.

        Its ASKING words count only if it has no others. Words in capitals, such as WHO, are names.
        """
        terms = self.analyzer.terms(query)
        in_query = words(query)
        content = [w for w in in_query if w.isupper() or w.lower() not in ASKING]
        if len(content) < len(in_query) and not self.analyzer.across:
            terms = self.analyzer.terms(" ".join(content)) or terms
        weights = self._weighting.idf(terms) if self._weighting else dict.fromkeys(terms, 1.0)
        return TermOverlap(self, weights)

    def matching(self, tokens: Iterable[set[str]], terms: Iterable[str]) -> dict[str, list[str]]:
        """Return the tokens, of these and earlier texts, that have one of `terms`, with these."""
        return self._known.matching(tokens, terms, self.analyzer)


class TermOverlap:
    """Scores texts by the query's terms that they contain: Σ idf over the distinct terms."""

    def __init__(self, index: TermIndex, weights: Mapping[str, float]) -> None:
        """weights: term of the query → its idf."""
        self._index, self._weights = index, dict(weights)

    @property
    def terms(self) -> Collection[str]:
        """The terms of the query that count."""
        return self._weights.keys()

    def scores(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Return the score (n,) of each text, 0 or more."""
        tokens = [set(self._index.analyzer.tokens(text)) for text in texts]
        matching = self._index.matching(tokens, self._weights)
        return np.array([self._score(of_text & matching.keys(), matching) for of_text in tokens])

    def rough_scores(self, texts: Iterable[str]) -> Iterator[float]:
        """Yield a quick estimate of each text's score, from the beginnings of the query's terms.

        It looks for strings instead of words, which is much faster than analyzing the text.
        """
        beginnings = [(_beginnings(term), weight) for term, weight in self._weights.items()]
        for text in texts:
            lower = text.lower()
            yield sum(w for spellings, w in beginnings if any(s in lower for s in spellings))

    def marks(self, text: str) -> tuple[tuple[int, int], ...]:
        """Return where the words of the query are in the text, as (start, end), in order."""
        in_text = placed_words(text)
        spans = [(begin, end) for _, begin, end in in_text]
        split = self._index.analyzer.tokens
        tokens = [set(split(word)) for word, _, _ in in_text]
        across = [set[str]() for _ in spans[1:]]  # tokens of each word and the next one together
        if self._index.analyzer.across:
            for n, ((begin, end), (next_begin, next_end)) in enumerate(pairwise(spans)):
                if end == next_begin:
                    across[n] = set(split(text[begin:next_end])) - tokens[n] - tokens[n + 1]
        matching = self._index.matching([*tokens, *across], self._weights).keys()
        marked = {n for n, of_word in enumerate(tokens) if of_word & matching}
        for n, of_both in enumerate(across):
            if of_both & matching:
                marked |= {n, n + 1}
        return tuple(sorted({spans[n] for n in marked}))

    def _score(self, tokens: Iterable[str], matching: Mapping[str, list[str]]) -> float:
        terms = {term for token in tokens for term in matching[token]}
        return sum(sorted(self._weights[term] for term in terms))


def _beginnings(term: str) -> list[str]:
    """Return how words begin that have this term, in lower case; stems end in i instead of y."""
    beginning = term[: max(MIN_PREFIX, len(term) - 1)]
    return [beginning, *([beginning[:-1] + "y"] if beginning.endswith("i") else [])]
