"""How is an index built from a folder, and kept in step with its files?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace as replaced
from itertools import groupby
from pathlib import Path
from shlex import quote
from typing import NamedTuple

from birchbark import defaults
from birchbark.collection.documents import checked_documents
from birchbark.collection.files.folder import KEYWORDS, FolderChanges
from birchbark.collection.files.folder_state import FileState, FolderSource, FolderState
from birchbark.collection.parsing.intake import Intake
from birchbark.errors import ArtifactError, InputError, OutdatedError
from birchbark.index.build_index import Schema, build_index
from birchbark.index.index import Index
from birchbark.index.origin import NewOrigin, read_origin
from birchbark.index.sharded_writer import Writer
from birchbark.index.shards import read_manifest
from birchbark.pipeline.stored.precompute import STATIC
from birchbark.pipeline.upkeep.update_index import AddedDocuments, Changes
from birchbark.records import Document

Change = Callable[[Changes], AddedDocuments]
Watch = Callable[[Iterable[Document]], Iterable[Document]]
Finish = Callable[[Writer], object]
# The names of files and folders are searched, too: a scan may have no other words. They are a part
# of the text, so that they are spelt as it is and expand queries, and have a weight of their own.
SEARCHED = {
    defaults.INDEXED_FIELD: (*defaults.INDEXED_FIELD_PARTS, "path"),
    defaults.FILE_NAMES_FIELD: ("path",),
}
# Of documents, before they are committed: as many as the sync has committed, within these limits.
FEWEST_CHARACTERS, MOST_CHARACTERS = 2_000_000, 50_000_000
FOLDER_SCHEMA = Schema(defaults.FILE_ANALYZER, fields=SEARCHED, keywords=KEYWORDS)


class SyncedFolder(NamedTuple):
    """How many documents were new, replaced, deleted and unchanged."""

    new: int
    replaced: int
    deleted: int
    unchanged: int

    @property
    def changed(self) -> bool:
        """Whether the index has changed."""
        return bool(self.new or self.replaced or self.deleted)


def build_folder_index(
    source: FolderSource,
    directory: Path,
    schema: Schema = FOLDER_SCHEMA,
    intake: Intake | None = None,
    watch: Watch = lambda documents: documents,
    finish: Finish = lambda writer: None,
    build: Callable[..., Index] = build_index,
) -> Index:
    """Build an index of a folder's files; `sync_folder` can keep it in step with them.

    intake: what to do with bad files; None for the source's. watch: receives the documents and
    returns them, to report progress. build: `build_index`, perhaps with some of its arguments. See
    there for the other arguments and for errors.
    """
    intake = intake or source.intake()
    changes = FolderChanges(source, intake)
    documents = watch(checked_documents(changes.documents(), source.shown, intake))

    def with_state(writer: Writer) -> None:
        writer.set_origin(NewOrigin(FolderState(source, changes.files).as_json()))
        finish(writer)

    return build(documents, directory, schema, finish=with_state)


def empty_folder_index(
    source: FolderSource, directory: Path, finish: Finish = lambda writer: None
) -> Index:
    """Build an index of a folder's files that has none of them yet; `sync_folder` adds them.

    finish: see `build_index`. Raises InputError if there are no files.
    """
    if not FolderChanges(source, source.intake()).exist(retry=False):
        raise InputError("no documents to index", where=source.shown)

    def with_state(writer: Writer) -> None:
        writer.set_origin(NewOrigin(FolderState(source, {}).as_json()))
        finish(writer)

    return build_index(None, directory, FOLDER_SCHEMA, finish=with_state)


def sync_folder(
    directory: Path,
    change: Change,
    folders: Sequence[Path] = (),
    intake: Intake | None = None,
    watch: Watch = lambda documents: documents,
) -> SyncedFolder:
    """Make an index equal to one built afresh from its folders; only changed files are read again.

    A file is compared by size, times and number, and, if these differ, by a hash of its contents.
    Documents that come from elsewhere stay, and so do those of files and folders that cannot be
    read now. If another process brings the index up to date at the same time, its changes count,
    and the folders are compared once more.

    Many documents are added in several commits, so that the first ones are found early, and not all
    are in memory together; none are deleted before the last one. If the sync ends before it, the
    next one goes on from there, and computes static vectors that are missing.

    directory: the index. change: makes changes, all or none. folders: where the folders are; () for
    where they were. intake: what to do with bad files; None for what the index was built with.
    watch: receives the new documents and returns them.

    Raises InputError if the index was not built from these folders, one of them does not exist,
    they have no documents, and for a bad file that the intake does not skip; nothing has been
    deleted then.
    """
    while True:
        known = _known(directory)
        own = intake or known.state.source.intake()
        attempt = replaced(own, skipped=[], notes=Counter())
        try:
            synced = _sync(directory, known, change, folders, attempt, watch)
        except OutdatedError:
            continue
        own.skipped += attempt.skipped
        own.notes += attempt.notes
        return synced


def _sync(
    directory: Path,
    known: _Known,
    change: Change,
    folders: Sequence[Path],
    intake: Intake,
    watch: Watch,
) -> SyncedFolder:
    """Do what `sync_folder` does; OutdatedError if another process has done so in the meantime."""
    state = known.state
    source = _source(directory, state, folders)
    changes = FolderChanges(source, intake, state.files)
    new = checked_documents(changes.documents(), source.shown, intake, needed=False)
    documents: list[Document] = []
    characters, committed, added, replaces = 0, 0, AddedDocuments(0, 0), known.checksum
    for _, of_file in groupby(watch(new), key=lambda document: document.fields["path"]):
        # at its end, `changes` has the state of the file
        for document in of_file:
            documents.append(document)
            characters += sum(map(len, document.fields.values()))
        if characters > min(max(FEWEST_CHARACTERS, committed), MOST_CHARACTERS):
            files = _with_deleted(state.files, changes.files)
            origin = NewOrigin(FolderState(source, files).as_json(), replaces)
            added = added.plus(change(Changes(documents, (), origin)))
            committed += characters
            documents, characters, replaces = [], 0, origin.checksum
    for name, root in source.roots.items():
        if _has_documents(state.files, name) and not _has_documents(changes.files, name):
            raise InputError(
                "no documents in the folder, so that all would be deleted from the index",
                where=str(root),
                remedy="check that it is the right folder; or delete the index",
            )
    deleted = changes.deleted()
    origin = NewOrigin(FolderState(source, changes.files).as_json(), replaces)
    if documents or deleted or origin.text != known.text or _lacks_static_vectors(directory):
        added = added.plus(change(Changes(documents, deleted, origin)))
    return SyncedFolder(added.new, added.replaced, len(deleted), changes.unchanged)


def _lacks_static_vectors(directory: Path) -> bool:
    """Return whether documents lack static vectors that an index has of others."""
    index = Index(directory)
    try:
        static = index.attachment(STATIC)
    except ArtifactError:  # damaged, which searches report
        return False
    return static is not None and any(len(static.missing(n)) for n in range(len(index.parts)))


def check_folders(directory: Path, folders: Sequence[Path]) -> None:
    """Raise InputError if an index was built from other folders than these, which still exist."""
    _source(directory, folder_state(directory), folders)


def _source(directory: Path, state: FolderState, folders: Sequence[Path]) -> FolderSource:
    """Return what an index was built from, where the folders are now; see `check_folders`."""
    source = state.source.moved(folders)
    if folders and _built_from_others(source, state.source):
        raise InputError(
            "the index was built from another folder",
            where=str(directory),
            wanted=source.shown,
            found=state.source.shown,
            remedy="give the path of the index instead of the folder, or build another index: "
            "birchbark index FOLDER --to INDEX",
        )
    return source


def _with_deleted(
    known: Mapping[str, FileState], found: Mapping[str, FileState]
) -> dict[str, FileState]:
    """Return the states of files of which some have been read, and no document been deleted.

    A file that has lost documents is known as it was before, so that it is read again.
    """
    files = {**known, **found}
    for path in known.keys() & found.keys():
        before, now = known[path].documents, found[path].documents
        if before.keys() - now.keys():
            files[path] = replaced(known[path], documents={**before, **now})
    return files


def _has_documents(files: Mapping[str, FileState], name: str) -> bool:
    """Return whether a folder has documents. name: what the paths of its files begin with."""
    of_folder = (s for path, s in files.items() if not name or Path(path).parts[0] == name)
    return any(state.documents for state in of_folder)


def _built_from_others(source: FolderSource, indexed: FolderSource) -> bool:
    """Whether folders are not the indexed ones, which have not been moved: they are still there."""
    if source.roots.keys() != indexed.roots.keys():
        return True
    pairs = ((source.roots[name], root) for name, root in indexed.roots.items())
    return any(
        root.is_dir() and not (folder.is_dir() and folder.samefile(root)) for folder, root in pairs
    )


def folder_has_changed(
    directory: Path, folders: Sequence[Path] = (), *, retry: bool = False
) -> bool:
    """Return whether `sync_folder` would find a change, by sizes and times alone.

    retry: whether files and folders that could not be read count as changed.
    """
    state = folder_state(directory)
    source = state.source.moved(folders)
    return FolderChanges(source, Intake(), state.files).exist(retry=retry)


def folder_state(directory: Path) -> FolderState:
    """Return what an index knows of its folders; InputError if it was not built from any."""
    return _known(directory).state


def was_built_from_folders(directory: Path) -> bool:
    """Return whether an index was built from folders, so that it can be synced with them."""
    return bool(read_manifest(directory).origin)


def files_of(directory: Path, doc_ids: Iterable[str]) -> dict[str, Path]:
    """Return the absolute path of each document's file; empty if the index is of no folder.

    The folders are where they were when they were indexed.
    """
    if not was_built_from_folders(directory):
        return {}
    state = folder_state(directory)
    paths = state.paths
    located = {doc_id: state.source.locate(paths[doc_id]) for doc_id in doc_ids if doc_id in paths}
    return {doc_id: (folder / below).absolute() for doc_id, (folder, below) in located.items()}


class _Known(NamedTuple):
    """What an index knows of its folders, as a value, as text, and the checksum of that."""

    state: FolderState
    text: bytes
    checksum: str


def _known(directory: Path) -> _Known:
    origin = read_origin(directory)
    if origin is None:
        raise InputError(
            "the index was not built from a folder by birchbark index",
            where=str(directory),
            remedy=f"build it again, or use birchbark index add {quote(str(directory))} COLLECTION",
        )
    try:
        return _Known(FolderState.from_json(origin.text), *origin)
    except ArtifactError as error:
        raise error.at(str(directory)) from None
