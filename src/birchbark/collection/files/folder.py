"""How is a folder read as Documents, and what has changed in it since?"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import blake2b
from os import stat_result
from pathlib import Path
from time import time_ns
from typing import NamedTuple

from birchbark.collection.file_readers.file import Fields
from birchbark.collection.file_readers.file_types import file_type, suffixes
from birchbark.collection.files.file_documents import Part
from birchbark.collection.files.folder_state import FileState, FolderSource
from birchbark.collection.files.isolated_reader import IsolatedReader, why_unread
from birchbark.collection.files.walk import walk
from birchbark.collection.parsing.intake import Intake
from birchbark.collection.parsing.lines import MAX_FILE, decompressed, read_limited, too_large
from birchbark.errors import InputError, UnreadableError
from birchbark.records import Document

MOST_BYTES_AHEAD = 1_000_000  # of a file, unpacked, that is read before its documents are wanted
# Fields that searches can filter by; the last four are those of e-mails.
KEYWORDS = ("path", "folder", "type", "language", "modified", "from", "to", "cc", "date")


def read_folder(path: Path, intake: Intake) -> Iterator[tuple[str, Document]]:
    """Yield location and Document of each file below `path` that contains text, in order of path.

    Files may be compressed. The doc_id is the path below the folder, with white space and %
    replaced as in URLs, since the columns of runs and qrels are separated by white space; of a file
    in a file, such as an attachment, see `parts_of`. Besides `title`, `text` and what its type has,
    a Document has the fields `path`, below the folder; `folder`, the part of it before the file's
    name; `type`, a name in `file_types`; `language`, a code such as `en`, if it was recognised;
    `modified`, a date such as 2026-11-24, in UTC, on which an e-mail was sent; and `size`, in
    bytes. Files that are hidden, ignored (see `walk`) or of other types are noted but not read.
    """
    source = FolderSource(
        (str(path),), intake.include, intake.exclude, follow_links=intake.follow_links
    )
    yield from FolderChanges(source, intake).documents()


class _Contents(NamedTuple):
    """What a file has become.

    state: which is kept of a file that cannot be opened, too. parts: None if they have not changed.
    notes: complete after the last part. error: why the file cannot be opened. is_large: whether the
    next file waits until all parts have been taken.
    """

    state: FileState
    parts: Iterable[Part] | None = None
    notes: Counter[str] | None = None
    error: InputError | None = None
    is_large: bool = False


class _File(NamedTuple):
    """A file: its path, its status if that is known, and its contents if they may be new."""

    path: Path
    status: stat_result | None
    contents: _Contents | None = None

    def read(self) -> _File:
        """Return the file when all of it has been read."""
        if self.contents is None or self.contents.parts is None:
            return self
        return self._replace(contents=self.contents._replace(parts=list(self.contents.parts)))


class FolderChanges:
    """What has changed in a folder since it was last read.

    Attributes:
        source: The folders, and which of their files are read.
        files: Path of a file → its state; see `FolderState`. Complete after the iteration over
            `documents`.
        unchanged: Number of documents that have not changed, likewise.
    """

    def __init__(
        self, source: FolderSource, intake: Intake, known: Mapping[str, FileState] | None = None
    ) -> None:
        """known: the state of each file when it was last read; None if none was."""
        self.source, self._intake, self._known = source, intake, known or {}
        self.files: dict[str, FileState] = {}
        self.unchanged = 0

    def exist(self, *, retry: bool) -> bool:
        """Whether a file was added, deleted, or has another size or time; no file is read.

        retry: whether what could not be read counts as changed, too.
        """
        unreadable: list[Path] = []
        found = {path.as_posix(): status for path, status in self._files(Intake(), unreadable)}
        gone = set(self._known).difference(found, self._below(unreadable))
        changed = (self._differs(self._known.get(p), status, retry) for p, status in found.items())
        return bool(gone) or (retry and bool(unreadable)) or any(changed)

    def documents(self) -> Iterator[tuple[str, Document]]:
        """Yield location and Document of what is new or differs from what is known.

        In order of path. Files that cannot be read are bad files of the intake; if that does not
        depend on their bytes, the documents that they were are kept.
        """
        unreadable: list[Path] = []
        with IsolatedReader(self._intake.encoding) as reader:
            for path, status, contents in self._read_ahead(unreadable, reader):
                known = self._known.get(path.as_posix())
                if status is None:
                    self._keep_unread(path.as_posix(), known)
                elif contents:
                    yield from self._new(path, contents)
                elif known:
                    self._keep(path.as_posix(), known)
        for name in self._below(unreadable):
            self._keep_unread(name, self._known[name])

    def deleted(self) -> list[str]:
        """Return the ids of documents that are no longer in any file; after `documents`."""
        kept = {doc_id for state in self.files.values() for doc_id in state.documents}
        known = (doc_id for state in self._known.values() for doc_id in state.documents)
        return [doc_id for doc_id in known if doc_id not in kept]

    def _read_ahead(self, unreadable: list[Path], reader: IsolatedReader) -> Iterator[_File]:
        """Yield the files, each with its contents if they may be new.

        While one is used, the next is read, unless the first is large. unreadable: see `_files`.
        """
        before: _File | None = None  # has been begun, and not yet yielded
        try:
            for path, status in self._files(self._intake, unreadable):
                if before:
                    before = before.read()
                file = _File(path, status)
                if status and self._differs(self._known.get(path.as_posix()), status, retry=True):
                    file = _File(path, status, self._begin(path, status, reader))
                if before:
                    yield before
                before = file
                if file.contents and file.contents.is_large:
                    yield file
                    before = None
        except Exception:  # of the walk: it comes after the files before it
            if before:
                yield before
            raise
        if before:
            yield before

    def _begin(self, path: Path, status: stat_result, reader: IsolatedReader) -> _Contents:
        """Begin to read a file. status: what the walk has found."""
        name, location = path.as_posix(), Path(*self.source.locate(path))
        known, state = self._known.get(name), FileState.of(status, time_ns())
        try:
            with self.source.open(path) as file:
                status = os.fstat(file.fileno())
                state = FileState.of(status, time_ns())
                if status.st_size > MAX_FILE:
                    raise too_large(location)
                with decompressed(file, location) as stream:
                    raw = read_limited(stream, location)
            about = _about(path, status)
            state = replace(state, digest=_digest(about, raw))
            if known and known.digest == state.digest and not known.failed:
                return _Contents(state)
            notes = Counter[str]()
            parts = reader.begin(location, raw, name, about, notes)
            return _Contents(state, parts, notes, is_large=len(raw) > MOST_BYTES_AHEAD)
        except Exception as error:
            return _Contents(state, error=why_unread(error).at(str(location)))

    def _new(self, path: Path, contents: _Contents) -> Iterator[tuple[str, Document]]:
        """Yield those documents of a file that are new or have changed."""
        name, location = path.as_posix(), str(Path(*self.source.locate(path)))
        known, state, error = self._known.get(name), contents.state, contents.error
        before = known.documents if known else {}
        if error:
            self._intake.bad_file(error)
            if isinstance(error, UnreadableError):
                self._keep_unread(name, replace(state, documents=before))
            else:
                self.files[name] = state
            return
        if contents.parts is None:
            self._keep(name, replace(state, documents=before))
            return
        documents: dict[str, str] = {}
        for doc_id, found in contents.parts:
            if isinstance(found, InputError):
                self._intake.bad_file(found)
                if isinstance(found, UnreadableError):
                    state = replace(state, failed=True)
                    documents |= self._parts_kept(doc_id, before)
                continue
            documents[doc_id] = _digest(found.fields)
            if before.get(doc_id) == documents[doc_id]:
                self.unchanged += 1
            else:
                yield location, found
        self._intake.notes.update(contents.notes)
        self.files[name] = replace(state, documents=documents)

    def _parts_kept(self, doc_id: str, before: Mapping[str, str]) -> dict[str, str]:
        """Return what is known of a document that cannot be read now, and of those within it."""
        kept = {i: d for i, d in before.items() if i == doc_id or i.startswith(f"{doc_id}/")}
        self._tell_kept(len(kept))
        return kept

    def _keep(self, path: str, state: FileState) -> None:
        self.files[path] = state
        self.unchanged += len(state.documents)

    def _keep_unread(self, path: str, state: FileState | None) -> None:
        """Keep what is known of a file that cannot be read now, and remember to read it again."""
        if state:
            self._keep(path, replace(state, failed=True))
            self._tell_kept(len(state.documents))

    def _tell_kept(self, documents: int) -> None:
        for _ in range(documents):
            self._intake.note("document kept as it was, since its file cannot be read now")

    def _below(self, folders: list[Path]) -> list[str]:
        """Return the known files in these folders."""
        lost = set(folders)
        return [path for path in self._known if not lost.isdisjoint(Path(path).parents)]

    @staticmethod
    def _differs(known: FileState | None, status: stat_result | None, retry: bool) -> bool:
        """Return whether a file may differ from what is known. status: None if it has none."""
        if status is None:
            return retry or (known is not None and not known.failed)
        return known is None or not known.describes(status) or (known.failed and retry)

    def _files(
        self, intake: Intake, unreadable: list[Path]
    ) -> Iterator[tuple[Path, stat_result | None]]:
        """Yield path and status of each file whose name indicates a type that is read.

        The status is None if it cannot be found out now. unreadable: see `walk`.
        """
        for name, root in self.source.roots.items():
            if not root.is_dir():
                problem = "is a file" if root.exists() else "no such folder"
                raise InputError(problem, where=str(root), wanted="a folder")
            lost: list[Path] = []
            source = self.source
            found = walk(
                root, intake, source.include, source.exclude, lost, follow_links=source.follow_links
            )
            for below, status in found:
                if file_type(below) is None:
                    intake.note(f"file of another type not read: {suffixes(below)}")
                elif not _is_unicode(below):
                    where = ascii(str(root / below))
                    intake.bad_file(InputError("the name is not valid Unicode", where=where))
                elif isinstance(status, UnreadableError):
                    intake.bad_file(status)
                    yield Path(name, below), None
                else:
                    yield Path(name, below), status
            unreadable += [Path(name, folder) for folder in lost]


def _is_unicode(path: Path) -> bool:
    """Return whether the names in a path are valid Unicode."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        return False
    return True


def _about(path: Path, status: stat_result) -> Fields:
    """Return what the file system tells of a file, as fields. path: see `FolderState`."""
    date = _date(status.st_mtime_ns)
    return {
        "path": path.as_posix(),
        "folder": path.parent.as_posix(),
        **({"modified": date} if date else {}),
        "size": str(status.st_size),
    }


def _date(modified: int) -> str:
    """Return a date; empty for one that no calendar has."""
    try:
        return datetime.fromtimestamp(modified // 1_000_000_000, UTC).date().isoformat()
    except (ValueError, OverflowError, OSError):
        return ""


def _digest(fields: Mapping[str, str], raw: bytes = b"") -> str:
    """Return a hash of fields and bytes."""
    hashed = blake2b(json.dumps(fields, sort_keys=True).encode(), digest_size=16)
    hashed.update(raw)
    return hashed.hexdigest()
