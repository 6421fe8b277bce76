"""What can be read from one part of an index?"""

from __future__ import annotations

import re
import weakref
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from birchbark.errors import ArtifactError, reporting_damage
from birchbark.index.arrays import map_array, map_raw
from birchbark.index.layout import PartEntry
from birchbark.index.postings import frequencies, unpack
from birchbark.index.stored_fields import StoredFieldReader
from birchbark.index.string_table import StringTable

_NUMBER = re.compile(r"[+-]?(?:\d++\.?\d*+|\.\d++)(?:[eE][+-]?\d++)?", re.ASCII)
POSTINGS_PER_CHUNK = 4_000_000  # postings that are unpacked at a time
REMEDY = "build it again; `birchbark index stats --verify` lists damaged files"


@dataclass(frozen=True, slots=True, eq=False)
class Postings:
    """The postings of one or more terms in one part, end to end.

    docs: uint32 (postings,), document numbers, ascending within each term. tfs: uint32 (postings,),
    frequencies.
    """

    docs: NDArray[Any]
    tfs: NDArray[Any]


class PackedLists:
    """The posting lists or the forward index of a part, written by PackedListWriter."""

    def __init__(self, path: Path, limit: int) -> None:
        """Map the files under the name `path`. limit: all numbers in the lists are below it."""
        self.words = map_raw(path.with_suffix(".words"), np.uint32)
        self.starts = map_array(path.with_suffix(".starts.npy"))
        self._limit = limit
        if int(self.starts[-1]) + 1 != len(self.words):
            raise ValueError(f"{path.name}.words does not have the length that its starts imply")

    def offsets(self, numbers: Any) -> NDArray[np.int64]:
        """Return where each list begins in `words`. numbers: an index array or a slice."""
        offsets: NDArray[np.int64] = self.starts[:-1][numbers].astype(np.int64)
        if len(offsets) and int(offsets.max()) >= len(self.words) - 1:
            raise ValueError("postings are damaged: a list starts beyond the end")
        return offsets

    def take(self, numbers: Any) -> tuple[NDArray[np.int64], Postings]:
        """Return the sizes of some lists, and their entries end to end.

        numbers: the lists' numbers, an index array or a slice.
        """
        offsets = self.offsets(numbers)
        sizes = frequencies(self.words, offsets)
        docs, tfs = np.empty(sizes.sum(), np.uint32), np.empty(sizes.sum(), np.uint32)
        unpack(self.words, offsets, self._limit, docs, tfs)
        return sizes, Postings(docs, tfs)


def as_number(text: str) -> float:
    """Return the number that a text is, NaN if it is none."""
    return float(text) if _NUMBER.fullmatch(text) else np.nan


def is_above(low: str, high: str) -> bool:
    """Whether no value can lie between the limits of a range; see `documents_with`."""
    lowest, highest = as_number(low), as_number(high)
    if np.isnan(lowest) or np.isnan(highest):
        return low[: len(high)] > high
    return lowest > highest


def _union(ranges: Iterable[tuple[int, int]]) -> NDArray[np.int64]:
    """Return the numbers that are in any of some ranges, each once, ascending."""
    pieces, end = [np.zeros(0, np.int64)], 0
    for first, last in sorted(ranges):
        if last > end:
            pieces.append(np.arange(max(first, end), last))
            end = last
    return np.concatenate(pieces)


