"""How is a folder read as Documents, one per file?"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import blake2b
from os import stat_result
from pathlib import Path
from time import time_ns

from birchbark.collection.files.file import File
from birchbark.collection.files.file_types import FileType, file_type
from birchbark.collection.files.folder_state import FileState, FolderSource
from birchbark.collection.files.language import language_of
from birchbark.collection.files.walk import walk
from birchbark.collection.parsing.intake import Intake
from birchbark.collection.parsing.lines import COMPRESSED, read_decompressed
from birchbark.errors import InputError
from birchbark.records import Document

KEYWORDS = ("path", "folder", "type", "language", "modified")  # fields that searches can filter by
SETTLED_NS = 2_000_000_000  # a file changed later than this ago may change without a newer time


def read_folder(path: Path, intake: Intake) -> Iterator[tuple[str, Document]]:
    """Yield location and Document of each file below `path` that contains text, in order of path.

    Files may be compressed. The doc_id is the path below the folder, with white space and %
    replaced as in URLs, since the columns of runs and qrels are separated by white space. Besides
    `title`, `text` and what its type has, a Document has the fields `path`, below the folder;
    `folder`, the part of it before the file's name; `type`, a name in `file_types`; `language`, a
    code such as `en`, if it was recognised; `modified`, a date such as 2026-11-24, in UTC; and
    `size`, in bytes. Files that are hidden, ignored (see `walk`) or of other types are noted but
    not read.
    """
    yield from FolderChanges(
        FolderSource(str(path), intake.include, intake.exclude), intake
    ).documents()


class FolderChanges:
    """What has changed in a folder since it was last read.

    Attributes:
        source: The folder, and which of its files are read.
        files: Path below the folder → its state, of all files of a type that is read. Complete
            after the iteration over `documents`.
        unchanged: Number of files that were documents and have not changed, likewise.
    """

    def __init__(
        self, source: FolderSource, intake: Intake, known: Mapping[str, FileState] | None = None
    ) -> None:
        """known: the state of each file when it was last read; None if none was."""
        self.source, self._intake, self._known = source, intake, known or {}
        self.files: dict[str, FileState] = {}
        self.unchanged = 0

    @property
    def exist(self) -> bool:
        """Whether a file was added, deleted, or has another size or time; no file is read."""
        found = {str(path): status for path, status, _ in self._files(Intake())}
        return found.keys() != self._known.keys() or not all(
            self._known[path].describes(status) for path, status in found.items()
        )

    def documents(self) -> Iterator[tuple[str, Document]]:
        """Yield location and Document of each file that is new or has other contents.

        In order of path. Files that cannot be read are bad files of the intake.
        """
        now = time_ns()
        for path, status, kind in self._files(self._intake):
            known = self._known.get(str(path))
            if known and known.describes(status):
                self._keep(path, known)
                continue
            size, modified = status.st_size, status.st_mtime_ns
            state = FileState(size, modified, modified < now - SETTLED_NS)
            location = Path(self.source.folder, path)
            try:
                raw = read_decompressed(location)
                state = replace(state, digest=blake2b(raw, digest_size=16).hexdigest())
                if known and known.doc_id and _same_document(known, state):
                    self._keep(path, replace(state, doc_id=known.doc_id))
                    continue
                document = _document(File(location, raw, self._intake), path, status, kind)
            except InputError as error:
                self._intake.bad_file(error.at(str(location)))
                document = None
            self.files[str(path)] = replace(state, doc_id=document.doc_id if document else "")
            if document:
                yield str(location), document

    def deleted(self) -> list[str]:
        """Return the doc_ids of files that are no longer documents; after `documents`."""
        kept = {state.doc_id for state in self.files.values()}
        return [s.doc_id for s in self._known.values() if s.doc_id and s.doc_id not in kept]

    def _keep(self, path: Path, state: FileState) -> None:
        self.files[str(path)] = state
        self.unchanged += bool(state.doc_id)

    def _files(self, intake: Intake) -> Iterator[tuple[Path, stat_result, FileType]]:
        """Yield path, status and type of each file whose name indicates a type that is read."""
        folder = Path(self.source.folder)
        if not folder.is_dir():
            problem = "is a file" if folder.exists() else "no such folder"
            raise InputError(problem, where=str(folder), wanted="a folder")
        for path in walk(folder, intake, self.source.include, self.source.exclude):
            kind = file_type(path)
            if kind is None:
                intake.note(f"file of another type not read: {_suffixes(path) or 'no suffix'}")
                continue
            try:
                status = _status(folder / path)
            except InputError as error:
                intake.bad_file(error)
                continue
            yield path, status, kind


def _suffixes(path: Path) -> str:
    """Return the suffix, of a compressed file with the one before it; empty if there is none."""
    if path.suffix.lower() in COMPRESSED:
        return f"{Path(path.stem).suffix}{path.suffix}"
    return path.suffix


def _status(file: Path) -> stat_result:
    """Return size and time of a file; InputError if it is gone, or its name is not Unicode."""
    try:
        str(file).encode()
        return file.stat()
    except UnicodeEncodeError:
        raise InputError("the name is not valid Unicode", where=ascii(str(file))) from None
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", where=str(file)) from None


def _same_document(first: FileState, second: FileState) -> bool:
    """Return whether the documents of two states of a file are equal: its contents and its date."""
    same_date = _date(first.modified) == _date(second.modified)
    return same_date and (first.size, first.digest) == (second.size, second.digest)


def _date(modified: int) -> str:
    """Return a date; empty for one that no calendar has."""
    try:
        return datetime.fromtimestamp(modified // 1_000_000_000, UTC).date().isoformat()
    except (ValueError, OverflowError, OSError):
        return ""


def _document(file: File, path: Path, status: stat_result, kind: FileType) -> Document | None:
    """Return the Document of a file; None, with a note, if it is of another type than its name.

    path: below the folder.
    """
    if kind.accepts and not kind.accepts(file.raw):
        file.intake.note(f"file of another type not read: {_suffixes(path) or 'no suffix'}")
        return None
    if remedy := kind.missing():
        file.intake.note(f"{kind.name} file not read: {remedy}")
        return None
    fields = kind.read(file)
    name = path.as_posix()
    language = "" if kind.name == "code" else language_of(fields.get("text", ""))
    about = {
        **({"language": language} if language else {}),
        "path": name,
        "folder": path.parent.as_posix(),
        "type": kind.name,
        **({"modified": date} if (date := _date(status.st_mtime_ns)) else {}),
        "size": str(status.st_size),
    }
    document = Document(_doc_id(name), {**fields, **about})
    if document.fault:
        raise InputError(document.fault)
    return document


def _doc_id(path: str) -> str:
    """Return `path` with white space and % replaced by the hexadecimal values of their bytes."""
    return re.sub(r"[\s%]", lambda found: "".join(f"%{b:02X}" for b in found[0].encode()), path)
