"""Which statistics of a collection does a document's score depend on?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from birchbark.index.index import Index
from birchbark.index.layout import FieldTotals
from birchbark.index.merge import union_of_terms


@dataclass(frozen=True, slots=True)
class Statistics:
    """The statistics of one field, which can be sent to the processes that rank its shards.

    totals: the number of documents with a term in the field, and of tokens. documents: the number
    of all documents. frequencies: term → number of documents that contain it; 0 for a term that is
    not listed.
    """

    totals: FieldTotals
    documents: int
    frequencies: Mapping[str, int] = field(default_factory=dict)

    @property
    def average_length(self) -> float:
        """The mean number of tokens in documents that have any."""
        return self.totals.tokens / max(1, self.totals.documents)


def field_statistics(index: Index, field: str, terms: Iterable[str]) -> Statistics:
    """Return the statistics of `field` in `index`, with the document frequencies of `terms`."""
    frequencies = index.document_frequencies(tuple(sorted(terms)), field)
    return Statistics(index.totals(field), len(index), frequencies)


def full_statistics(index: Index, field: str) -> Statistics:
    """Return the statistics of `field` with the document frequencies of all its terms.

    The result is cached in `index`.
    """
    cached = index.derived.get(field)
    if not isinstance(cached, Statistics):
        number = index.field_number(field)
        terms = union_of_terms([part.fields[number] for part in index.parts])
        cached = index.derived[field] = field_statistics(index, field, terms)
    return cached
