"""How are the shards of an index built in parallel, each by one of several processes?"""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from birchbark.errors import ArtifactError, BirchbarkError, InputError
from birchbark.index.shards import shard_number
from birchbark.index.writer import IndexWriter
from birchbark.records import Document
from birchbark.systems import usable_processors

BATCH = 500  # documents sent to a process together
JOIN_SECONDS = 5.0  # to wait for the exit code of a process that has ended


def build_shards(documents: Iterable[Document], folders: Sequence[Path], part_tokens: int) -> int:
    """Add documents to the new, empty shards in `folders`; return how many there are.

    Each process builds some of the shards. Raises InputError if two documents have the same id, and
    ArtifactError if a process ends early, such as for lack of memory.
    """
    context = multiprocessing.get_context("spawn")
    count = min(len(folders), usable_processors())
    part_tokens = max(1, part_tokens // len(folders))  # of all shards together
    with ExitStack() as stack:
        workers = [_Worker(context, folders[n::count], part_tokens) for n in range(count)]
        for worker in workers:
            stack.callback(worker.stop)
        for document in documents:
            shard = shard_number(document.doc_id, len(folders))
            workers[shard % count].add(shard // count, document)
        for worker in workers:
            worker.flush(last=True)
        return sum(worker.result() for worker in workers)


class _Worker:
    """A process that builds some shards."""

    def __init__(self, context: Any, folders: Sequence[Path], part_tokens: int) -> None:
        self._connection, theirs = context.Pipe()
        self.process = context.Process(
            target=_build, args=(theirs, list(folders), part_tokens), daemon=True
        )
        self.process.start()
        theirs.close()
        self._batch: list[tuple[int, Document]] = []

    def add(self, shard: int, document: Document) -> None:
        """Add a document to one of the worker's shards."""
        self._batch.append((shard, document))
        if len(self._batch) == BATCH:
            self.flush()

    def flush(self, *, last: bool = False) -> None:
        """Send what was added; wait while the process is busy. last: nothing else follows."""
        try:
            if self._batch:
                self._connection.send(self._batch)
            if last:
                self._connection.send(None)
        except OSError:
            self.result()  # raises what ended the process
        self._batch = []

    def result(self) -> int:
        """Return the number of documents once all shards are built; raise what went wrong."""
        try:
            outcome = self._connection.recv()
        except (EOFError, OSError):
            self.process.join(JOIN_SECONDS)
            raise ArtifactError(
                "a process that builds shards has ended",
                found=f"exit code {self.process.exitcode}",
                remedy="is there too little memory?",
            ) from None
        if isinstance(outcome, BaseException):
            raise outcome
        return int(outcome)

    def stop(self) -> None:
        """End the process, whether or not it is done."""
        self._connection.close()
        self.process.terminate()
        self.process.join()


def _build(connection: Connection, folders: Sequence[Path], part_tokens: int) -> None:
    """Build shards from the documents that arrive, and send their number or an error back."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the first process ends this one
    try:
        with ExitStack() as stack:
            writers = [stack.enter_context(IndexWriter(f, part_tokens)) for f in folders]
            while batch := connection.recv():
                for number, document in batch:
                    if document.doc_id in writers[number]:
                        raise InputError(f"a second document with the id {document.doc_id}")
                    writers[number].add(document)
            count = sum(map(len, writers))
        connection.send(count)
    except EOFError:
        return  # the first process is gone
    except (BirchbarkError, OSError, MemoryError) as fault:
        connection.send(fault)
