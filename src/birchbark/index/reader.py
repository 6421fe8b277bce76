"""What can be asked of an index on disk?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, reduce
from operator import add
from pathlib import Path

import numpy as np

from birchbark.errors import ArtifactError, InputError
from birchbark.index.attachment_reader import Attachment
from birchbark.index.attachment_schema import AttachmentSchema
from birchbark.index.layout import MANIFEST, FieldTotals, Manifest
from birchbark.index.part_reader import FieldPart, Part
from birchbark.records import Document
from birchbark.text.analyzer import Analyzer


class Index:
    """A snapshot of an index: what its manifest said when it was opened."""

    def __init__(self, directory: Path | str) -> None:
        """Open the index in `directory`; InputError if there is none, ArtifactError if damaged."""
        self.directory = Path(directory)
        self.remembered: dict[str, object] = {}  # what others derived from this snapshot, by field
        self._read()
        while True:
            try:
                self.parts = [
                    Part(self.directory, entry, self._manifest.forward)
                    for entry in self._manifest.parts
                ]
                self._attachments = {name: self._map(name) for name in self.attachments}
            except ArtifactError:
                before = self._manifest
                self._read()
                if before == self._manifest:
                    raise  # else a writer came between: its files are there now
            else:
                return

    def _read(self) -> None:
        self._mark = _mark(self.directory)  # before: a change in between is seen later
        self._manifest = Manifest.read(self.directory)

    @property
    def outdated(self) -> bool:
        """Whether the index on disk has changed since: then another snapshot can be opened."""
        return _mark(self.directory) != self._mark

    def _map(self, name: str) -> Attachment | ArtifactError:
        """The attachment; where it is damaged, the error, as the rest of the index can be used."""
        try:
            return Attachment(self.directory, name, self.attachments[name], self.parts)
        except ArtifactError as damage:
            if Manifest.read(self.directory) != self._manifest:
                raise
            return damage

    def __len__(self) -> int:
        """The number of documents."""
        return sum(map(len, self.parts))

    @property
    def attachments(self) -> Mapping[str, AttachmentSchema]:
        """Name → schema of each attachment."""
        return self._manifest.attachments

    def attachment(self, name: str) -> Attachment | None:
        """The attachment of this name, None where there is none; ArtifactError if damaged."""
        found = self._attachments.get(name)
        if isinstance(found, ArtifactError):
            raise found
        return found

    def incomplete(self) -> dict[str, int]:
        """Attachment → how many documents it keeps nothing of, for those that lack any."""
        found = {name: self.attachment(name) for name in self.attachments}
        missing = {
            name: sum(len(attachment.missing(position)) for position in range(len(self.parts)))
            for name, attachment in found.items()
            if attachment
        }
        return {name: documents for name, documents in missing.items() if documents}

    @cached_property
    def analyzer(self) -> Analyzer:
        """The analyzer its texts went through; queries must go through it too."""
        return self._manifest.load_analyzer(self.directory)

    @property
    def fields(self) -> tuple[str, ...]:
        """Names of the fields that can be searched."""
        return tuple(f for f in self._manifest.fields if f not in self._manifest.keywords)

    def field_number(self, field: str) -> int:
        """Position of `field` in each part's `fields`; InputError lists the fields there are."""
        if field not in self.fields:
            raise InputError(
                f"no field {field!r} to search",
                where=str(self.directory),
                remedy=f"--field names one of {', '.join(self.fields)}",
            )
        return list(self._manifest.fields).index(field)

    def filter_number(self, field: str) -> int:
        """As `field_number`, for a field to filter by."""
        known = ", ".join(self._manifest.keywords)
        if field not in self._manifest.keywords:
            raise InputError(
                f"no field {field!r} to filter by",
                where=str(self.directory),
                remedy=f"one of {known}" if known else "none was named when it was indexed",
            )
        return list(self._manifest.fields).index(field)

    def totals(self, field: str) -> FieldTotals:
        """Documents and tokens of `field` over all parts."""
        number = self.field_number(field)
        return reduce(add, (part.totals[number] for part in self.parts), FieldTotals(0, 0))

    def document_frequencies(self, terms: Sequence[str], field: str) -> dict[str, int]:
        """Term → in how many documents it occurs in `field`; only terms that are in any."""
        number = self.field_number(field)
        found: Counter[str] = Counter()
        for part in self.parts:
            with part.reading():
                found.update(part.fields[number].document_frequencies(terms))
        return dict(found)

    def vectors(self, doc_ids: Sequence[str], field: str) -> list[dict[str, int]]:
        """Term → frequency in `field`, for each document; order of terms is not fixed.

        Read from the forward index if there is one, else made again from the stored text.
        """
        number = self.field_number(field)
        if self._manifest.forward:
            places = [self.locate(doc_id) for doc_id in doc_ids]
            return [self._vector(self.parts[part].fields[number], doc) for part, doc in places]
        texts = [self._manifest.texts_of(d.fields)[number] for d in self.documents(doc_ids)]
        return [dict(Counter(self.analyzer.terms(text))) for text in texts]

    def _vector(self, field: FieldPart, document: int) -> dict[str, int]:
        with field.part.reading():
            _, held = field.vectors(np.array([document]))
            terms = field.part.terms.take(held.docs.astype(np.int64) + field.first)
        return dict(zip(terms, held.tfs.tolist(), strict=True))

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
            with part.reading():
                number = part.find(doc_id)
            if number is not None:
                return position, number
        return None

    def __iter__(self) -> Iterator[Document]:
        """Every document, in the order of indexing; an updated one where it was last added."""
        for part in self.parts:
            for doc_id, fields in part.live_documents():
                yield Document(doc_id, fields)


def _mark(directory: Path) -> tuple[int, int] | None:
    """What tells a manifest from the next one, which is another file; None where there is none."""
    try:
        found = (directory / MANIFEST).stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns
