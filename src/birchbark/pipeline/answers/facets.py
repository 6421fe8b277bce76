"""How many of a search's candidates have which values of the fields that searches can filter by?"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from birchbark.records import Document
from birchbark.retrieve.filters import DATES, filter_of
from birchbark.text.normal_form import composed

MAX_VALUES = 12  # of a field
MAX_FOLDERS = 60  # of paths
PATH = "path"  # the field whose values are divided by their folders
MOST_LEVELS = 16  # of folders in each other that are counted
MOST_PATH = 4_096  # characters, as systems allow; a longer one has no folders
DATE = re.compile(r"(\d{4})(-(0[1-9]|1[0-2])(-\d\d.*)?)?")  # a year, and its month and day


@dataclass(frozen=True, slots=True)
class Facet:
    """A field, and how many documents have each of its values.

    Attributes:
        field: The name of the field.
        values: Filter (see retrieve/filters.py) and number of documents that it finds, most
            frequent first, at most twelve; of dates, those of a year; of paths, those in a folder
            or below it, at most sixty folders.
        others: Number of further values, which fewer documents have.
    """

    field: str
    values: tuple[tuple[str, int], ...]
    others: int = 0


def count_facets(documents: Sequence[Document], keywords: Iterable[str]) -> list[Facet]:
    """Return the facets that divide the documents, in the order of `keywords`.

    Left out are fields with one value only, and those in which all values differ.
    """
    facets = []
    for field in keywords:
        present = [composed(value) for d in documents if (value := d.fields.get(field, ""))]
        if field == PATH:
            counts, most = _folders(present), MAX_FOLDERS
            divided = bool(counts)
        else:
            counts, most = _values(field, present), MAX_VALUES
            divided = len(counts) > 1 and max(counts.values()) > 1
        if divided:
            ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
            shown = tuple(ordered[:most])
            facets.append(Facet(field, shown, len(ordered) - len(shown)))
    return facets


def _folders(paths: Sequence[str]) -> Counter[str]:
    """Count the paths in each folder and below it, to a depth of 16.

    Left out are folders with all paths, folders with no path that is not in a single one of their
    subfolders, and those whose names have a meaning in filters.
    """
    counts: Counter[str] = Counter()
    for path in paths:
        names = path.split("/", MOST_LEVELS)[:-1] if len(path) <= MOST_PATH else []
        counts.update("/".join(names[:depth]) for depth in range(1, len(names) + 1))
    parents = {folder: folder.rpartition("/")[0] for folder in counts}
    single = {parent for folder, parent in parents.items() if counts[folder] == counts[parent]}
    return Counter(
        {
            f"{folder}/*": count
            for folder, count in counts.items()
            if count < len(paths) and folder not in single and filter_of(folder) == folder
        }
    )


def _values(field: str, values: Sequence[str]) -> Counter[str]:
    """Count what the filter of each value finds.

    If there are dates, what begins with the year of one is counted by this year. Years alone are
    values like others, unless there are months as well, or the filter of a year means all of it.
    """
    dates = [date for value in values if (date := DATE.fullmatch(value))]
    by_year = field in DATES or any(date[2] for date in dates)
    years = {date[1] for date in dates} if by_year else set()
    return Counter(
        f"{value[:4]}*" if value[:4] in years else filter_of(value, exact_date=field in DATES)
        for value in values
    )
