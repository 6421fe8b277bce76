"""When does a service look for changed files of the folders that it serves? Every few seconds."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from threading import Lock

from birchbark.collection.files.folder_state import FolderState
from birchbark.index.index import Index
from birchbark.pipeline.upkeep.folder_index import (
    Change,
    folder_has_changed,
    folder_state,
    sync_folder,
)
from birchbark.pipeline.upkeep.language_notes import language_notes
from birchbark.pipeline.upkeep.update_index import Changes
from birchbark.records import Document
from birchbark.serve.background_thread import BackgroundThread
from birchbark.show.plural import plural

WATCH_SECONDS = 2.0  # between two looks
RETRY_SECONDS = 60.0  # before files that could not be read are read again
WATCH_SHARE = 20.0  # what takes a second, and finds nothing, is repeated after this many


class BackgroundSync(BackgroundThread):
    """Brings an index up to date with its folders, in a thread of its own.

    Attributes:
        reading: Number of documents read from new and changed files so far; 0 before the folders
            have been looked at; None while no file is being read.
    """

    def __init__(
        self, index: Path, folders: Sequence[Path], report: Callable[[str], object]
    ) -> None:
        """report: called with messages, in the thread."""
        super().__init__("sync", "changed files are not read, but searches work", report)
        self._index, self._folders = index, folders
        self._change: Change
        self.reading: int | None = 0
        self._written, self._written_lock = dict[str, int](), Lock()  # id → when, by a request
        self._retry_when = time.monotonic() + RETRY_SECONDS
        self._told: set[str] = set()
        self._has_ended_early = True  # the last sync, perhaps, which another process may have begun

    def start_with(self, change: Change) -> None:
        """Start the thread. change: see `sync_folder`."""
        self._change = change
        self.start()

    def note_written(self, doc_ids: Iterable[str], when: int) -> None:
        """Note that a request has changed these documents, in case their files are being read.

        when: when it began to, in nanoseconds since 1970.
        """
        with self._written_lock:
            if self.reading is not None:
                self._written.update(dict.fromkeys(doc_ids, when))

    def without_newer(self, changes: Changes) -> Changes:
        """Leave out, and report, documents that a request has changed since reading began.

        Those whose files have changed still later stay.
        """
        if not self._written or not changes.origin:
            return changes
        state = FolderState.from_json(changes.origin.text)
        paths = state.paths
        changed = {d: state.files[paths[d]].changed for d in self._written if d in paths}
        newer = {d for d, when in self._written.items() if changed.get(d, 0) < when}
        read = list(changes.documents)
        documents = [document for document in read if document.doc_id not in newer]
        delete = [doc_id for doc_id in changes.delete if doc_id not in newer]
        if kept := len(read) - len(documents):
            self._report(f"{plural(kept, 'document')} kept as written by requests, not as in files")
        return Changes(documents, delete, changes.origin)

    def _work(self) -> float:
        start = time.monotonic()
        try:
            retry = start >= self._retry_when
            changed = self._has_ended_early or folder_has_changed(
                self._index, self._folders, retry=retry
            )
            seconds = time.monotonic() - start
            if changed:
                self._has_ended_early = True
                seconds = seconds if self._sync() else time.monotonic() - start
                self._has_ended_early = False
        finally:
            with self._written_lock:
                self.reading = None
                self._written.clear()
        return max(WATCH_SECONDS, WATCH_SHARE * seconds)

    def _sync(self) -> bool:
        """Bring the index up to date; return whether there was a change, or a file was skipped."""
        start, state = time.monotonic(), folder_state(self._index)
        intake, self.reading = state.source.intake(), 0
        found = sync_folder(
            self._index, self._change, self._folders, intake, watch=self._until_stopped
        )
        now = time.monotonic()
        self._retry_when = now + max(RETRY_SECONDS, WATCH_SHARE * (now - start))
        self._tell([f"skipped {error}" for error in intake.skipped])
        if found.changed or not found.unchanged:
            folders = ", ".join(map(str, self._folders))
            report = self._report if found.changed else self._report_once
            report(
                f"{folders}: {plural(found.new, 'document')} new, "
                f"{found.replaced:,} changed, {found.deleted:,} deleted"
            )
        if found.new and not state.files:
            for note in language_notes(Index(self._index)):
                self._report(note)
        return found.changed or bool(intake.skipped)

    def _until_stopped(self, documents: Iterable[Document]) -> Iterator[Document]:
        """Yield the documents; the thread ends before the next one when the service ends."""
        for count, document in enumerate(documents, 1):
            self._wait(0)
            self.reading = count
            yield document

    def _tell(self, messages: list[str]) -> None:
        """Report those messages that were not among the last ones."""
        for message in messages:
            if message not in self._told:
                self._report(message)
        self._told = set(messages)
