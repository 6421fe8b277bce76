"""What must be known of a whole collection to score one of its documents?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import reduce
from operator import add

from birchbark.index.layout import FieldTotals
from birchbark.index.merge import union
from birchbark.index.reader import Index


@dataclass(frozen=True, slots=True)
class Statistics:
    """Statistics of one field as a value: exported, added up over indexes, and passed in.

    totals: documents with a term in the field, and all its tokens. frequencies: term → number of
    documents that hold it; a term that is not listed is in none.
    """

    totals: FieldTotals
    frequencies: Mapping[str, int] = field(default_factory=dict)

    @property
    def average_length(self) -> float:
        """Tokens a document, over the documents with any."""
        return self.totals.tokens / max(1, self.totals.documents)

    def __add__(self, other: Statistics) -> Statistics:
        frequencies = Counter(self.frequencies)
        frequencies.update(other.frequencies)
        return Statistics(self.totals + other.totals, frequencies)


def field_statistics(index: Index, field: str, terms: Iterable[str]) -> Statistics:
    """Statistics of `field` in `index`, with the frequencies of `terms`."""
    return Statistics(index.totals(field), index.document_frequencies(tuple(sorted(terms)), field))


def full_statistics(index: Index, field: str) -> Statistics:
    """Statistics of `field` with the frequencies of all its terms; remembered with the index."""
    known = index.remembered.get(field)
    if not isinstance(known, Statistics):
        number = index.field_number(field)
        terms = union([part.fields[number] for part in index.parts])
        known = index.remembered[field] = field_statistics(index, field, terms)
    return known


def shared_statistics(indexes: Iterable[Index], field: str, terms: Iterable[str]) -> Statistics:
    """Statistics of several indexes as if they were one; their documents must differ."""
    wanted = list(terms)
    return reduce(add, (field_statistics(index, field, wanted) for index in indexes))
