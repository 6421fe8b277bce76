"""Which documents do the operators of a query allow?

The index has no positions. A document with all terms of a phrase is a candidate for it, and is
then read: the phrase is in it if its words follow each other in one of the document's searched
fields or in its contents, whatever stands between the words. Case does not matter, and words are
compared as written, not by their stems.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from birchbark.index.index import Index
from birchbark.index.part import Part
from birchbark.records import Document
from birchbark.retrieve.match import ALL, AND, Selection
from birchbark.retrieve.query_language import ParsedQuery
from birchbark.retrieve.rank_terms import candidates
from birchbark.retrieve.vector_search import filter_masks
from birchbark.text.analyzer import PARTS, analyzer
from birchbark.text.normal_form import normal_form
from birchbark.text.words import words

READ_AT_ONCE = 64  # documents, before it is asked again whether time is up

Masks = list[NDArray[np.bool_]]  # for each part, (documents,)


class AllowedDocuments(NamedTuple):
    """The documents that a query allows.

    masks: name of a part → which of its documents are allowed, bool (documents,). exact: false if
    time did not suffice to look for the phrases in all documents. Those that were not read are not
    allowed.
    """

    masks: Mapping[str, NDArray[np.bool_]]
    exact: bool


class Phrase:
    """Words that follow each other."""

    def __init__(self, text: str) -> None:
        """text: has at least one word."""
        self.text, self.words = text, words(_comparable(text))
        self._sequence = f" {' '.join(self.words)} "

    def terms(self, index: Index) -> set[str]:
        """Return the terms of the words, without those of their parts; none of stop words."""
        name = index.analyzer.name
        whole = analyzer(name.removesuffix(PARTS)) if name.endswith(PARTS) else index.analyzer
        return set(whole.terms(self.text))

    def candidates(self, index: Index, allowed: Masks) -> Masks:
        """Return which of the allowed documents have all terms of the phrase."""
        terms = self.terms(index)
        masks = {part.name: mask for part, mask in zip(index.parts, allowed, strict=True)}
        selection = Selection(AND if terms else ALL, terms, {}, masks)
        return candidates(index, index.fields, selection)

    def is_in(self, document: Document, fields: Sequence[str]) -> bool:
        """Whether one of the fields of a document, or its contents, has the phrase."""
        texts = {document.contents, *(document.fields.get(field, "") for field in fields)}
        return any(map(self._is_in_text, texts))

    def _is_in_text(self, text: str) -> bool:
        compared = _comparable(text)
        if not all(word in compared for word in self.words):  # much faster than splitting it
            return False
        return self._sequence in f" {' '.join(words(compared))} "


def _comparable(text: str) -> str:
    return normal_form(text).lower()


def allowed_documents(
    index: Index, query: ParsedQuery, is_late: Callable[[], bool] = lambda: False
) -> AllowedDocuments:
    """Return the documents that the operators of a query allow.

    is_late: whether to stop reading documents. Raises InputError for a malformed filter.
    """
    allowed = filter_masks(index, {})
    for field, text in query.filters:
        _keep(allowed, filter_masks(index, {field: text}))
    phrases = [Phrase(text) for text in query.phrases]
    for phrase in phrases:  # what lacks the terms of any of them need not be read for another
        _keep(allowed, phrase.candidates(index, allowed))
    unread = [np.zeros_like(mask) for mask in allowed]
    for phrase in phrases:
        _read(index, phrase, allowed, unread, is_late)
    for excluded in map(Phrase, query.excluded):
        found = excluded.candidates(index, allowed)
        if len(excluded.words) > 1 or not excluded.terms(index):
            _read(index, excluded, found, unread, is_late)
        _keep(allowed, [~mask for mask in found])
    _keep(allowed, [~mask for mask in unread])
    masks = {part.name: mask for part, mask in zip(index.parts, allowed, strict=True)}
    return AllowedDocuments(masks, not any(mask.any() for mask in unread))


def _keep(masks: Masks, others: Masks) -> None:
    """Leave out of `masks` what is not in `others`."""
    for mask, other in zip(masks, others, strict=True):
        mask &= other


def _read(
    index: Index, phrase: Phrase, masks: Masks, unread: Masks, is_late: Callable[[], bool]
) -> None:
    """Leave documents out of `masks` that lack the phrase.

    Documents that are not read, because time is up, stay in them and are added to `unread`.
    """
    for part, mask, late in zip(index.parts, masks, unread, strict=True):
        numbers = np.flatnonzero(mask & ~late)
        for begin in range(0, len(numbers), READ_AT_ONCE):
            if is_late():
                late[numbers[begin:]] = True
                break
            for number, document in _documents(index, part, numbers[begin : begin + READ_AT_ONCE]):
                mask[number] = phrase.is_in(document, index.fields)


def _documents(
    index: Index, part: Part, numbers: NDArray[np.intp]
) -> Iterator[tuple[int, Document]]:
    """Yield documents of a part, which are not cached: most are read for a phrase only."""
    with part.reporting_damage():
        stored = part.stored_fields.take(numbers.tolist())
    for number, fields in stored.items():
        yield number, Document("", fields, index.read_fields)
