"""What does a person need to know about a search that finds nothing, or nothing with its words?"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby, islice

from birchbark.errors import DeadlineError
from birchbark.index.index import Index
from birchbark.index.part import PartField
from birchbark.pipeline.answers.answer import Answer
from birchbark.pipeline.answers.answer_probability import UNLIKELY
from birchbark.pipeline.answers.facets import MAX_VALUES
from birchbark.pipeline.stored.precompute import STATIC
from birchbark.pipeline.stored.vector_sets import searched_sets
from birchbark.retrieve.filters import Filter, filter_of
from birchbark.retrieve.query_language import ParsedQuery
from birchbark.retrieve.spelling import Check, correct_parsed
from birchbark.retrieve.vector_search import filter_masks

NO_ANSWER = "probably none of these documents answers this"
TERMS_AT_ONCE = 1000  # of a part's values
NOT_ALL_READ = "nothing found yet: not all documents were searched"
NO_VECTORS = (
    "only documents with these words can be found, since the index has no vectors "
    "(birchbark index attach)"
)


def search_notes(
    index: Index,
    query: ParsedQuery,
    filters: Mapping[str, str],
    answer: Answer,
    *,
    by_terms: bool,
    check: Check = lambda: None,
) -> list[str]:
    """Return messages, in the order in which they should be read; none for most searches.

    filters: those of the search, beside those of the query itself. answer: what it found. by_terms:
    whether the first stage finds any document by the query's terms. check: called before each step
    of the correction of spelling; if it raises DeadlineError, there is none.
    """
    notes, found = [], bool(answer.hits)
    if probably_unanswered(answer):
        notes.append(NO_ANSWER)
    if not (index.analyzer.terms(query.words) or query.phrases):
        notes.append("the query has no terms: it holds only punctuation, stop words or the like")
    unmet = [] if found else _unmet_filters(index, [*filters.items(), *query.filters])
    if unmet:
        return [*notes, *unmet]
    if not found and (query.phrases or query.excluded):
        done = answer.stats.exact
        return [*notes, _no_allowed(index, query, check) if done else NOT_ALL_READ]
    if found and by_terms:
        return notes
    notes.append(_no_matches(index, query, found, check))
    if not (found or searched_sets(index.attachments) or STATIC in index.attachments):
        notes.append(NO_VECTORS)
    return notes


def probably_unanswered(answer: Answer) -> bool:
    """Return whether it is improbable that the best hit answers the query; false if unknown.

    It is unknown while the answer is not exact: what has not been read yet may answer the query.
    """
    probability = answer.hits[0].probability if answer.hits and answer.stats.exact else None
    return probability is not None and probability < UNLIKELY


def _unmet_filters(index: Index, filters: Iterable[tuple[str, str]]) -> list[str]:
    """Return a message for each filter that no document meets; it lists the values that exist."""
    messages = []
    for name, text in filters:
        if any(mask.any() for mask in filter_masks(index, {name: text})):
            continue
        listed = [*islice(_values(index, name), MAX_VALUES + 1)]
        if not listed:
            messages.append(f"no document has a value of {name}")
            continue
        more = ", …" if len(listed) > MAX_VALUES else ""
        message = f"no document has {name}={text}; there are: "
        message += ", ".join(listed[:MAX_VALUES]) + more
        wanted = Filter.parse(name, text)
        plain = [value for value in wanted.values if filter_of(value) == value]
        begun = [v for v in plain if any(m.any() for m in filter_masks(index, {name: f"{v}*"}))]
        if begun and not wanted.negated:
            message += f"; for all that begin with it: {name}={begun[0]}*"
        messages.append(message)
    return messages


def _values(index: Index, name: str) -> Iterator[str]:
    """Return the values of a keyword field of live documents, sorted; read as far as needed."""
    number = index.filter_number(name)
    of_parts = (_live_terms(part.fields[number]) for part in index.parts)
    return (value for value, _ in groupby(heapq.merge(*of_parts, key=str.encode)))


def _live_terms(field: PartField) -> Iterator[str]:
    for begin in range(field.first_term, field.end_term, TERMS_AT_ONCE):
        terms = field.part.terms.take(range(begin, min(begin + TERMS_AT_ONCE, field.end_term)))
        yield from field.document_frequencies(terms)


def _no_allowed(index: Index, query: ParsedQuery, check: Check) -> str:
    """Return what to say if no document has all phrases of the query and nothing it excludes."""
    wanted = [f'with "{phrase}"' for phrase in query.phrases]
    unwanted = [f'without "{text}"' for text in query.excluded]
    message = f"no document matches {' and '.join([*wanted, *unwanted])}"
    return message + _correction(index, query, check)


def _no_matches(index: Index, query: ParsedQuery, found: bool, check: Check) -> str:
    """Return what to say if no document has any of the query's words."""
    words = "none of these documents has the words of the query; they are nearest in meaning"
    return (words if found else "no document matches") + _correction(index, query, check)


def _correction(index: Index, query: ParsedQuery, check: Check) -> str:
    try:
        correction = correct_parsed(index, query, check)
    except DeadlineError:
        return ""
    return f"; did you mean: {correction}" if correction else ""
