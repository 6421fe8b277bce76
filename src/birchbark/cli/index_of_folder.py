"""Which index does a folder have, and how is it built and brought up to date?"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace as replaced
from functools import partial
from hashlib import blake2b
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from birchbark.cli.console import Advance, counted, notify, progress, report_intake
from birchbark.errors import InputError
from birchbark.show.plural import plural

LONGEST_NAME = 150  # bytes

if TYPE_CHECKING:
    from birchbark.collection.parsing.intake import Intake
    from birchbark.index.build_index import Schema
    from birchbark.index.index import Index
    from birchbark.index.sharded_writer import Writer
    from birchbark.records import Document


def index_of(paths: Sequence[Path]) -> tuple[Path, bool]:
    """Return the path if it is an index, or else the index of the folder or file there.

    That index is PATH.index, which is built if it does not exist. Also returns whether it was. The
    index of several folders is beside the first one, and is called by the names of all.
    """
    from birchbark.collection.parsing.intake import Intake

    paths, index = _checked(paths)
    if index.exists():
        return index, False
    intake = Intake(remedy="see birchbark index build --help")

    def build() -> None:
        build_from(paths if len(paths) > 1 else paths[0], index, intake)

    if not _built(index, build):
        return index, False
    notify(f"indexed {', '.join(map(str, paths))} in {index}")
    report_intake(intake)
    return index, True


def _checked(paths: Sequence[Path]) -> tuple[list[Path], Path]:
    """Return the paths, resolved, and the index at the only path, or else where theirs is.

    Raises InputError if they are not an index, a file, a folder or several folders, or if the
    index there is of an older version.
    """
    from birchbark.index.index import Index
    from birchbark.index.shards import is_index

    paths = [path.resolve() for path in paths]
    index = index_path(paths)
    if [index] == paths:
        return paths, index
    for path in paths:
        if not path.exists():
            raise InputError("no such index or folder", where=str(path))
        if len(paths) > 1 and (is_index(path) or not path.is_dir()):
            found = "an index" if is_index(path) else "a file"
            raise InputError("not a folder", where=str(path), wanted="several folders", found=found)
    if index.exists():
        Index(index)  # raises an error of its own for an older version
    return paths, index


def _built(index: Path, build: Callable[[], object]) -> bool:
    """Build an index; return False if another process has done so in the meantime."""
    from birchbark.index.shards import is_index

    try:
        build()
    except InputError:
        if is_index(index):
            return False
        raise
    return True


def index_path(paths: Sequence[Path]) -> Path:
    """Return the path if it is an index, or else where the index of the folder or folders is."""
    from birchbark.index.layout import index_beside
    from birchbark.index.shards import is_index

    paths = [path.resolve() for path in paths]
    if len(paths) == 1 and is_index(paths[0]):
        return paths[0]
    return index_beside(paths[0].parent / _joined([path.name for path in paths]))


def _joined(names: Sequence[str]) -> str:
    """Return the names joined; only the first one, with a hash of all, if that is long."""
    joined = "+".join(names)
    raw = os.fsencode(joined)
    if len(raw) <= LONGEST_NAME:
        return joined
    return f"{names[0]}+{blake2b(raw, digest_size=6).hexdigest()}"


def default_schema(
    collection: Path | str | Sequence[Path], format_name: str | None = None
) -> Schema:
    """Return the schema for files of folders, or for a collection in another format."""
    from birchbark.index.build_index import Schema
    from birchbark.pipeline.upkeep.folder_index import FOLDER_SCHEMA

    return FOLDER_SCHEMA if _folders_of(collection, format_name) else Schema()


def _folders_of(
    collection: Path | str | Sequence[Path], format_name: str | None
) -> tuple[str, ...]:
    """Return the folders whose files are the documents; none of a collection in another format."""
    from birchbark.collection.documents import collection_format

    if not isinstance(collection, Path | str):
        return tuple(map(str, collection))
    is_folder = collection_format(str(collection), format_name) == "folder"
    return (str(Path(collection).resolve()),) if is_folder else ()


def build_from(
    collection: Path | str | Sequence[Path],
    directory: Path,
    intake: Intake,
    *,
    schema: Schema | None = None,
    format_name: str | None = None,
    replace: bool = False,
    shards: int | None = None,
    static: bool = True,
) -> Index:
    """Build the index of a collection or of folders' files, and show the progress.

    collection: several paths are folders. schema: None for `default_schema`; that of folders is
    extended by the fields of files. static: whether static vectors are stored with it. For the
    other arguments see `read_collection` and `build_index`.
    """
    from birchbark.collection.documents import read_collection
    from birchbark.collection.files.folder import KEYWORDS
    from birchbark.collection.files.folder_state import FolderSource
    from birchbark.index.build_index import build_index
    from birchbark.pipeline.stored.rows_ahead import RowsAhead
    from birchbark.pipeline.stored.static_vectors import static_vectors
    from birchbark.pipeline.upkeep.folder_index import build_folder_index
    from birchbark.pipeline.upkeep.language_notes import language_notes
    from birchbark.pipeline.upkeep.update_index import attach

    folders = _folders_of(collection, format_name)
    schema = schema or default_schema(collection, format_name)
    ahead = RowsAhead(static_vectors(), schema.read_fields) if static else None
    built = partial(build_index, replace=replace, shards=shards)
    bar = ExitStack()

    def finish(writer: Writer) -> None:
        bar.close()
        if ahead:
            attach(writer, [ahead.computation], progress)

    def build(advance: Advance) -> Index:
        if isinstance(collection, Path | str) and not folders:
            documents = counted(read_collection(collection, intake, format_name), advance)
            return built(documents, directory, schema, finish=finish)
        strict = intake.skip_bad is False
        chosen = intake.include, intake.exclude, intake.encoding
        source = FolderSource(folders, *chosen, strict, intake.follow_links)
        keywords = tuple(dict.fromkeys([*KEYWORDS, *schema.keywords]))
        of_files = replaced(schema, keywords=keywords)

        def watch(documents: Iterable[Document]) -> Iterator[Document]:
            counts = counted(documents, advance)
            return ahead.watch(counts) if ahead else counts

        return build_folder_index(source, directory, of_files, intake, watch, finish, built)

    with bar:
        index = build(bar.enter_context(progress("indexing")))
    for note in language_notes(index):
        notify(note)
    return index


def sync_and_report(index: Path, folders: Sequence[Path] = ()) -> None:
    """Bring an index up to date, and report what has changed. folders: see `sync_folder`."""
    from birchbark.pipeline.upkeep.folder_index import folder_state, sync_folder
    from birchbark.pipeline.upkeep.update_index import AddedDocuments, Changes, add_documents
    from birchbark.score.load_scorer import load_scorer

    intake = folder_state(index).source.intake()

    def change(changes: Changes) -> AddedDocuments:
        return add_documents(index, changes, load_scorer, progress)

    found = sync_folder(index, change, folders, intake)
    notify(
        f"{plural(found.new, 'document')} new, {found.replaced:,} changed, "
        f"{found.deleted:,} deleted, {found.unchanged:,} unchanged, in {index}"
    )
    report_intake(intake)


def index_and_folders(paths: Sequence[Path]) -> tuple[Path, tuple[Path, ...]]:
    """Return the index at the path, or that of the folders there, and the folders.

    An index that exists is returned as it is, and a new one of folders has no documents yet: a
    BackgroundSync brings it up to date while it is used. There are no folders if the path is an
    index, or the index was not built from folders. Raises InputError if it was built from others.
    """
    from birchbark.pipeline.upkeep.folder_index import check_folders, was_built_from_folders

    folders, index = _checked(paths)
    if folders == [index]:
        return index, ()
    was_built = False
    if not index.exists():
        names = _folders_of(folders if len(folders) > 1 else folders[0], None)
        if names:
            _built(index, lambda: _build_empty(names, index))
        else:
            _, was_built = index_of(paths)
    if not was_built_from_folders(index):
        if not was_built:
            notify(
                f"using {index}; birchbark index add {quote(str(index))} "
                f"{quote(str(paths[0]))} adds new documents"
            )
        return index, ()
    check_folders(index, folders)
    return index, tuple(folders)


def _build_empty(folders: Sequence[str], index: Path) -> None:
    """Build an index of folders without their documents, but ready for static vectors."""
    from birchbark.collection.files.folder_state import FolderSource
    from birchbark.pipeline.stored.static_vectors import static_vectors
    from birchbark.pipeline.upkeep.folder_index import empty_folder_index
    from birchbark.pipeline.upkeep.update_index import attach

    def finish(writer: Writer) -> None:
        attach(writer, [static_vectors()], progress)

    empty_folder_index(FolderSource(tuple(folders)), index, finish)
