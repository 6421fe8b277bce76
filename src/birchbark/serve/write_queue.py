"""How are writes that wait at the same time committed together?

A commit flushes files to disk, which takes longer than indexing a few documents. The writes that
arrive during a commit therefore share the next one. Each is acknowledged when that is on disk.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from threading import Thread

from birchbark.errors import InputError
from birchbark.pipeline.upkeep.update_index import AddedDocuments
from birchbark.records import Document
from birchbark.serve.admission import BusyError
from birchbark.serve.schemas import WriteResponse

MAX_WAITING = 256  # writes
MAX_TOGETHER = 2_000  # documents in one commit, approximately; each waits for all


Change = Callable[[Sequence[Document], Sequence[str]], AddedDocuments]


@dataclass(frozen=True, slots=True)
class _Write:
    """Documents to add and ids to delete, all or none."""

    documents: Sequence[Document]
    delete: Sequence[str]
    done: Future[WriteResponse] = field(default_factory=Future)

    @property
    def size(self) -> int:
        return len(self.documents) + len(self.delete)


class WriteQueue:
    """Writes in the order of their arrival, in a thread of its own."""

    def __init__(
        self,
        change: Change,
        exists: Callable[[str], bool],
        turn: Callable[[], AbstractContextManager[object]],
    ) -> None:
        """Start the thread.

        change: adds documents and deletes ids, all or none. exists: whether an id is indexed.
        turn: a context that waits until nothing else writes; while it does, writes can still be
        cancelled.
        """
        self._change, self._exists, self._turn = change, exists, turn
        self._waiting = SimpleQueue[_Write | None]()
        self._thread = Thread(target=self._run, name="birchbark-write", daemon=True)
        self._thread.start()

    def submit(
        self, documents: Sequence[Document] = (), delete: Sequence[str] = ()
    ) -> Future[WriteResponse]:
        """Return a future that is done when the changes are on disk; BusyError if too many wait.

        A future that is cancelled before its commit begins changes nothing.
        """
        if (waiting := self._waiting.qsize()) >= MAX_WAITING:
            raise BusyError("too many writes at once", found=f"{waiting} waiting")
        write = _Write(documents, delete)
        self._waiting.put(write)
        return write.done

    def close(self) -> None:
        """Finish the writes that wait, and end the thread."""
        self._waiting.put(None)
        self._thread.join()

    def _run(self) -> None:
        ended = False
        while not ended:
            batch, size = [self._waiting.get()], 0
            while batch[-1] is not None and size < MAX_TOGETHER:
                size += batch[-1].size
                try:
                    batch.append(self._waiting.get_nowait())
                except Empty:
                    break
            ended = batch[-1] is None
            with self._turn():
                self._commit([w for w in batch if w and w.done.set_running_or_notify_cancel()])

    def _commit(self, writes: Sequence[_Write]) -> None:
        """Commit the writes; if they cannot be committed together, one after another."""
        if not writes:
            return
        latest: dict[str, Document | None] = {}  # id → its document; None if it was deleted
        responses = []
        try:
            for write in writes:
                responses.append(self._counted(write, latest))
                latest |= {document.doc_id: document for document in write.documents}
                latest |= dict.fromkeys(write.delete)
            deleted = [doc_id for doc_id, document in latest.items() if document is None]
            self._change([document for document in latest.values() if document], deleted)
        except BaseException as fault:  # of the index, or of one of the documents; or a Rust panic
            error = fault if isinstance(fault, Exception) else RuntimeError(repr(fault))
            if len(writes) == 1:
                writes[0].done.set_exception(error)
            else:
                alone = isinstance(error, InputError)
                for write in writes:
                    if alone:
                        self._commit([write])
                    else:
                        write.done.set_exception(error)
            return
        for write, response in zip(writes, responses, strict=True):
            write.done.set_result(response)

    def _counted(self, write: _Write, latest: dict[str, Document | None]) -> WriteResponse:
        """Return what the write changes, after the writes before it have made `latest`."""

        def known(doc_id: str) -> bool:
            return latest[doc_id] is not None if doc_id in latest else self._exists(doc_id)

        ids = dict.fromkeys(document.doc_id for document in write.documents)
        new = sum(not known(doc_id) for doc_id in ids)
        deleted = sum(known(doc_id) for doc_id in write.delete)
        return WriteResponse(added=new, replaced=len(write.documents) - new, deleted=deleted)
