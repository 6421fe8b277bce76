"""When does a service look for changed files of the folder that it serves? Every few seconds."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from birchbark.pipeline.upkeep.folder_index import (
    Change,
    folder_has_changed,
    folder_state,
    sync_folder,
)
from birchbark.serve.background_thread import BackgroundThread
from birchbark.show.plural import plural

WATCH_SECONDS = 2.0  # between two looks
WATCH_SHARE = 20.0  # a look that takes a second is repeated after this many


class BackgroundSync(BackgroundThread):
    """Brings an index up to date with its folder, in a thread of its own."""

    def __init__(self, index: Path, folder: Path, report: Callable[[str], object]) -> None:
        """report: called with messages, in the thread."""
        name, failure = "birchbark-sync", "changed files are not read, but searches work"
        super().__init__(name, failure, report)
        self._index, self._folder = index, folder
        self._change: Change

    def start_with(self, change: Change) -> None:
        """Start the thread. change: adds documents and deletes ids, all or none."""
        self._change = change
        self.start()

    def _work(self) -> float:
        start = time.monotonic()
        changed = folder_has_changed(self._index, self._folder)
        seconds = time.monotonic() - start
        if changed:
            intake = folder_state(self._index).source.intake()
            found = sync_folder(self._index, self._change, self._folder, intake)
            for error in intake.skipped:
                self._report_once(f"skipped {error}")
            if found.changed:
                self._report(
                    f"{self._folder}: {plural(found.new, 'document')} new, "
                    f"{found.replaced:,} changed, {found.deleted:,} deleted"
                )
        return max(WATCH_SECONDS, WATCH_SHARE * seconds)
