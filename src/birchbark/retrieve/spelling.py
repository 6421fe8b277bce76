"""What may a query have meant whose words are in no document? Similar words that are in some."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np

from birchbark.index.index import Index
from birchbark.retrieve.query_language import ParsedQuery, PartKind
from birchbark.text.words import placed_words, words

SHORTEST = 5  # letters of a word that may be corrected
LONG = 6  # letters of a word in which two may be wrong
RARER = 50  # a word that occurs is a misspelling if a similar one is in this many times as many
FEWEST = 2  # documents that a similar word is in, unless there are only a few hundred
BEGINNING = 3  # letters that a word and its stem have in common
CONSIDERED = 5  # similar terms of which documents are read
SEEN_DOCUMENTS = 3  # that are read to learn how a term is written
SEEN_CHARACTERS = 100_000  # of each of them

Check = Callable[[], object]


def correct_parsed(index: Index, query: ParsedQuery, check: Check = lambda: None) -> str | None:
    """Return a query with its words and phrases corrected by `correct_query`; None if none was.

    What it leaves out, and its filters, stay as they are.
    """
    read = (PartKind.TEXT, PartKind.PHRASE)
    corrected = [
        (part.kind in read and correct_query(index, part.source, check)) or part.source
        for part in query.parts
    ]
    text = "".join(corrected)
    return text if text != str(query) else None


def correct_query(index: Index, query: str, check: Check = lambda: None) -> str | None:
    """Return the query with each word that seems misspelt replaced by a similar one.

    These are words that occur in no document, or for which there is a similar one in fifty times as
    many. A similar word differs by one inserted, deleted, changed or transposed letter, in words of
    six letters or more by two. Of several, the one with the fewest differences is taken, of equally
    similar ones the one that is in most documents. Words with digits, short words, and words
    without a similar one stay.

    check: called before each step; what it raises ends the work. Returns None if nothing was
    replaced.
    """
    corrected, at = [], 0
    for word, begin, end in placed_words(query):
        better = _correct_word(index, word, check)
        corrected += [query[at:begin], query[begin:end] if better == word else better]
        at = end
    text = "".join([*corrected, query[at:]])
    return text if text != query else None


def _correct_word(index: Index, word: str, check: Check) -> str:
    from rapidfuzz.distance import OSA

    terms = index.analyzer.terms(word)
    if len(terms) != 1 or not word.isalpha() or len(word) < SHORTEST:
        return word
    similar = _similar_terms(index, terms[0], check)
    # Terms may be stems, which are similar more often than the words that they stand for.
    found = [(_as_written(index, term, word, check), df) for term, df in similar]
    ranked = [
        (distance, -df, written)
        for written, df in found
        if 0 < (distance := OSA.distance(written, word.lower())) <= _allowed(word)
    ]
    return min(ranked)[2] if ranked else word


def _allowed(word: str) -> int:
    """Return in how many letters a similar word may differ."""
    return 2 if len(word) >= LONG else 1


def _similar_terms(index: Index, term: str, check: Check) -> list[tuple[str, int]]:
    """Return the nearest terms with their document frequencies, nearest first.

    A document frequency is that of the field in which it is highest. There are no terms if `term`
    itself is not much rarer. Of equally near ones the most frequent comes first.
    """
    distances, frequencies, allowed = dict[str, int](), Counter[str](), _allowed(term)
    for field in index.fields:
        check()
        near, number = dict[str, int](), index.field_number(field)
        for part in index.parts:
            with part.reporting_damage():
                found = part.fields[number].similar_terms(term, allowed)
            near |= {similar: n for similar, n in found.items() if similar.isalpha()}
        distances |= near
        frequencies |= Counter(index.document_frequencies(list(near), field))  # the maximum
    least = max(RARER * frequencies.pop(term, 0), min(FEWEST, len(index) // 100))
    frequent = [(similar, df) for similar, df in frequencies.items() if df >= least]
    return sorted(frequent, key=lambda one: (distances[one[0]], -one[1], one[0]))[:CONSIDERED]


def _as_written(index: Index, term: str, instead_of: str, check: Check) -> str:
    """Return how the beginnings of a few documents write a term, which may be a stem.

    Of several spellings, the nearest to `instead_of` is taken, which is returned if there is none.
    """
    from rapidfuzz.distance import OSA

    spellings: Counter[str] = Counter()
    for doc_id in _documents_with(index, term):
        check()
        (document,) = index.documents([doc_id])
        text = " ".join(document.fields.values())[:SEEN_CHARACTERS]
        spelt = (w for w in map(str.lower, words(text)) if w.startswith(term[:BEGINNING]))
        counts = Counter(spelt)
        spellings += Counter({w: n for w, n in counts.items() if index.analyzer.terms(w) == [term]})
    lower = instead_of.lower()
    nearness = {word: (-OSA.distance(word, lower), n, word) for word, n in spellings.items()}
    return max(nearness, key=lambda word: nearness[word], default=instead_of)


def _documents_with(index: Index, term: str) -> list[str]:
    """Return the ids of a few documents that contain a term."""
    ids: list[str] = []
    for part in index.parts:
        for name in index.fields:
            postings = part.fields[index.field_number(name)].postings(term)
            if postings is None:
                continue
            docs = postings.docs.astype(np.int64)
            live = docs if part.deleted is None else docs[~part.deleted[docs]]
            ids += part.doc_ids.take(live[:SEEN_DOCUMENTS])
    return ids[:SEEN_DOCUMENTS]
