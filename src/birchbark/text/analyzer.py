"""Which analyzers are there, and how does each turn a token into terms?

plain             lowercases
porter            lowercases, applies the Porter stemmer
unstemmed         removes possessive 's, lowercases, removes Lucene's 33 stop words (Anserini's
                  analyzer without a stemmer)
english           removes possessive 's, lowercases, removes Lucene's 33 stop words, applies the
                  Porter stemmer (Lucene's EnglishAnalyzer, Anserini's default)
german, french, … lowercases, applies the Snowball stemmer of the language (see LANGUAGES)
cjk               pairs of neighbouring characters and single Chinese characters, for Chinese,
                  Japanese and Korean
wordpiece         splits words into the WordPiece tokens of a BERT vocabulary
porter+wordpiece  applies the Porter stemmer, then splits stems into WordPiece tokens

All of them read texts in normal form (normal_form.py). One that ends in +parts, such as
english+parts, also gives the terms of the parts of joined words (parts.py); those of WordPiece and
`cjk` have no such form.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from sys import intern

from birchbark.errors import InputError
from birchbark.text.languages import LANGUAGES, character_pairs, lower, snowball, stemmed
from birchbark.text.normal_form import composed
from birchbark.text.parts import parts
from birchbark.text.stop_words import LUCENE
from birchbark.text.wordpiece import WordPieces
from birchbark.text.words import words

MAX_TERM_LENGTH = 255
PART_STEP = 4_096  # characters of a token in which parts are looked for at once
Normalise = Callable[[str], tuple[str, ...]]  # token → its terms


@dataclass(frozen=True, slots=True)
class Analyzer:
    """Maps a text to terms in two steps: `tokens` splits it, `normalise` maps tokens to terms.

    name: the name of the analyzer. tokens: text → tokens. normalise: token → terms; depends only on
    the token, so callers may cache the result. unknown: whether a token has no terms because it is
    not in the vocabulary, rather than, for example, because it is a stop word. across: whether a
    token may consist of two words (by `words`) that follow each other without a gap.
    """

    name: str
    tokens: Callable[[str], list[str]]
    normalise: Normalise
    unknown: Callable[[str], bool] = lambda token: False
    across: bool = False

    def terms(self, text: str) -> list[str]:
        """Return the index terms of `text`, in order, including repetitions."""
        return [term for token in self.tokens(text) for term in self.normalise(token)]


def analyzer(name: str, vocabulary: Sequence[str] | None = None) -> Analyzer:
    """Return the analyzer called `name`.

    vocabulary: WordPiece tokens in the order of their ids, for `wordpiece` and `porter+wordpiece`.
    Raises InputError for an unknown name, and for a vocabulary that is missing or not used.
    """
    of_words = name.removesuffix(PARTS)
    if name not in NAMES and of_words not in OF_WORDS:
        raise InputError(
            f"unknown analyzer {name!r}",
            wanted=f"one of {', '.join(NAMES)}, or of {', '.join(NORMALISERS)} and the languages "
            f"with {PARTS}",
        )
    if (vocabulary is not None) != (name in WORDPIECE):
        raise InputError(
            f"analyzer {name} takes {'a' if name in WORDPIECE else 'no'} vocabulary",
            remedy=f"pass the vocabulary of a BERT model to {' and '.join(WORDPIECE)} only",
        )
    if name == CJK:
        return Analyzer(name, character_pairs, plain, across=True)
    if vocabulary is not None:
        wordpiece = WordPieces(vocabulary, WORDPIECE[name])
        return Analyzer(name, wordpiece.tokens, wordpiece.normalise, wordpiece.unknown)
    terms = NORMALISERS.get(of_words) or _of_language(of_words)
    return Analyzer(name, words, terms if of_words == name else _with_parts(terms))


def _of_language(name: str) -> Normalise:
    stem_of = stemmed(name)
    return lambda token: tuple(filter(None, map(stem_of, _chunks(lower(token, name)))))


def _with_parts(normalise: Normalise) -> Normalise:
    """Return what gives the terms of a token, followed by those of its parts.

    A part of a very long token ends at every PART_STEP characters, so that other threads can run.
    """

    def terms(token: str) -> tuple[str, ...]:
        found = [*normalise(token)]
        for begin in range(0, len(token), PART_STEP):
            for part in parts(token[begin : begin + PART_STEP]):
                found += map(intern, normalise(part))  # a long token can have one a million times
        return tuple(found)

    return terms


def keyword() -> Analyzer:
    """Return the analyzer for keyword fields: the whole text is a single term, composed (NFC)."""
    return Analyzer(
        "keyword", lambda text: [composed(text)] if text else [], lambda token: (token,)
    )


def plain(token: str) -> tuple[str, ...]:
    """Lowercase; split tokens of more than 255 characters into terms of 255, as in Lucene."""
    return _chunks(lower(token))


def _chunks(token: str) -> tuple[str, ...]:
    if len(token) <= MAX_TERM_LENGTH:
        return (token,)
    return tuple(token[i : i + MAX_TERM_LENGTH] for i in range(0, len(token), MAX_TERM_LENGTH))


def porter(token: str) -> tuple[str, ...]:
    """Lowercase, then apply the Porter stemmer (1980)."""
    return tuple([stem(term) for term in plain(token)])


def _content_words(stem_of: Callable[[str], str], token: str) -> tuple[str, ...]:
    """Remove possessive 's, lowercase, remove stop words, and apply the stemmer."""
    if token[-2:] in {"'s", "'S"}:
        token = token[:-2]
    return tuple([stem_of(term) for term in plain(token) if term not in LUCENE])


def stem(term: str) -> str:
    """Return the Porter stem of `term`; like Porter's own programs, keep one or two letters."""
    return term if len(term) < 3 else snowball("porter")(term)


english: Normalise = partial(_content_words, stem)
unstemmed: Normalise = partial(_content_words, str)
NORMALISERS: dict[str, Normalise] = {
    "english": english,
    "unstemmed": unstemmed,
    "porter": porter,
    "plain": plain,
}

WORDPIECE: dict[str, Callable[[str], str]] = {"wordpiece": str, "porter+wordpiece": stem}
CJK = "cjk"
OF_WORDS = (*NORMALISERS, *LANGUAGES)
NAMES = (*NORMALISERS, *WORDPIECE, CJK, *LANGUAGES)
PARTS = "+parts"
