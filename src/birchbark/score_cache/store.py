"""How are scores stored on disk, so that a killed process loses at most one batch?"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Self

import numpy as np
from numpy.typing import NDArray

from birchbark.errors import ArtifactError
from birchbark.records import Float32s, Ids
from birchbark.score.scorer import Scorer
from birchbark.score.vector_instructions import processor
from birchbark.score_cache.score_file import (
    MAX_UNSYNCED_RECORDS,
    FileHeader,
    Keys,
    make_records,
    pair_keys,
    read_records,
)
from birchbark.score_cache.score_table import ScoreTable
from birchbark.score_cache.store_folder import locked
from birchbark.systems import BINARY

SYNC_SECONDS = 1.0


class ScoreStore:
    """The scores of one scorer, in a folder that it can share with other scorers. See ScoreCache.

    Every batch is written immediately, so a killed process loses at most the batch that it was
    scoring. The file is synced to disk about once a second, more often if many scores are added,
    and on close, so a power failure loses little more. If writing fails (full disk), a warning is
    issued, and further scores are held in memory only. Only one process at a time can write.

    Attributes:
        unsaved: Number of scores that were added but not written.
    """

    def __init__(
        self,
        directory: Path | str,
        scorer: Scorer,
        *,
        write: bool = True,
        locked_by: ScoreStore | None = None,
        wait: float = 0,
        known: Path | None = None,
    ) -> None:
        """Open the store in `directory`, and read all scores of `scorer`.

        directory: created if missing, unless `write` is false. write: if false, the file is only
        read, even while another process writes to it, and new scores are held in memory only.
        locked_by: the open store of another scorer in the same folder, whose lock this store
        shares. wait: seconds to wait for another process that is writing to the folder. known: the
        folder of another store, which is only read: its scores are found as well. Invalid records
        that a killed process left are truncated, with a warning. Raises InputError if the folder
        cannot be used, and ArtifactError if the file is damaged or another process is writing to
        the folder.
        """
        self._header = header = FileHeader(
            scorer.fingerprint, scorer.name, scorer.kind, scorer.width, processor()
        )
        self._path, self._fingerprint = header.path(Path(directory)), header.fingerprint
        self._table = ScoreTable(scorer.width)
        self._out, self._end = -1, 0  # file descriptor, -1 if closed; offset after the last record
        self.unsaved = 0
        self._changing = Lock()
        self._synced, self._unsynced_records = time.monotonic(), 0
        with ExitStack() as stack:
            if write:
                if locked_by is None:
                    stack.enter_context(locked(self._path.parent, wait))
                if not self._path.exists():
                    try:
                        header.write(self._path.parent)
                    except OSError as full:
                        self._stop_writing(full)
            if known and (path := header.path(known)).exists():
                self._read(path)
            if self._path.exists():
                self._open(write, stack)
            self._resources = stack.pop_all()

    def _read(self, path: Path) -> tuple[int, int]:
        """Read all scores of a file that are not known yet.

        Returns the offset after the last complete record, and the number of bytes that follow.
        """
        header, start = FileHeader.read(path)
        if header.width != self._header.width:
            raise ArtifactError("damaged score file: wrong width", where=str(path))
        if header.processor not in ("", self._header.processor):
            warnings.warn(
                f"{path}: its scores were computed by another kind of processor "
                f"({header.processor}; here {self._header.processor}) and can differ in their "
                "last bits from scores computed here",
                stacklevel=5,
            )
        records, torn = read_records(path, start, header)
        end = start + records.nbytes
        if len(self._table):  # of another store
            records = records[~self._table.find(records["key"])[1]]
        if len(records):
            self._table.add(records["key"], records["score"])
        return end, torn

    def _open(self, write: bool, stack: ExitStack) -> None:
        self._end, torn = self._read(self._path)
        if write:
            self._out = os.open(self._path, os.O_WRONLY | os.O_APPEND | BINARY)
            stack.callback(os.close, self._out)
        if write and torn:
            os.ftruncate(self._out, self._end)
            warnings.warn(
                f"{self._path}: truncated {torn} bytes that an interrupted run left", stacklevel=4
            )

    def __len__(self) -> int:
        """Return the number of scores."""
        return len(self._table)

    def keys(self, query: str, token_ids: Sequence[Ids]) -> Keys:
        """See ScoreCache."""
        return pair_keys(self._fingerprint, query, token_ids)

    def find(self, keys: Keys) -> tuple[Float32s, NDArray[np.bool_]]:
        """See ScoreCache."""
        with self._changing:
            return self._table.find(keys)

    def add(self, keys: Keys, scores: Float32s) -> None:
        """See ScoreCache; pairs that another thread has added in the meantime are skipped."""
        with self._changing:
            new = ~self._table.find(keys)[1]
            if new.any():
                self._add(keys[new], scores[new])

    def _add(self, keys: Keys, scores: Float32s) -> None:
        self._table.add(keys, scores)
        if self._out < 0:
            self.unsaved += len(keys)
            return
        data = memoryview(make_records(keys, scores, self._header).tobytes())
        try:
            while data:
                data = data[os.write(self._out, data) :]
            self._unsynced_records += len(keys)
            many = self._unsynced_records >= MAX_UNSYNCED_RECORDS
            if many or time.monotonic() - self._synced >= SYNC_SECONDS:
                self._sync()
            self._end += len(keys) * self._header.record.itemsize
        except OSError as full:
            self._stop_writing(full)
            self.unsaved += len(keys)

    def _sync(self) -> None:
        os.fsync(self._out)
        self._synced, self._unsynced_records = time.monotonic(), 0

    def _stop_writing(self, error: OSError) -> None:
        """Truncate the file to complete records, warn, and stop writing."""
        with suppress(OSError):
            os.ftruncate(self._out, self._end)
        self._out = -1
        warnings.warn(
            f"{self._path}: scores are no longer stored: {error.strerror} "
            "(ranking continues; free some space and run the command again to store the rest)",
            stacklevel=4,
        )

    def close(self) -> None:
        """Sync the file, and release the lock."""
        try:
            if self._out >= 0:
                self._sync()
        except OSError as full:
            self._stop_writing(full)
        finally:
            self._out = -1
            self._resources.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
