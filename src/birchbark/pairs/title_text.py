"""How does a collection teach itself? Titles stand for queries, texts for what they ask for.

After section 3.3.2 of an NTNU project report of 2021 on CORD-19: a title and its own text are
relevant, a title and another's are not. Titles are unlike queries, so some are changed: stop words
dropped, a part taken, words shuffled.
"""

from __future__ import annotations

import math
import string
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields

import numpy as np

from birchbark.errors import InputError
from birchbark.pairs.draw import chance as chance_of
from birchbark.records import Document, Qrels, Query

TITLE, TEXT = "title", "text"
SHORTEST = 4  # a part has a quarter of the words or more

# Those of the cord paper, appendix A.3.
STOP_WORDS = frozenset(
    "a about after all also always am an and any are at be been being but by came can cant come "
    "could did didn't do does doesn't doing don't else for from get give goes going had happen has "
    "have having how i if ill i'm in into is isn't it its i've just keep let like made make many "
    "may me mean more most much no not now of only or our really say see some something take tell "
    "than that the their them then they thing this to try up us use used uses very want was way we "
    "what when where which who why will with without wont you your youre".split()
)


@dataclass(frozen=True, slots=True)
class Changes:
    """How likely each change is, 0 to 1; all are drawn independently.

    stop_words: dropped from a title that is asked. short_title: a part of it is asked. shuffle: its
    words in another order. short_text: a part of a text, be it asked or paired. title_title: the
    title is paired with titles. swap: the text is asked, and paired with titles.
    """

    stop_words: float = 0.4
    short_title: float = 0.2
    shuffle: float = 0.0
    short_text: float = 0.3
    title_title: float = 0.1
    swap: float = 0.1

    def __post_init__(self) -> None:
        for one in fields(self):
            if not 0 <= (value := getattr(self, one.name)) <= 1:
                raise InputError(f"{one.name} is out of range", wanted="0 to 1", found=f"{value:g}")
        if self.title_title + self.swap > 1:
            raise InputError("title_title and swap exclude each other", wanted="a sum of 1 at most")


@dataclass(slots=True)
class TitleTexts:
    """Queries made of documents, and what they are to be paired with.

    queries: one a document, under its doc_id. wanted: doc_id → the field that it is paired with.
    done: how often each change was made. without: documents that lack a title or a text.
    """

    changes: Changes
    seed: int
    queries: dict[str, Query] = field(default_factory=dict)
    wanted: dict[str, str] = field(default_factory=dict)
    done: Counter[str] = field(default_factory=Counter)
    without: int = 0

    def add(self, documents: Iterable[Document]) -> None:
        """Make a query of each document; InputError if none has a title and a text."""
        for document in documents:
            if document.title.strip() and document.text.strip():
                self._ask(document)
            else:
                self.without += 1
        if not self.queries:
            raise InputError(
                "no document has a title and a text",
                found=f"{self.without:,} documents",
                remedy="name the fields with --title-field and --text-field",
            )

    def own(self) -> Qrels:
        """Each document is relevant for its own query."""
        return Qrels({doc_id: {doc_id: 1} for doc_id in self.queries})

    def strangers(self, drawn: Mapping[str, list[str]], share: float) -> dict[str, list[str]]:
        """So many of each query's `drawn` documents that about `share` of all pairs are false."""
        each = others(share)
        found = {}
        for doc_id, strangers in drawn.items():
            more = chance_of(self.seed, "strangers", doc_id).random() < each % 1
            found[doc_id] = strangers[: math.floor(each) + more]
        return found

    def texts(self, query_id: str, document: Document) -> list[str]:
        """What the query is paired with of `document`; none if it has none."""
        if not (document.title.strip() and document.text.strip()):
            return []
        if self.wanted[query_id] == TITLE:
            return [document.title]
        chance = chance_of(self.seed, "text", query_id, document.doc_id)
        return [self._shortened(document.text, chance, "shortened texts")]

    def _ask(self, document: Document) -> None:
        chance, changes = chance_of(self.seed, "query", document.doc_id), self.changes
        kind = chance.random()
        swapped = kind < changes.swap
        if swapped:
            asked = self._shortened(document.text, chance, "shortened texts")
            self.done["texts that ask for titles"] += 1
        else:
            asked = self._title(document.title, chance)
        titles = kind < changes.swap + changes.title_title
        if titles and not swapped:
            self.done["titles that ask for titles"] += 1
        self.wanted[document.doc_id] = TITLE if titles else TEXT
        self.queries[document.doc_id] = Query(document.doc_id, asked)

    def _title(self, title: str, chance: np.random.Generator) -> str:
        """Each change in turn, if it is drawn and possible."""
        words = title.split()
        if chance.random() < self.changes.stop_words:
            telling = [word for word in words if not _stops(word)]
            if 0 < len(telling) < len(words):
                words = telling
                self.done["titles without stop words"] += 1
        if chance.random() < self.changes.short_title and len(words) > 1:
            words = _part(words, chance)
            self.done["shortened titles"] += 1
        if chance.random() < self.changes.shuffle and len(set(words)) > 1:
            words = _shuffled(words, chance)
            self.done["shuffled titles"] += 1
        return " ".join(words)

    def _shortened(self, text: str, chance: np.random.Generator, what: str) -> str:
        words = text.split()
        if chance.random() < self.changes.short_text and len(words) > 1:
            self.done[what] += 1
            return " ".join(_part(words, chance))
        return text


def others(share: float) -> float:
    """False pairs for each true one, where `share` of all pairs are false."""
    if not 0 <= share < 1:
        raise InputError("share of false pairs is out of range", wanted="0 up to 1")
    return share / (1 - share)


def both(documents: Iterable[Document], title: str, text: str) -> Iterator[Document]:
    """Documents with these fields as their title and text, white space as single spaces."""
    for document in documents:
        named = {TITLE: document.fields.get(title, ""), TEXT: document.fields.get(text, "")}
        yield Document(document.doc_id, {k: " ".join(v.split()) for k, v in named.items()})


def _stops(word: str) -> bool:
    """Whether it is a stop word, or has no letter or digit."""
    bare = word.lower().strip(string.punctuation)
    return not bare or bare in STOP_WORDS


def _part(words: list[str], chance: np.random.Generator) -> list[str]:
    """Words in a row, a quarter of them or more, but never all."""
    size = int(chance.integers(max(1, len(words) // SHORTEST), len(words)))
    start = int(chance.integers(0, len(words) - size + 1))
    return words[start : start + size]


def _shuffled(words: list[str], chance: np.random.Generator) -> list[str]:
    """The words in another order; there is one, since two of them differ."""
    while (found := [words[place] for place in chance.permutation(len(words))]) == words:
        pass
    return found
