"""Which analyzers are there, and what does each do to a token?

plain     lower case
porter    lower case, Porter stem
english   possessive 's off, lower case, Lucene's 33 stop words out, Porter stem
(Lucene's EnglishAnalyzer, Anserini's default)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

from birchbark.errors import InputError
from birchbark.text.wordpiece import WordPieces
from birchbark.text.words import words

STOP_WORDS = frozenset(
    [
        "a",
        "an",
        "and",
        "are",
        "as",
        "at",
        "be",
        "but",
        "by",
        "for",
        "if",
        "in",
        "into",
        "is",
        "it",
        "no",
        "not",
        "of",
        "on",
        "or",
        "such",
        "that",
        "the",
        "their",
        "then",
        "there",
        "these",
        "they",
        "this",
        "to",
        "was",
        "will",
        "with",
    ]
)
LONGEST_TERM = 255


@dataclass(frozen=True, slots=True)
class Analyzer:
    """Text to terms in two steps: `tokens` splits, `normalise` maps one token to its terms.

    `normalise` depends on the token alone, so that callers may remember its answers. `unknown`: the
    tokens without terms because a vocabulary does not know them, rather than by choice.
    """

    name: str
    tokens: Callable[[str], list[str]]
    normalise: Callable[[str], tuple[str, ...]]
    unknown: Callable[[str], bool] = lambda token: False

    def terms(self, text: str) -> list[str]:
        """The index terms of `text`, in order, repeated as often as they occur."""
        return [term for token in self.tokens(text) for term in self.normalise(token)]


def analyzer(name: str, vocabulary: Sequence[str] | None = None) -> Analyzer:
    """The analyzer called `name`. vocabulary: WordPieces in the order of their ids, if needed.

    Raises InputError for an unknown name (it lists the names there are) and for a vocabulary that
    is missing, or given to an analyzer that has none.
    """
    if name not in NAMES:
        raise InputError(f"unknown analyzer {name!r}", remedy=f"one of {', '.join(NAMES)}")
    if (vocabulary is not None) != (name in WORDPIECE):
        raise InputError(
            f"analyzer {name} takes {'a' if name in WORDPIECE else 'no'} vocabulary",
            remedy="a BERT model's, for wordpiece and porter+wordpiece alone",
        )
    if vocabulary is None:
        return Analyzer(name, words, NORMALISERS[name])
    pieces = WordPieces(vocabulary, WORDPIECE[name])
    return Analyzer(name, pieces.tokens, pieces.normalise, pieces.unknown)


def keyword() -> Analyzer:
    """The whole text as one term, as it stands: for values that are filtered by, not searched."""
    return Analyzer("keyword", lambda text: [text] if text else [], lambda token: (token,))


def plain(token: str) -> tuple[str, ...]:
    """Lower case; tokens over 255 characters are cut into pieces of that length, as in Lucene."""
    lowered = token.lower()
    if len(lowered) <= LONGEST_TERM:
        return (lowered,)
    return tuple(lowered[i : i + LONGEST_TERM] for i in range(0, len(lowered), LONGEST_TERM))


def porter(token: str) -> tuple[str, ...]:
    """Lower case, then Porter's stemmer of 1980."""
    return tuple([stem(term) for term in plain(token)])


def english(token: str) -> tuple[str, ...]:
    """Lucene's EnglishAnalyzer: possessive, lower case, stop words, Porter."""
    if token[-2:] in {"'s", "'S", "’s", "’S", "＇s", "＇S"}:
        token = token[:-2]
    return tuple([stem(term) for term in plain(token) if term not in STOP_WORDS])


NORMALISERS = {"english": english, "porter": porter, "plain": plain}


def stem(term: str) -> str:
    """Porter's stem; terms of one or two letters stay, as in Porter's own programs."""
    return term if len(term) < 3 else _stemmer()(term)


@cache
def _stemmer() -> Callable[[str], str]:
    from Stemmer import Stemmer

    # Its own cache costs more than it saves where each distinct token is asked for once.
    return Stemmer("porter", 0).stemWord  # type: ignore[no-any-return]


WORDPIECE: dict[str, Callable[[str], str]] = {"wordpiece": str, "porter+wordpiece": stem}
NAMES = (*NORMALISERS, *WORDPIECE)
