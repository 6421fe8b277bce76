"""Does an index survive the death of processes that change it, while its folder changes?

Run as `kill_writers.py FOLDER KILLS SHARDS`, with 0 shards for an index in one piece. Processes
that attach, sync and merge are killed at random times. The script fails if the index is damaged,
shows a part of a commit, or differs from its folder after a sync.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import count
from pathlib import Path

import numpy as np

from birchbark.collection.documents import read_collection
from birchbark.collection.file_readers.file import Fields, File
from birchbark.collection.file_readers.file_types import file_type
from birchbark.collection.files.file_documents import Part, parts_of
from birchbark.collection.files.folder_state import FolderSource
from birchbark.collection.files.isolated_reader import IsolatedReader
from birchbark.collection.parsing.intake import Intake
from birchbark.index.attachment_schema import AttachmentSchema, RowForm, Rows
from birchbark.index.build_index import build_index
from birchbark.index.index import Index
from birchbark.index.sharded_writer import open_writer
from birchbark.index.verify import find_damage
from birchbark.pipeline.upkeep.folder_index import build_folder_index, folder_state, sync_folder
from birchbark.pipeline.upkeep.update_index import add_documents
from birchbark.records import Document

TOGETHER = [f"together-{n}" for n in range(12)]  # from elsewhere; each commit gives all one text
LONGEST = 0.3  # seconds of processor time until a process is killed
SCHEMA = AttachmentSchema({"made of": "text"}, {"length": RowForm("int32")})


def main(root: Path, kills: int, shards: int) -> None:
    """Kill processes, and check what they leave."""
    IsolatedReader.begin = read_here  # type: ignore[method-assign]
    chance, folder, index = random.Random(7), root / "files", root / "index"
    folder.mkdir(parents=True)
    for _ in range(40):
        change(folder, chance)
    build_folder_index(
        FolderSource((str(folder),)), index, build=partial(build_index, shards=shards or None)
    )
    for kill in range(kills):
        process = os.fork()
        if not process:
            write(index)
        end = chance.random() * LONGEST
        clock = ~process << 3 | 2  # Linux's name of the clock of another process's time
        while time.clock_gettime(clock) < end:
            change(folder, chance)
            time.sleep(chance.random() * LONGEST / 20)
        os.kill(process, signal.SIGKILL)
        _, status = os.waitpid(process, 0)
        assert os.WTERMSIG(status) == signal.SIGKILL, "the process has failed"
        check(index, folder)
        sys.stderr.write(f"{kill + 1} of {kills}\n")


def change(folder: Path, chance: random.Random) -> None:
    """Write, change or delete a file."""
    file = folder / str(chance.randrange(5)) / f"{chance.randrange(12)}.txt"
    if chance.random() < 0.4:
        file.unlink(missing_ok=True)
    else:
        file.parent.mkdir(exist_ok=True)
        file.write_text(" ".join(chance.choices(["birch", "bark", "canoe", "river"], k=9)))


def read_here(
    self: IsolatedReader,
    location: Path,
    raw: bytes,
    path: str,
    about: Fields,
    notes: Counter[str],
) -> Iterator[Part]:
    """Read a file in this process, which takes less time than to start another."""
    kind = file_type(Path(path))
    assert kind
    return parts_of(File(location, raw, Intake()), path, kind, about)


def write(index: Path) -> None:
    """Attach, sync and merge until the process is killed."""
    try:
        for number in count():
            sync(index)
            now = f"{time.monotonic()}"
            with open_writer(index) as writer:
                for doc_id in TOGETHER:
                    writer.add(Document(doc_id, {"text": now}))
            with open_writer(index) as writer:
                writer.attach("lengths", SCHEMA, lengths, commit_every=5)
                if number % 3 == 2:
                    writer.merge()
    except BaseException:
        traceback.print_exc()
        os._exit(1)


def lengths(documents: Sequence[Document]) -> list[Rows]:
    """Return a row for each document."""
    return [{"length": np.array([len(document.text)], np.int32)} for document in documents]


def sync(index: Path) -> None:
    """Bring the index up to date, without its attachments."""
    sync_folder(index, lambda c: add_documents(index, c, no_model, leave_out=["lengths"]))


def no_model(name: str, **options: object) -> None:
    """Stand in for what loads models."""
    raise AssertionError(name)


def check(index: Path, folder: Path) -> None:
    """Raise AssertionError unless the index is as a process may leave it."""
    assert not find_damage(index)
    found = {document.doc_id: document.text for document in Index(index)}
    together = {found.pop(doc_id, None) for doc_id in TOGETHER}
    assert len(together) == 1, f"a part of a commit: {together}"
    known = {i for state in folder_state(index).files.values() for i in state.documents}
    assert known == found.keys(), f"not known, or not there: {known ^ found.keys()}"
    sync(index)
    synced = {d.doc_id: d.text for d in Index(index) if d.doc_id not in TOGETHER}
    assert synced == {d.doc_id: d.text for d in read_collection(folder)}


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
