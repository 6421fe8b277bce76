"""What can be asked of one part of an index?"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from birchbark.errors import ArtifactError
from birchbark.index.arrays import map_array, map_raw
from birchbark.index.layout import PartEntry
from birchbark.index.postings import frequencies, unpack
from birchbark.index.strings import StringTable
from birchbark.index.texts import TextReader

PIECE = 4_000_000  # postings unpacked at a time


@dataclass(frozen=True, slots=True, eq=False)
class Postings:
    """Where terms occur in one part: document numbers, rising for a term, and frequencies."""

    docs: NDArray[Any]
    tfs: NDArray[Any]


class PackedLists:
    """Posting lists, or the forward index, of a part: written by a ListWriter."""

    def __init__(self, path: Path, limit: int) -> None:
        """Map the files under the name `path`. limit: entries are numbers below it."""
        self.words = map_raw(path.with_suffix(".words"), np.uint32)
        self.starts = map_array(path.with_suffix(".starts.npy"))
        self._limit = limit
        if int(self.starts[-1]) + 1 != len(self.words):
            raise ValueError(f"{path.name}.words is not as long as its starts say")

    def places(self, numbers: Any) -> NDArray[np.int64]:
        """Where the lists with these numbers start in `words`. numbers: index or slice."""
        found: NDArray[np.int64] = self.starts[:-1][numbers].astype(np.int64)
        if len(found) and int(found.max()) >= len(self.words) - 1:
            raise ValueError("postings are damaged: a list starts behind the end")
        return found

    def take(self, numbers: Any) -> tuple[NDArray[np.int64], Postings]:
        """How long each of the lists is, and their entries end to end. numbers: index or slice."""
        places = self.places(numbers)
        sizes = frequencies(self.words, places)
        docs, tfs = np.empty(sizes.sum(), np.uint32), np.empty(sizes.sum(), np.uint32)
        unpack(self.words, places, self._limit, docs, tfs)
        return sizes, Postings(docs, tfs)


class FieldPart:
    """One indexed field of one part. first, end: where its terms are in the part's table."""

    def __init__(self, part: Part, number: int) -> None:
        """The field with this number; the arrays are those of `part`, which holds this."""
        self._part = weakref.ref(part)  # else both would keep their files open until a gc
        self.number = number
        self.first, self.end = int(part.field_starts[number]), int(part.field_starts[number + 1])
        self.lengths = part.lengths[number]
        self._found: tuple[tuple[str, ...], NDArray[np.int64]] = ((), np.zeros(0, np.int64))
        self._live: dict[int, int] = {}  # term number → live documents, where some are deleted

    @property
    def part(self) -> Part:
        """The part that the field is of."""
        part = self._part()
        assert part is not None  # who holds a field holds its part
        return part

    def terms(self) -> list[str]:
        """All terms, sorted."""
        return self.part.terms.take(range(self.first, self.end))

    def find(self, terms: Sequence[str]) -> NDArray[np.int64]:
        """The number in the part of each of `terms`; −1 where there is none."""
        asked, found = self._found  # a query asks twice: for statistics, and for its lists
        if asked != (wanted := tuple(terms)):
            found = self.part.terms.find_all(wanted, self.first, self.end)
            self._found = (wanted, found)
        return found

    def document_frequencies(self, terms: Sequence[str]) -> dict[str, int]:
        """Term → number of documents with it, deleted ones left out; only terms that have any."""
        numbers = self.find(terms)
        there = numbers >= 0
        sizes = self._live_sizes(numbers[there]).tolist()
        held = (term for term, is_there in zip(terms, there.tolist(), strict=True) if is_there)
        return {term: df for term, df in zip(held, sizes, strict=True) if df}

    def _live_sizes(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """How many live documents each of these lists holds; remembered where some are deleted."""
        lists, deleted = self.part.postings, self.part.deleted
        if deleted is None:
            sizes: NDArray[np.int64] = frequencies(lists.words, lists.places(numbers))
            return sizes
        new = np.array([n for n in numbers.tolist() if n not in self._live], np.int64)
        counts, postings = lists.take(new)
        owner = np.repeat(np.arange(len(new)), counts)
        live = np.bincount(owner, ~deleted[postings.docs], len(new)).astype(np.int64)
        self._live.update(zip(new.tolist(), live.tolist(), strict=True))
        return np.array([self._live[n] for n in numbers.tolist()], np.int64)

    def postings(self, term: str) -> Postings | None:
        """The postings of `term`, deleted documents included; None where there are none."""
        numbers = self.find([term])
        return None if numbers[0] < 0 else self.part.postings.take(numbers)[1]

    def sizes(self) -> NDArray[np.int64]:
        """The number of postings of each term, deleted documents included."""
        lists = self.part.postings
        places = lists.places(slice(self.first, self.end))
        sizes: NDArray[np.int64] = frequencies(lists.words, places)
        return sizes

    def lists(self, begin: int, end: int) -> tuple[NDArray[np.int64], Postings]:
        """Sizes and postings of the field's terms from place `begin` to `end`, end to end."""
        return self.part.postings.take(slice(self.first + begin, self.first + end))

    def vectors(self, numbers: NDArray[np.int64]) -> tuple[NDArray[np.int64], Postings]:
        """The forward index of documents: how many terms each has; terms, as places, and tfs."""
        if self.part.forward is None:
            raise ValueError("there is no forward index")
        return self.part.forward.take(self.number * self.part.documents + numbers)


def cuts(sizes: NDArray[np.int64]) -> list[int]:
    """0, len(sizes), and between them cuts such that the sizes sum up to about PIECE."""
    piece = np.cumsum(sizes) // PIECE
    return [0, *(np.flatnonzero(np.diff(piece)) + 1).tolist(), len(sizes)]


class Part:
    """One immutable piece of an index; documents are numbered from 0 within it.

    documents: how many are stored. deleted: bool (documents,), or None if none is.
    """

    def __init__(self, directory: Path, entry: PartEntry, forward: bool) -> None:
        """Map the part that `entry` describes; ArtifactError if a file is missing or damaged.

        forward: whether it has a forward index.
        """
        path = directory / entry.name
        self.entry = entry
        self.name = entry.name
        self.documents = entry.documents
        self.totals = entry.fields
        self.path = path
        with self.reading():
            self.deleted = _mask(path / entry.deleted, entry.documents) if entry.deleted else None
            self.doc_ids = StringTable(path / "doc_ids")
            self.texts = TextReader(path / "texts")
            self.terms = StringTable(path / "terms")
            self.field_starts = map_array(path / "fields.npy")
            self.postings = PackedLists(path / "postings", entry.documents)
            self.lengths = map_array(path / "lengths.npy")
            self.forward = PackedLists(path / "forward", len(self.terms)) if forward else None
            self._check(entry)
        self.fields = [FieldPart(self, number) for number in range(len(entry.fields))]

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Inside, what only damage can be is raised as an ArtifactError that names the part."""
        try:
            yield
        except (OSError, ValueError, IndexError) as broken:
            raise ArtifactError(
                f"damaged index: {broken}",
                where=str(self.path),
                remedy="build the index again; `birchbark index verify` finds what is damaged",
            ) from broken

    def _check(self, entry: PartEntry) -> None:
        """Raise ValueError if the arrays are not as long as they must be."""
        fields, terms = len(entry.fields), len(self.terms)
        wanted = {
            "doc_ids": (len(self.doc_ids), entry.documents),
            "lengths": (self.lengths.shape, (fields, entry.documents)),
            "fields": (len(self.field_starts), fields + 1),
            "terms": (int(self.field_starts[-1]), terms),
            "postings": (len(self.postings.starts), terms + 1),
        }
        if self.forward:
            wanted["forward"] = (len(self.forward.starts), fields * entry.documents + 1)
        for name, (found, right) in wanted.items():
            if found != right:
                raise ValueError(f"{name}: {right} expected, found {found}")

    def __len__(self) -> int:
        """The number of documents that are not deleted."""
        return self.documents - (0 if self.deleted is None else int(self.deleted.sum()))

    def live(self) -> NDArray[np.int64]:
        """Numbers of the documents that are not deleted, rising."""
        return np.arange(self.documents) if self.deleted is None else np.flatnonzero(~self.deleted)

    def find(self, doc_id: str) -> int | None:
        """The document's number, or None if it is not here or deleted."""
        (number,) = self.find_all([doc_id]).tolist()
        return None if number < 0 else number

    def find_all(self, doc_ids: Sequence[str]) -> NDArray[np.int64]:
        """The number of each document; −1 for those that are not here or deleted."""
        found = self.doc_ids.find_all(doc_ids)
        return found if self.deleted is None else np.where(self.deleted[found], -1, found)

    def live_documents(self) -> Iterator[tuple[str, dict[str, str]]]:
        """Id and fields of each document that is not deleted, in order."""
        for start in range(0, self.documents, 256):
            numbers = range(start, min(start + 256, self.documents))
            live = [n for n in numbers if self.deleted is None or not self.deleted[n]]
            for number, fields in self.texts.take(live).items():
                yield self.doc_ids[number], fields


def find_documents(
    parts: Sequence[Part], doc_ids: Sequence[str]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """For each document, the position of its part and its number there; −1 if it is in none."""
    positions, numbers = np.full((2, len(doc_ids)), -1, np.int64)
    left = np.arange(len(doc_ids))
    for position, part in enumerate(parts):
        if not len(left):
            break
        with part.reading():
            found = part.find_all([doc_ids[i] for i in left.tolist()])
        positions[left[found >= 0]], numbers[left] = position, found
        left = left[found < 0]
    return positions, numbers


def _mask(path: Path, documents: int) -> NDArray[np.bool_]:
    mask: NDArray[np.bool_] = np.zeros(documents, bool)
    mask[np.load(path)] = True
    return mask
