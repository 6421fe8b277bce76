"""How are scores kept, so that a kill costs one batch at most?"""

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
from birchbark.remember.file import FileHead, Keys, keys_of, read_records, sealed
from birchbark.remember.folder import locked
from birchbark.remember.lookup import Lookup
from birchbark.score.scorer import Scorer

SYNC_SECONDS = 1.0


class ScoreStore:
    """The scores of one scorer in a folder that may hold those of others. One writer at a time.

    Each batch is written at once, so a killed process loses at most the batch it was scoring; the
    disk is made to keep it within a second and at the end, so a power cut costs little more.
    Where nothing more can be written (a full disk), a warning says so and scores go on, not kept.
    """

    def __init__(
        self,
        directory: Path | str,
        scorer: Scorer,
        *,
        write: bool = True,
        under: ScoreStore | None = None,
    ) -> None:
        """Open the store in `directory`, made where there is none; read all scores of `scorer`.

        write: false to read only, beside a writer; what is added is then not kept. under: the open
        store of another scorer in the same folder, whose lock covers this one as well. Raises
        InputError if the folder cannot be used, and ArtifactError if its file is damaged or another
        process is writing. The torn end that a kill left is cut off, with a warning.
        """
        self._head = head = FileHead(scorer.fingerprint, scorer.name, scorer.kind, scorer.width)
        self._path, self._fingerprint = head.path(Path(directory)), head.fingerprint
        self._lookup, self._out, self._end, self.not_kept = Lookup(scorer.width), -1, 0, 0
        self._changing = Lock()
        self._synced = time.monotonic()
        with ExitStack() as stack:
            if write:
                if under is None:
                    stack.enter_context(locked(self._path.parent))
                if not self._path.exists():
                    head.write(self._path.parent)
            if self._path.exists():
                self._open(write, stack)
            self._held = stack.pop_all()

    def _open(self, write: bool, stack: ExitStack) -> None:
        there, start = FileHead.read(self._path)
        if there.width != self._head.width:
            raise ArtifactError("damaged file of scores: wrong width", where=str(self._path))
        records, torn = read_records(self._path, start, there)
        self._end = start + records.nbytes
        if len(records):
            self._lookup.add(records["key"], records["score"])
        if write:
            self._out = os.open(self._path, os.O_WRONLY | os.O_APPEND)
            stack.callback(os.close, self._out)
        if write and torn:
            os.ftruncate(self._out, self._end)
            warnings.warn(
                f"{self._path}: cut off {torn} bytes that an interrupted run left", stacklevel=4
            )

    def __len__(self) -> int:
        """The number of scores."""
        return len(self._lookup)

    def keys(self, query: str, pieces: Sequence[Ids]) -> Keys:
        """Keys (n, 2) of encoded texts for one query."""
        return keys_of(self._fingerprint, query, pieces)

    def find(self, keys: Keys) -> tuple[Float32s, NDArray[np.bool_]]:
        """Scores (n,) or vectors (n, width), NaN where there is none, and which are known (n,)."""
        with self._changing:
            return self._lookup.find(keys)

    def add(self, keys: Keys, scores: Float32s) -> None:
        """Keep the scores (n,) of `keys` (n, 2); another thread may have added some meanwhile."""
        with self._changing:
            new = ~self._lookup.find(keys)[1]
            if new.any():
                self._add(keys[new], scores[new])

    def _add(self, keys: Keys, scores: Float32s) -> None:
        self._lookup.add(keys, scores)
        if self._out < 0:
            self.not_kept += len(keys)
            return
        left = memoryview(sealed(keys, scores, self._head).tobytes())
        try:
            while left:
                left = left[os.write(self._out, left) :]
            if time.monotonic() - self._synced >= SYNC_SECONDS:
                self._sync()
            self._end += len(keys) * self._head.record.itemsize
        except OSError as full:
            self._give_up(full)
            self.not_kept += len(keys)

    def _sync(self) -> None:
        os.fsync(self._out)
        self._synced = time.monotonic()

    def _give_up(self, error: OSError) -> None:
        """Leave whole records behind, and write no more."""
        with suppress(OSError):
            os.ftruncate(self._out, self._end)
        self._out = -1
        warnings.warn(
            f"{self._path}: scores are no longer kept: {error.strerror} "
            "(the ranking goes on; make room, and run again to keep them)",
            stacklevel=4,
        )

    def close(self) -> None:
        """Have the disk keep everything, and let the next writer in."""
        try:
            if self._out >= 0:
                self._sync()
        except OSError as full:
            self._give_up(full)
        finally:
            self._out = -1
            self._held.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
