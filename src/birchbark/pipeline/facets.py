"""How many of a search's candidates have which values of the fields that searches can filter by?"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from birchbark.records import Document

MAX_VALUES = 12  # of a field
DATE = re.compile(r"(\d{4})-\d\d")


@dataclass(frozen=True, slots=True)
class Facet:
    """A field, and how many documents have each of its values.

    Attributes:
        field: The name of the field.
        values: Filter and count, most frequent first. The filter is a value, or, for dates, a year
            and `*`, so that it selects all dates of the year.
    """

    field: str
    values: tuple[tuple[str, int], ...]


def count_facets(documents: Sequence[Document], keywords: Iterable[str]) -> list[Facet]:
    """Return the facets that divide the documents, in the order of `keywords`.

    Left out are fields with one value only, and those in which all values differ, such as paths.
    """
    facets = []
    for field in keywords:
        present = [value for d in documents if (value := d.fields.get(field, ""))]
        counts = Counter(DATE.sub(r"\1*", v, count=1)[:5] if DATE.match(v) else v for v in present)
        if len(counts) > 1 and max(counts.values()) > 1:
            ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
            facets.append(Facet(field, tuple(ordered[:MAX_VALUES])))
    return facets
