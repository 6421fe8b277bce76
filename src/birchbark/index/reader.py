"""What can be asked of an index on disk?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import add
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from birchbark.errors import ArtifactError, InputError
from birchbark.index.layout import FieldTotals, Manifest, PartEntry
from birchbark.index.strings import StringTable, map_array
from birchbark.index.texts import TextReader
from birchbark.records import Document
from birchbark.text.analyzer import Analyzer


@dataclass(frozen=True, slots=True, eq=False)
class Postings:
    """Where one term occurs in one part: document numbers (rising) and frequencies, both (df,)."""

    docs: NDArray[Any]
    tfs: NDArray[Any]


class FieldPart:
    """One indexed field of one part."""

    def __init__(self, directory: Path, deleted: NDArray[np.bool_] | None) -> None:
        """Map the arrays in `directory` (layout.py). deleted: of the part."""
        self.terms = StringTable(directory / "terms")
        self.lengths = map_array(directory / "lengths.npy")
        self.starts = map_array(directory / "postings.npy")
        self.docs = map_array(directory / "docs.npy")
        self.tfs = map_array(directory / "tfs.npy")
        self._forward = map_array(directory / "forward.npy")
        self._forward_terms = map_array(directory / "forward_terms.npy")
        self._forward_tfs = map_array(directory / "forward_tfs.npy")
        self._deleted = deleted
        if not int(self.starts[-1]) == len(self.docs) == len(self.tfs):
            raise ValueError("postings are not as long as their starts say")

    def document_frequency(self, term: str) -> int:
        """In how many documents of this part `term` occurs, deleted ones left out."""
        postings = self.postings(term)
        if postings is None or self._deleted is None:
            return 0 if postings is None else len(postings.docs)
        return len(postings.docs) - int(np.count_nonzero(self._deleted[postings.docs]))

    def postings(self, term: str) -> Postings | None:
        """The postings of `term`, deleted documents included; None where there are none."""
        number = self.terms.find(term)
        if number is None:
            return None
        start, end = int(self.starts[number]), int(self.starts[number + 1])
        return Postings(self.docs[start:end], self.tfs[start:end])

    def vector(self, number: int) -> dict[str, int]:
        """Term → frequency in the document `number`, terms in sorted order."""
        start, end = int(self._forward[number]), int(self._forward[number + 1])
        terms = self.terms.take(self._forward_terms[start:end].tolist())
        return dict(zip(terms, self._forward_tfs[start:end].tolist(), strict=True))


class Part:
    """One immutable piece of an index; documents are numbered from 0 within it.

    documents: how many are stored. deleted: bool (documents,), or None if none is.
    """

    def __init__(self, directory: Path, entry: PartEntry) -> None:
        """Map the part that `entry` describes; ArtifactError if a file is missing or damaged."""
        path = directory / entry.name
        self.name = entry.name
        self.documents = entry.documents
        self.totals = entry.fields
        try:
            self.deleted = _mask(path / entry.deleted, entry.documents) if entry.deleted else None
            self.doc_ids = StringTable(path / "doc_ids")
            self.texts = TextReader(path / "texts")
            fields = range(len(entry.fields))
            self.fields = [FieldPart(path / f"field-{i}", self.deleted) for i in fields]
            counts = {len(self.doc_ids), *(len(field.lengths) for field in self.fields)}
            if counts != {entry.documents}:
                raise ValueError(f"{entry.documents} documents expected, found {counts}")
        except (OSError, ValueError, IndexError) as broken:
            raise ArtifactError(
                f"damaged index: {broken}", where=str(path), remedy="build the index again"
            ) from broken

    def __len__(self) -> int:
        """The number of documents that are not deleted."""
        return self.documents - (0 if self.deleted is None else int(self.deleted.sum()))

    def find(self, doc_id: str) -> int | None:
        """The document's number, or None if it is not here or deleted."""
        number = self.doc_ids.find(doc_id)
        gone = number is not None and self.deleted is not None and self.deleted[number]
        return None if gone else number

    def live_documents(self) -> Iterator[tuple[str, dict[str, str]]]:
        """Id and fields of each document that is not deleted, in order."""
        for start in range(0, self.documents, 256):
            numbers = range(start, min(start + 256, self.documents))
            live = [n for n in numbers if self.deleted is None or not self.deleted[n]]
            for number, fields in self.texts.take(live).items():
                yield self.doc_ids[number], fields


