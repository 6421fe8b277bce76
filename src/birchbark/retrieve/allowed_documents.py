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
from birchbark.recently_used import RecentlyUsed
from birchbark.records import Document
from birchbark.retrieve.match import ALL, AND, OR, Match, Selection
from birchbark.retrieve.query_language import ParsedQuery
from birchbark.retrieve.rank_terms import candidates
from birchbark.retrieve.vector_search import live_masks
from birchbark.text.analyzer import PARTS, Analyzer, analyzer
from birchbark.text.languages import lower
from birchbark.text.normal_form import normal_form
from birchbark.text.words import PIECE, pieces, words

REMEMBERED = 100_000_000  # documents of all phrases together, a byte each
UNREAD, HAS, LACKS = 0, 1, 2  # what is known of a document and a phrase

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
    """Words that follow each other.

    terms: those of the words, without those of their parts; none of stop words.
    """

    def __init__(self, text: str, of_words: Analyzer) -> None:
        """text: has at least one word. of_words: see `_whole_words`."""
        self._language = of_words.name  # the rules of capitals are those of the terms
        self.words, self.terms = words(self._comparable(text)), set(of_words.terms(text))
        self._distinct = set(self.words)
        self._sequence = f" {' '.join(self.words)} "

    @property
    def is_term(self) -> bool:
        """Whether it is one word with one term, so that no document has to be read for it."""
        return len(self.words) == len(self.terms) == 1

    def state_in(
        self, document: Document, fields: Sequence[str], is_late: Callable[[], bool]
    ) -> int:
        """Return HAS if one of the fields of a document, or its contents, has the phrase.

        UNREAD if time was up before it was known.
        """
        texts = {document.contents, *(document.fields.get(field, "") for field in fields)}
        for text in texts:
            if (state := self.state_in_text(text, is_late)) != LACKS:
                return state
        return LACKS

    def state_in_text(self, text: str, is_late: Callable[[], bool], size: int = PIECE) -> int:
        """Do the same for a text; size: characters that are compared in one step."""
        compared, missing = list[str](), self._distinct
        for piece in pieces(text, size):
            if compared and is_late():
                return UNREAD
            compared.append(self._comparable(piece))
            missing = {word for word in missing if word not in compared[-1]}
        if missing:  # much faster than splitting it
            return LACKS
        before = list[str]()  # words at the end of the last piece, one less than the phrase has
        for number, piece in enumerate(compared):
            if number and is_late():
                return UNREAD
            found = before + words(piece)
            if self._sequence in f" {' '.join(found)} ":
                return HAS
            before = found[max(0, len(found) - len(self.words) + 1) :]
        return LACKS

    def _comparable(self, text: str) -> str:
        return lower(normal_form(text), self._language)


class KnownPhrases:
    """Which documents of an index have which phrases, as far as they were read.

    A search goes on where the one before had no time to. Threads may share it.
    """

    def __init__(self) -> None:
        self._states: RecentlyUsed[tuple[str, ...], list[NDArray[np.int8]]]
        self._states = RecentlyUsed(REMEMBERED)

    def states(self, index: Index, phrase: Phrase) -> list[NDArray[np.int8]]:
        """Return for each part what is known of its documents, (documents,), to be completed.

        index: of the same documents in all calls.
        """
        key = tuple(phrase.words)
        states = self._states.get(key)
        if states is None:
            states = [np.full(part.documents, UNREAD, np.int8) for part in index.parts]
            self._states.add(key, states, sum(map(len, states)))
        return states


def allowed_documents(
    index: Index,
    query: ParsedQuery,
    is_late: Callable[[], bool] = lambda: False,
    known: KnownPhrases | None = None,
) -> AllowedDocuments:
    """Return the documents that the operators of a query allow.

    An excluded word leaves out what has its term, so that -steam leaves out steams as well.

    is_late: whether to stop reading documents. known: what was read before in this index. Raises
    InputError for a malformed filter.
    """
    known = known or KnownPhrases()
    of_words = _whole_words(index.analyzer)
    phrases = [Phrase(text, of_words) for text in query.phrases]
    excluded = [Phrase(text, of_words) for text in query.excluded]
    allowed = live_masks(index, Selection(ALL, (), query.filters))
    # first what is fast, since documents that are left out need not be read
    terms = {term for phrase in excluded if phrase.is_term for term in phrase.terms}
    _drop(allowed, _having(index, OR, terms, allowed))
    for phrase in phrases:
        _keep(allowed, _having_terms(index, phrase, allowed))
    unread = [np.zeros_like(mask) for mask in allowed]
    for phrase in phrases:
        _read(index, phrase, allowed, unread, is_late, known)
    for phrase in excluded:
        if not phrase.is_term:
            found = _having_terms(index, phrase, allowed)
            if len(phrase.words) > 1 or not phrase.terms:
                _read(index, phrase, found, unread, is_late, known)
            _drop(allowed, found)
    _drop(allowed, unread)
    masks = {part.name: mask for part, mask in zip(index.parts, allowed, strict=True)}
    return AllowedDocuments(masks, not any(mask.any() for mask in unread))


def _whole_words(of_index: Analyzer) -> Analyzer:
    """Return an analyzer without the terms of parts, which depend on capitals."""
    whole = of_index.name.removesuffix(PARTS)
    return of_index if whole == of_index.name else analyzer(whole)


def _having_terms(index: Index, phrase: Phrase, allowed: Masks) -> Masks:
    """Return which of the allowed documents have all terms of a phrase; all if it has none."""
    return _having(index, AND if phrase.terms else ALL, phrase.terms, allowed)


def _having(index: Index, match: Match, terms: set[str], allowed: Masks) -> Masks:
    masks = {part.name: mask for part, mask in zip(index.parts, allowed, strict=True)}
    return candidates(index, index.fields, Selection(match, terms, (), masks))


def _keep(masks: Masks, others: Masks) -> None:
    """Leave out of `masks` what is not in `others`."""
    for mask, other in zip(masks, others, strict=True):
        mask &= other


def _drop(masks: Masks, others: Masks) -> None:
    """Leave out of `masks` what is in `others`."""
    _keep(masks, [~mask for mask in others])


def _read(
    index: Index,
    phrase: Phrase,
    masks: Masks,
    unread: Masks,
    is_late: Callable[[], bool],
    known: KnownPhrases,
) -> None:
    """Leave documents out of `masks` that lack the phrase.

    Documents that are not read, because time is up, stay in them and are added to `unread`.
    """
    states, fields = known.states(index, phrase), index.fields_beside_contents
    for part, mask, late, state in zip(index.parts, masks, unread, states, strict=True):
        documents = _documents(index, part, np.flatnonzero(mask & (state == UNREAD)))
        while not is_late() and (found := next(documents, None)):
            number, document = found
            state[number] = phrase.state_in(document, fields, is_late)
        late |= mask & (state == UNREAD)
        mask &= state != LACKS


def _documents(
    index: Index, part: Part, numbers: NDArray[np.intp]
) -> Iterator[tuple[int, Document]]:
    """Yield documents of a part, which are not cached: most are read for a phrase only."""
    with part.reporting_damage():
        for number, fields in part.stored_fields.iterate(numbers.tolist()):
            yield number, Document("", fields, index.read_fields)