class PartField:
    """One indexed field of one part.

    first_term, end_term: the range of the field's terms among all terms of the part. lengths:
    (documents,), the number of terms in the field of each document.
    """

    def __init__(self, part: Part, number: int) -> None:
        """Open the field with this number. It uses the arrays of `part`, which owns it."""
        self._part = weakref.ref(part)  # a cycle would keep the files open until garbage collection
        self.number = number
        self.first_term, self.end_term = part.field_starts[number : number + 2].tolist()
        self.lengths = part.lengths[number]
        self._last_find: tuple[tuple[str, ...], NDArray[np.int64]] = ((), np.zeros(0, np.int64))
        self._live_sizes: dict[int, int] = {}  # term number → its number of live documents
        self._values: tuple[NDArray[np.float64], NDArray[np.int64]] | None = None
        self._last_documents: tuple[object, NDArray[np.bool_]] = (None, np.zeros(0, bool))

    @property
    def part(self) -> Part:
        """The part that the field belongs to."""
        part = self._part()
        assert part is not None  # every user of a field holds a reference to its part
        return part

    def terms(self) -> list[str]:
        """Return all terms, sorted."""
        return self.part.terms.take(range(self.first_term, self.end_term))

    def similar_terms(self, term: str, allowed: int) -> dict[str, int]:
        """Return the terms that differ in at most `allowed` letters, and in how many."""
        return self.part.terms.similar(term, allowed, self.first_term, self.end_term)

    def find(self, terms: Sequence[str]) -> NDArray[np.int64]:
        """Return each term's number in the part; −1 for one that does not occur in the field."""
        wanted = tuple(terms)
        # Each query needs the numbers twice, for statistics and for posting lists.
        last_terms, numbers = self._last_find
        if last_terms != wanted:
            numbers = self.part.terms.find_all(wanted, self.first_term, self.end_term)
            self._last_find = (wanted, numbers)
        return numbers

    def document_frequencies(self, terms: Sequence[str]) -> dict[str, int]:
        """Return term → number of live documents that contain it, for terms that occur in any."""
        numbers = self.find(terms)
        occurs = numbers >= 0
        sizes = self._count_live(numbers[occurs]).tolist()
        occurring = (term for term, here in zip(terms, occurs.tolist(), strict=True) if here)
        return {term: df for term, df in zip(occurring, sizes, strict=True) if df}

    def _count_live(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the number of live documents in each list; cached if the part has deletions."""
        lists, deleted = self.part.postings, self.part.deleted
        if deleted is None:
            sizes: NDArray[np.int64] = frequencies(lists.words, lists.offsets(numbers))
            return sizes
        new = np.array([n for n in numbers.tolist() if n not in self._live_sizes], np.int64)
        counts, postings = lists.take(new)
        owner = np.repeat(np.arange(len(new)), counts)
        live = np.bincount(owner, ~deleted[postings.docs], len(new)).astype(np.int64)
        self._live_sizes.update(zip(new.tolist(), live.tolist(), strict=True))
        return np.array([self._live_sizes[n] for n in numbers.tolist()], np.int64)

    def postings(self, term: str) -> Postings | None:
        """Return the postings of `term`, including deleted documents; None if it does not occur."""
        numbers = self.find([term])
        return None if numbers[0] < 0 else self.part.postings.take(numbers)[1]

    def documents_with(
        self,
        terms: Sequence[str],
        prefixes: Sequence[str] = (),
        ranges: Sequence[tuple[str, str]] = (),
    ) -> NDArray[np.bool_]:
        """Return which documents have any of some terms, bool (documents,), read-only.

        prefixes: what further terms begin with. ranges: the lowest and the highest of further
        terms, both included; an empty string is no limit. A term that is a number is compared as a
        number if the limits are numbers, any other as text, and with the highest only as far as
        that goes. Deleted documents are included.
        """
        wanted = (tuple(terms), tuple(prefixes), tuple(ranges))
        # A search needs them several times, for terms and for vectors; facets, for each field.
        last_wanted, documents = self._last_documents
        if last_wanted != wanted:
            numbers = self.find(terms)
            chosen = [numbers[numbers >= 0], self.first_term + self._in_ranges(prefixes, ranges)]
            documents = np.zeros(self.part.documents, bool)
            documents[self.part.postings.take(np.concatenate(chosen))[1].docs] = True
            documents.flags.writeable = False
            self._last_documents = (wanted, documents)
        return documents

    def _in_ranges(
        self, prefixes: Sequence[str], ranges: Sequence[tuple[str, str]]
    ) -> NDArray[np.int64]:
        """Return the numbers, within the field, of the terms that `documents_with` describes."""
        as_text = [self._text_range(prefix, prefix) for prefix in prefixes]
        numeric, beside = list[tuple[int, int]](), list[tuple[int, int]]()
        values, order = self._numbers() if ranges else (np.zeros(0), np.zeros(0, np.int64))
        for low, high in ranges:
            lowest = as_number(low) if low else -np.inf
            highest = as_number(high) if high else np.inf
            if np.isnan(lowest) or np.isnan(highest):
                as_text.append(self._text_range(low, high))
            else:
                begin = np.searchsorted(values, lowest, sorter=order)
                end = np.searchsorted(values, highest, "right", sorter=order)
                numeric.append((int(begin), int(end)))
                beside.append(self._text_range(low, high))
        others = _union(beside)
        others = others[np.isnan(values[others])]
        return np.concatenate([_union(as_text), order[_union(numeric)], others])

    def _text_range(self, low: str, high: str) -> tuple[int, int]:
        """Return the range of the terms between two limits, as `documents_with` compares text."""
        terms, numbers = self.part.terms, range(self.first_term, self.end_term)
        first, last = (limit.encode("utf-8", "surrogatepass") for limit in (low, high))
        begin = bisect_left(numbers, first, key=terms.raw)
        end = bisect_right(numbers, last, key=lambda number: terms.raw(number)[: len(last)])
        return begin, end

    def _numbers(self) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Return the value of each term, NaN for one that is not a number, and the terms by value.

        NaN comes last. Computed once.
        """
        if self._values is None:
            values = np.array([*map(as_number, self.terms())], np.float64)
            self._values = (values, np.argsort(values))
        return self._values

    def list_sizes(self) -> NDArray[np.int64]:
        """Return the number of postings of each term, including deleted documents."""
        lists = self.part.postings
        offsets = lists.offsets(slice(self.first_term, self.end_term))
        sizes: NDArray[np.int64] = frequencies(lists.words, offsets)
        return sizes

    def read_lists(self, begin: int, end: int) -> tuple[NDArray[np.int64], Postings]:
        """Return list sizes and postings, end to end, for the field's sorted terms begin:end."""
        return self.part.postings.take(slice(self.first_term + begin, self.first_term + end))

    def term_vectors(self, documents: NDArray[np.int64]) -> tuple[NDArray[np.int64], Postings]:
        """Read the forward index of `documents`.

        Returns the number of distinct terms in each document, and Postings whose `docs` are these
        terms, end to end, numbered within the field.
        """
        if self.part.forward is None:
            raise ValueError("there is no forward index")
        return self.part.forward.take(self.number * self.part.documents + documents)


def chunk_bounds(sizes: NDArray[np.int64]) -> list[int]:
    """Return the bounds of chunks of about POSTINGS_PER_CHUNK postings. sizes: of each list."""
    chunk = np.cumsum(sizes) // POSTINGS_PER_CHUNK
    return [0, *(np.flatnonzero(np.diff(chunk)) + 1).tolist(), len(sizes)]


class Part:
    """One immutable part of an index (Lucene: segment), whose documents are numbered from 0.

    documents: the number of stored documents, including deleted ones. deleted: whether each
    document is deleted, bool (documents,); None if no document is.
    """

    def __init__(self, directory: Path, entry: PartEntry, forward: bool) -> None:
        """Map the part that `entry` describes; ArtifactError if a file is missing or damaged.

        forward: whether the part has a forward index.
        """
        path = directory / entry.name
        self.entry = entry
        self.name = entry.name
        self.documents = entry.documents
        self.totals = entry.fields
        self.path = path
        if path.is_symlink():
            raise ArtifactError(
                "a part of the index is a symbolic link",
                where=str(path),
                remedy="move the folder that it leads to into the index",
            )
        with self.reporting_damage():
            self.deleted = _mask(path / entry.deleted, entry.documents) if entry.deleted else None
            self.doc_ids = StringTable(path / "doc_ids")
            self.stored_fields = StoredFieldReader(path / "texts")
            self.terms = StringTable(path / "terms")
            self.field_starts = map_array(path / "fields.npy")
            self.postings = PackedLists(path / "postings", entry.documents)
            self.lengths = map_array(path / "lengths.npy")
            self.forward = PackedLists(path / "forward", len(self.terms)) if forward else None
            self._check(entry)
        self.fields = [PartField(self, number) for number in range(len(entry.fields))]

    def reporting_damage(self) -> AbstractContextManager[None]:
        """Turn errors that only damage can cause into an ArtifactError that names the part."""
        return reporting_damage("index", self.path, REMEDY)

    def _check(self, entry: PartEntry) -> None:
        """Raise ValueError if an array has the wrong length."""
        fields, terms = len(entry.fields), len(self.terms)
        expected = {
            "doc_ids": (len(self.doc_ids), entry.documents),
            "texts": (len(self.stored_fields), entry.documents),
            "lengths": (self.lengths.shape, (fields, entry.documents)),
            "fields": (len(self.field_starts), fields + 1),
            "terms": (int(self.field_starts[-1]), terms),
            "postings": (len(self.postings.starts), terms + 1),
        }
        if self.forward:
            expected["forward"] = (len(self.forward.starts), fields * entry.documents + 1)
        for name, (actual, right) in expected.items():
            if actual != right:
                raise ValueError(f"{name}: {right} expected, found {actual}")

    def __len__(self) -> int:
        """The number of live documents, that is, documents that are not deleted."""
        return self.documents - (0 if self.deleted is None else int(self.deleted.sum()))

    def live_numbers(self) -> NDArray[np.int64]:
        """Return the numbers of the live documents, in ascending order."""
        return np.arange(self.documents) if self.deleted is None else np.flatnonzero(~self.deleted)

    def find(self, doc_id: str) -> int | None:
        """Return the number of the live document `doc_id`, or None if there is none."""
        (number,) = self.find_all([doc_id]).tolist()
        return None if number < 0 else number

    def find_all(self, doc_ids: Sequence[str]) -> NDArray[np.int64]:
        """Return the number of each document; −1 if it is not in the part or is deleted."""
        numbers = self.doc_ids.find_all(doc_ids)
        return numbers if self.deleted is None else np.where(self.deleted[numbers], -1, numbers)

    def live_documents(self) -> Iterator[tuple[str, dict[str, str]]]:
        """Yield the id and the fields of each live document, in order."""
        for number, fields in self.stored_fields.iterate(self.live_numbers().tolist()):
            yield self.doc_ids[number], fields


def locate_documents(
    parts: Sequence[Part], doc_ids: Sequence[str]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the position of each document's part, and its number in it; −1 if it is in none."""
    positions, numbers = np.full((2, len(doc_ids)), -1, np.int64)
    pending = np.arange(len(doc_ids))
    for position, part in enumerate(parts):
        if not len(pending):
            break
        with part.reporting_damage():
            in_part = part.find_all([doc_ids[i] for i in pending.tolist()])
        positions[pending[in_part >= 0]], numbers[pending] = position, in_part
        pending = pending[in_part < 0]
    return positions, numbers


def _mask(path: Path, documents: int) -> NDArray[np.bool_]:
    mask: NDArray[np.bool_] = np.zeros(documents, bool)
    mask[map_array(path)] = True
    return mask