def _mask(path: Path, documents: int) -> NDArray[np.bool_]:
    mask: NDArray[np.bool_] = np.zeros(documents, bool)
    mask[np.load(path)] = True
    return mask


class Index:
    """A snapshot of an index: what its manifest said when it was opened."""

    def __init__(self, directory: Path | str) -> None:
        """Open the index in `directory`; InputError if there is none, ArtifactError if damaged."""
        self.directory = Path(directory)
        self.remembered: dict[str, object] = {}  # what others derived from this snapshot, by field
        self._manifest = Manifest.read(self.directory)
        while True:
            try:
                self.parts = [Part(self.directory, entry) for entry in self._manifest.parts]
            except ArtifactError:
                newer = Manifest.read(self.directory)
                if newer == self._manifest:
                    raise
                self._manifest = newer  # a writer came between: its files are there now
            else:
                return

    def __len__(self) -> int:
        """The number of documents."""
        return sum(map(len, self.parts))

    @cached_property
    def analyzer(self) -> Analyzer:
        """The analyzer its texts went through; queries must go through it too."""
        return self._manifest.load_analyzer(self.directory)

    @property
    def fields(self) -> tuple[str, ...]:
        """Names of the indexed fields."""
        return tuple(self._manifest.fields)

    def field_number(self, field: str) -> int:
        """Position of `field` in each part's `fields`; InputError lists the fields there are."""
        if field not in self.fields:
            raise InputError(
                f"no indexed field {field!r}",
                where=str(self.directory),
                remedy=f"one of {', '.join(self.fields)}",
            )
        return self.fields.index(field)

    def filter_number(self, field: str) -> int:
        """As `field_number`, for a field to filter by."""
        known = ", ".join(self._manifest.keywords)
        if field not in self._manifest.keywords:
            raise InputError(
                f"no field {field!r} to filter by",
                where=str(self.directory),
                remedy=f"one of {known}" if known else "none was named when it was indexed",
            )
        return self.field_number(field)

    def totals(self, field: str) -> FieldTotals:
        """Documents and tokens of `field` over all parts."""
        number = self.field_number(field)
        return reduce(add, (part.totals[number] for part in self.parts), FieldTotals(0, 0))

    def document_frequency(self, term: str, field: str) -> int:
        """In how many documents `term` occurs in `field`."""
        number = self.field_number(field)
        return sum(part.fields[number].document_frequency(term) for part in self.parts)

    def documents(self, doc_ids: Sequence[str]) -> list[Document]:
        """The documents with these ids, in this order; InputError for an id that is not there."""
        wanted: dict[int, dict[int, str]] = {}
        for doc_id in doc_ids:
            part, number = self.locate(doc_id)
            wanted.setdefault(part, {})[number] = doc_id
        found = {
            numbers[number]: Document(numbers[number], fields)
            for part, numbers in wanted.items()
            for number, fields in self.parts[part].texts.take(numbers).items()
        }
        return [found[doc_id] for doc_id in doc_ids]

    def locate(self, doc_id: str) -> tuple[int, int]:
        """Position of the part that holds `doc_id`, and the document's number in it."""
        found = self.find(doc_id)
        if found is None:
            raise InputError(
                f"no document {doc_id}",
                where=str(self.directory),
                remedy="was the run made from another collection?",
            )
        return found

    def find(self, doc_id: str) -> tuple[int, int] | None:
        """As `locate`, but None where there is no such document."""
        for position, part in enumerate(self.parts):
            number = part.find(doc_id)
            if number is not None:
                return position, number
        return None

    def __iter__(self) -> Iterator[Document]:
        """Every document, in the order of indexing; an updated one where it was last added."""
        for part in self.parts:
            for doc_id, fields in part.live_documents():
                yield Document(doc_id, fields)
