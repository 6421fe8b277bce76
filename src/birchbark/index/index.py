"""What can be read from an index on disk?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from functools import cached_property
from os import PathLike
from pathlib import Path

import numpy as np

from birchbark.arguments import path_of, texts_of
from birchbark.artifact import json_checksum
from birchbark.errors import ArtifactError, InputError, UnknownDocumentError
from birchbark.index.attachment_reader import Attachment
from birchbark.index.attachment_schema import AttachmentSchema
from birchbark.index.layout import FieldTotals
from birchbark.index.part import Part, PartField, locate_documents
from birchbark.index.shards import manifest_folders, manifest_id, read_manifest, shard_folders
from birchbark.recently_used import RecentlyUsed
from birchbark.record_values import as_id, ids_of
from birchbark.records import Document
from birchbark.text.analyzer import Analyzer

CACHED_CHARACTERS = 20_000_000  # of recently read documents


class Index:
    """A snapshot of an index on disk; later changes to the index do not affect it.

    Of an index that is divided into shards, the parts of all of them are read as those of one.

    Args:
        directory: The directory of the index.

    Raises:
        InputError: If there is no index in `directory`.
        ArtifactError: If the index is damaged.
    """

    def __init__(self, directory: PathLike[str] | str) -> None:
        """Open the index in `directory`; InputError if there is none, ArtifactError if damaged."""
        self.directory = path_of(directory, "the directory of the index")
        self.derived: dict[str, object] = {}  # field → cached values computed from this snapshot
        self._documents: RecentlyUsed[str, Document] = RecentlyUsed(CACHED_CHARACTERS)
        self._read_manifest()
        while True:
            try:
                self.parts = [
                    Part(self.directory, entry, self._manifest.forward)
                    for entry in self._manifest.parts
                ]
                self._attachments = {name: self._open(name) for name in self.attachments}
            except ArtifactError:
                before = self._manifest
                self._read_manifest()
                if before == self._manifest:
                    raise  # otherwise a writer has replaced the files in the meantime: try again
            else:
                if _inode(self.directory) == self._folder:
                    return
                self._read_manifest()  # parts may be those of another index, which replaced it

    def __fspath__(self) -> str:
        """An index stands for its directory where a path is wanted."""
        return str(self.directory)

    def _read_manifest(self) -> None:
        self._manifest_folders = manifest_folders(self.directory)
        self._folder = _inode(self.directory)
        # before the manifest is read, so that no change is missed
        self._manifest_id = manifest_id(self._manifest_folders)
        self._manifest = read_manifest(self.directory)

    @property
    def outdated(self) -> bool:
        """Whether the index on disk has changed since this snapshot was opened."""
        return manifest_id(self._manifest_folders) != self._manifest_id

    def same_documents(self, other: Index) -> bool:
        """Whether the other snapshot has the same documents, indexed in the same way."""
        return self._documents_id == other._documents_id

    @property
    def _documents_id(self) -> tuple[object, ...]:
        """What changes with the documents, but not with attachments to them."""
        manifest = self._manifest
        parts = [(part.name, part.checksum, part.deleted_checksum) for part in manifest.parts]
        return manifest.analyzer, manifest.vocabulary, manifest.fields, manifest.read_fields, parts

    @property
    def fingerprint(self) -> str:
        """A hash of the documents, of how they are indexed, and of the attachments to them."""
        known = {**asdict(self._manifest), "generation": 0}
        return json_checksum({name: known[name] for name in known if not name.startswith("origin")})

    @cached_property
    def shard_states(self) -> Mapping[str, str]:
        """Name of each shard → a hash of its documents; of an index in one piece, name `""`."""
        names = [folder.name for folder in shard_folders(self.directory)] or [""]
        parts: dict[str, list[object]] = {name: [] for name in names}
        for part in self._manifest.parts:
            shard, _, name = part.name.rpartition("/")
            parts[shard].append((name, part.checksum, part.deleted_checksum))
        return {name: json_checksum({"parts": listed}) for name, listed in parts.items()}

    def _open(self, name: str) -> Attachment | ArtifactError:
        """Return the attachment, or the error if it is damaged, as the rest of the index works."""
        try:
            return Attachment(self.directory, name, self.attachments[name], self.parts)
        except ArtifactError as damage:
            if read_manifest(self.directory) != self._manifest:
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
        """Return the attachment `name`, None if there is none; ArtifactError if it is damaged."""
        attachment = self._attachments.get(name)
        if isinstance(attachment, ArtifactError):
            raise attachment
        return attachment

    def missing_rows(self) -> dict[str, int]:
        """Return attachment → number of documents that it lacks, for incomplete attachments."""
        attachments = {name: self.attachment(name) for name in self.attachments}
        missing = {
            name: sum(len(attachment.missing(position)) for position in range(len(self.parts)))
            for name, attachment in attachments.items()
            if attachment
        }
        return {name: documents for name, documents in missing.items() if documents}

    @cached_property
    def analyzer(self) -> Analyzer:
        """The analyzer of the searched fields; queries must be analyzed by it as well."""
        return self._manifest.load_analyzer(self.directory)

    @property
    def fields(self) -> tuple[str, ...]:
        """The names of the fields that can be searched."""
        return tuple(f for f in self._manifest.fields if f not in self.keywords)

    @property
    def fields_beside_contents(self) -> tuple[str, ...]:
        """The document fields that are searched, but not part of a document's contents."""
        return self._manifest.fields_beside_contents

    @property
    def changed(self) -> datetime:
        """When the index was last changed, in UTC."""
        modified = max((modified for _, modified in self._manifest_id or ()), default=0)
        return datetime.fromtimestamp(modified // 1_000_000_000, UTC)

    @property
    def read_fields(self) -> tuple[str, ...]:
        """The document fields that models read after the title."""
        return self._manifest.read_fields

    @property
    def unread_fields(self) -> tuple[str, ...]:
        """The document fields that are searched, but not read by models."""
        return self._manifest.unread_fields

    @property
    def weighted(self) -> Mapping[str, int]:
        """Searched field whose terms have weights → steps per 1 of weight."""
        return self._manifest.weighted

    @property
    def keywords(self) -> tuple[str, ...]:
        """The names of the fields that searches can filter by."""
        return self._manifest.keywords

    def field_number(self, field: str) -> int:
        """Return the position of `field` in each part's `fields`.

        Raises InputError if it is not a searched field.
        """
        if field not in self.fields:
            raise InputError(
                f"no field {field!r} to search",
                where=str(self.directory),
                wanted=f"one of {', '.join(self.fields)}",
                remedy="choose each of them: --set first_stage.fields.NAME=1",
            )
        return list(self._manifest.fields).index(field)

    def filter_number(self, field: str) -> int:
        """Return the position of the keyword field `field` in each part's `fields`.

        Raises InputError if it is not a keyword field.
        """
        known = ", ".join(self.keywords)
        if field not in self.keywords:
            raise InputError(
                f"no field {field!r} to filter by",
                where=str(self.directory),
                wanted=f"one of {known}" if known else "",
                remedy="" if known else f"build the index with --keyword {field}",
            )
        return list(self._manifest.fields).index(field)

    def totals(self, field: str) -> FieldTotals:
        """Return the number of documents and tokens of `field` over all parts."""
        number = self.field_number(field)
        return sum((part.totals[number] for part in self.parts), FieldTotals(0, 0))

    def document_frequencies(self, terms: Iterable[str], field: str) -> dict[str, int]:
        """Return term → number of documents that contain it in `field`, for terms that occur."""
        number, terms = self.field_number(field), texts_of(terms, "term")
        frequencies: Counter[str] = Counter()
        for part in self.parts:
            with part.reporting_damage():
                frequencies.update(part.fields[number].document_frequencies(terms))
        return dict(frequencies)

    def term_vectors(self, doc_ids: Sequence[str], field: str) -> list[dict[str, int]]:
        """Return term → frequency (or impact) in `field` for each document.

        The terms are in no fixed order. They are read from the forward index if there is one, and
        otherwise computed from the stored text.
        """
        number = self.field_number(field)
        if self._manifest.forward:
            located = [self.locate(doc_id) for doc_id in doc_ids]
            return [
                self._term_vector(self.parts[part].fields[number], doc) for part, doc in located
            ]
        documents = self.documents(doc_ids)
        if field in self.weighted:
            return [self._manifest.impacts_of(d.fields, d.doc_id)[field] for d in documents]
        texts = [self._manifest.texts_of(d.fields)[number] for d in documents]
        return [dict(Counter(self.analyzer.terms(text))) for text in texts]

    def _term_vector(self, field: PartField, document: int) -> dict[str, int]:
        with field.part.reporting_damage():
            _, vector = field.term_vectors(np.array([document]))
            terms = field.part.terms.take(vector.docs.astype(np.int64) + field.first_term)
        return dict(zip(terms, vector.tfs.tolist(), strict=True))

    def documents(self, doc_ids: Sequence[str]) -> list[Document]:
        """Return the documents with these ids, in this order.

        Raises InputError for an id that is not in the index.
        """
        doc_ids = ids_of(doc_ids)
        documents = {d: document for d in doc_ids if (document := self._documents.get(d))}
        by_part: dict[int, dict[int, str]] = {}  # position of the part → number → doc_id
        for doc_id in doc_ids:
            if doc_id not in documents:
                part, number = self.locate(doc_id)
                by_part.setdefault(part, {})[number] = doc_id
        for part, numbers in by_part.items():
            for number, fields in self.parts[part].stored_fields.take(numbers).items():
                document = Document(numbers[number], fields, self.read_fields)
                documents[numbers[number]] = document
                self._documents.add(numbers[number], document, sum(map(len, fields.values())))
        return [documents[doc_id] for doc_id in doc_ids]

    def locate(self, doc_id: str) -> tuple[int, int]:
        """Return the position of the document's part, and the document's number in it.

        Raises UnknownDocumentError for an id that is not in the index.
        """
        located = self.find(doc_id)
        if located is None:
            raise UnknownDocumentError(
                f"no document {doc_id}",
                where=str(self.directory),
                remedy="was the run made from another collection?",
            )
        return located

    def check_known(self, doc_ids: Iterable[str]) -> None:
        """Raise an error, as `locate` does, if one of these documents is not in the index."""
        doc_ids = ids_of(doc_ids)
        positions, _ = locate_documents(self.parts, doc_ids)
        if len(unknown := np.flatnonzero(positions < 0)):
            self.locate(doc_ids[unknown[0]])

    def find(self, doc_id: str) -> tuple[int, int] | None:
        """Return what `locate` returns, but None for an id that is not in the index."""
        doc_id = as_id(doc_id, "doc_id")
        for position, part in enumerate(self.parts):
            with part.reporting_damage():
                number = part.find(doc_id)
            if number is not None:
                return position, number
        return None

    def __iter__(self) -> Iterator[Document]:
        """Iterate over all documents in the order in which they were last added."""
        for part in self.parts:
            for doc_id, fields in part.live_documents():
                yield Document(doc_id, fields, self.read_fields)


def _inode(directory: Path) -> int:
    """Return what tells a folder from another in its place; 0 if there is none."""
    try:
        return directory.stat().st_ino
    except OSError:
        return 0
