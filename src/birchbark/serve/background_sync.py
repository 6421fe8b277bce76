"""When does a service look for changed files of the folders that it serves? Every few seconds."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from birchbark.pipeline.upkeep.folder_index import (
    Change,
    folder_has_changed,
    folder_state,
    sync_folder,
)
from birchbark.records import Document
from birchbark.serve.background_thread import BackgroundThread
from birchbark.show.plural import plural

WATCH_SECONDS = 2.0  # between two looks
RETRY_SECONDS = 60.0  # before files that could not be read are read again
WATCH_SHARE = 20.0  # what takes a second, and finds nothing, is repeated after this many


class BackgroundSync(BackgroundThread):
    """Brings an index up to date with its folders, in a thread of its own."""

    def __init__(
        self, index: Path, folders: Sequence[Path], report: Callable[[str], object]
    ) -> None:
        """report: called with messages, in the thread."""
        super().__init__("sync", "changed files are not read, but searches work", report)
        self._index, self._folders = index, folders
        self._change: Change
        self._retry_when = time.monotonic() + RETRY_SECONDS
        self._told: set[str] = set()

    def start_with(self, change: Change) -> None:
        """Start the thread. change: see `sync_folder`."""
        self._change = change
        self.start()

    def _work(self) -> float:
        start = time.monotonic()
        retry = start >= self._retry_when
        changed = folder_has_changed(self._index, self._folders, retry=retry)
        seconds = time.monotonic() - start
        if changed:
            intake = folder_state(self._index).source.intake()
            found = sync_folder(
                self._index, self._change, self._folders, intake, watch=self._until_stopped
            )
            synced = time.monotonic() - start
            self._retry_when = start + synced + max(RETRY_SECONDS, WATCH_SHARE * synced)
            self._tell([f"skipped {error}" for error in intake.skipped])
            if not (found.changed or intake.skipped):
                seconds = synced
            if found.changed:
                folders = ", ".join(map(str, self._folders))
                self._report(
                    f"{folders}: {plural(found.new, 'document')} new, "
                    f"{found.replaced:,} changed, {found.deleted:,} deleted"
                )
        return max(WATCH_SECONDS, WATCH_SHARE * seconds)

    def _until_stopped(self, documents: Iterable[Document]) -> Iterator[Document]:
        """Yield the documents; the thread ends before the next one when the service ends."""
        for document in documents:
            self._wait(0)
            yield document

    def _tell(self, messages: list[str]) -> None:
        """Report those messages that were not among the last ones."""
        for message in messages:
            if message not in self._told:
                self._report(message)
        self._told = set(messages)
