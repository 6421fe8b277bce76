"""How does a collection without judgments become training pairs?

Titles serve as queries. The title and the text of the same document are a relevant pair; the title
of one document and the text of another are a pair that is not relevant. Since titles differ from
the queries that people type, some titles are changed: stop words are removed, titles are shortened,
or words are shuffled. This follows section 3.3.2 of an NTNU project report of 2021 on CORD-19.
"""

from __future__ import annotations

import math
import string
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields

import numpy as np

from birchbark import Document, InputError, Qrels, Query
from birchbark.errors import require_share
from birchbark.pairs.seeded_sampling import random_generator, sample
from birchbark.text.stop_words import CORD

TITLE, TEXT = "title", "text"
NEGATIVE_SHARE = 0.65
MIN_PART = 4  # a shortened title or text of n words has at least n // 4, and at least one


@dataclass(frozen=True, slots=True)
class TitleChanges:
    """The probability of each change, 0 to 1.

    stop_words: remove stop words from the title.
    short_title: shorten the title.
    shuffle: shuffle the words of the title.
    short_text: shorten a text, whether it is the query or the text of a pair.
    title_title: pair the title with titles instead of texts.
    swap: use the text as the query, and pair it with titles.

    `swap` excludes all changes of the title, and `title_title`; otherwise changes are drawn
    independently.
    """

    stop_words: float = 0.4
    short_title: float = 0.2
    shuffle: float = 0.0
    short_text: float = 0.3
    title_title: float = 0.1
    swap: float = 0.1

    def __post_init__(self) -> None:
        for change in fields(self):
            require_share(change.name, getattr(self, change.name))
        if self.title_title + self.swap > 1:
            raise InputError("title_title and swap exclude each other", wanted="a sum of at most 1")


@dataclass(slots=True)
class TitlePairs:
    """Queries made from documents, and the field that each query is paired with.

    queries: one query per document, by doc_id; its query_id is the doc_id.
    paired_field: for each query, TITLE or TEXT, by doc_id.
    change_counts: how often each change was made.
    incomplete: the number of documents without a title or without a text.
    """

    changes: TitleChanges
    seed: int
    queries: dict[str, Query] = field(default_factory=dict)
    paired_field: dict[str, str] = field(default_factory=dict)
    change_counts: Counter[str] = field(default_factory=Counter)
    incomplete: int = 0

    def add(self, documents: Iterable[Document]) -> None:
        """Make a query from each document that has a title and a text.

        Raises InputError if there is no such document.
        """
        for document in documents:
            if document.title.strip() and document.text.strip():
                self._add_query(document)
            else:
                self.incomplete += 1
        if not self.queries:
            raise InputError(
                "no document has a title and a text",
                found=f"{self.incomplete:,} documents",
                remedy="name the fields with --title-field and --text-field",
            )

    def qrels(self) -> Qrels:
        """Return qrels in which each document is relevant for the query made from it."""
        return Qrels({doc_id: {doc_id: 1} for doc_id in self.queries})

    def negatives(self, sampled: Mapping[str, list[str]], share: float) -> dict[str, list[str]]:
        """Reduce the `sampled` documents of each query so that about `share` of pairs are negative.

        If the number of documents per query is fractional, it is rounded up or down at random.
        """
        count = negatives_per_positive(share)
        negatives = {}
        for doc_id, documents in sampled.items():
            one_more = random_generator(self.seed, "strangers", doc_id).random() < count % 1
            negatives[doc_id] = documents[: math.floor(count) + one_more]
        return negatives

    def texts(self, query_id: str, document: Document) -> list[str]:
        """Return the title or text of `document` that the query is paired with.

        The result is empty if `document` is incomplete.
        """
        if not (document.title.strip() and document.text.strip()):
            return []
        if self.paired_field[query_id] == TITLE:
            return [document.title]
        generator = random_generator(self.seed, "text", query_id, document.doc_id)
        return [self._maybe_shortened(document.text, generator)]

    def _add_query(self, document: Document) -> None:
        changes = self.changes
        generator = random_generator(self.seed, "query", document.doc_id)
        kind = generator.random()
        swapped = kind < changes.swap
        if swapped:
            query = self._maybe_shortened(document.text, generator)
            self.change_counts["texts as queries for titles"] += 1
        else:
            query = self._changed_title(document.title, generator)
        for_titles = kind < changes.swap + changes.title_title
        if for_titles and not swapped:
            self.change_counts["titles as queries for titles"] += 1
        self.paired_field[document.doc_id] = TITLE if for_titles else TEXT
        self.queries[document.doc_id] = Query(document.doc_id, query)

    def _changed_title(self, title: str, generator: np.random.Generator) -> str:
        """Change `title`: apply each change that is drawn and possible."""
        words = title.split()
        if generator.random() < self.changes.stop_words:
            content_words = [word for word in words if not _is_stop_word(word)]
            if 0 < len(content_words) < len(words):
                words = content_words
                self.change_counts["titles without stop words"] += 1
        if generator.random() < self.changes.short_title and len(words) > 1:
            words = _part(words, generator)
            self.change_counts["shortened titles"] += 1
        if generator.random() < self.changes.shuffle and len(set(words)) > 1:
            words = _shuffled(words, generator)
            self.change_counts["shuffled titles"] += 1
        return " ".join(words)

    def _maybe_shortened(self, text: str, generator: np.random.Generator) -> str:
        words = text.split()
        if generator.random() < self.changes.short_text and len(words) > 1:
            self.change_counts["shortened texts"] += 1
            return " ".join(_part(words, generator))
        return text


def drawn(qrels: Qrels, count: int, seed: int) -> Qrels:
    """Return `count` of the judgments, drawn at random by `seed`, or all if there are fewer."""
    names = (f"{query_id}\0{doc_id}" for query_id, docs in qrels.grades.items() for doc_id in docs)
    chosen = set(sample(names, count, seed, "pairs"))
    kept = {
        query_id: {d: grade for d, grade in docs.items() if f"{query_id}\0{d}" in chosen}
        for query_id, docs in qrels.grades.items()
    }
    return Qrels({query_id: docs for query_id, docs in kept.items() if docs})


def negatives_per_positive(share: float) -> float:
    """Return the number of negatives per positive pair if `share` of all pairs are negative."""
    if not 0 <= share < 1:
        raise InputError("share of negative pairs is out of range", wanted="at least 0 and below 1")
    return share / (1 - share)


def with_title_and_text(documents: Iterable[Document], title: str, text: str) -> Iterator[Document]:
    """Yield documents with two fields only, renamed to 'title' and 'text'.

    title, text: the present names of these fields.

    Each run of white space becomes one space.
    """
    for document in documents:
        values = {TITLE: document.fields.get(title, ""), TEXT: document.fields.get(text, "")}
        yield Document(document.doc_id, {k: " ".join(v.split()) for k, v in values.items()})


def _is_stop_word(word: str) -> bool:
    """Return whether `word` is a stop word or consists of punctuation."""
    bare = word.lower().strip(string.punctuation)
    return not bare or bare in CORD


def _part(words: list[str], generator: np.random.Generator) -> list[str]:
    """Return random consecutive words: n // 4 or more of n, at least one, but never all."""
    size = int(generator.integers(max(1, len(words) // MIN_PART), len(words)))
    start = int(generator.integers(0, len(words) - size + 1))
    return words[start : start + size]


def _shuffled(words: list[str], generator: np.random.Generator) -> list[str]:
    """Return the words in a different random order. At least two of them must differ."""
    while (order := [words[i] for i in generator.permutation(len(words))]) == words:
        pass
    return order
