"""How are strangers' files read, so that a hostile one costs nothing but itself?"""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Self

from birchbark import defaults
from birchbark.collection.file_readers.file import Fields
from birchbark.collection.files.file_documents import DIVIDE, Part, doc_id_of
from birchbark.collection.parsing.lines import MAX_FILE
from birchbark.errors import InputError, MissingPackageError, UnreadableError, first_line
from birchbark.process_limits import end_process, ended_by, start_limited
from birchbark.records import Document

MODULE = "birchbark.collection.files.isolated_process"
MOST_MEMORY = 4_000_000_000  # bytes; a few cells far apart need memory for all between them
MOST_SECONDS = 120  # of processor time, for each document
MOST_SECONDS_IN_ALL = 1_200  # of processor time, for a file with all that it contains
MOST_ENDED = 3  # processes, before the rest of a file is not read
# Of the text of a file with all that it contains: at least so many characters, and so many for
# each of its bytes, as compressed logs have. A spreadsheet of 9 KB can have 50 million.
MOST_CHARACTERS, CHARACTERS_PER_BYTE = 10_000_000, 20
BYTES_PER_CHARACTER = 8  # of answers; a control character has six, and names take some, too


class IsolatedReader:
    """Reads files in a process of its own, within limits of memory and of processor time.

    A file that exceeds them, or that a library fails on so that the process ends, is a bad file; in
    a mailbox or an e-mail, only the message or attachment is. When the time for a whole file or the
    number of characters is used up, what has been read of it remains, and the rest of it is a bad
    file. A context manager, for one thread at a time; the process starts with the first file.
    """

    def __init__(self, encoding: str = defaults.ENCODING) -> None:
        """encoding: of text files."""
        self._encoding = encoding
        self._idle: subprocess.Popen[bytes] | None = None  # waits for the next file
        self._busy: subprocess.Popen[bytes] | None = None  # reads a file

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for process in filter(None, (self._idle, self._busy)):
            end_process(process)
        self._idle = self._busy = None

    def begin(
        self, location: Path, raw: bytes, path: str, about: Fields, notes: Counter[str]
    ) -> Iterator[Part]:
        """Begin to read a file, and return what it becomes: see `parts_of`.

        The process reads it meanwhile. The next file can begin when all has been taken.

        location, raw: where it is, and its bytes. path: below the folder. about: fields that all
        its documents have, with the `size` of the file, in bytes. notes: what the readers have
        noted is added to it after the last part. Raises UnreadableError if no process starts, and
        MemoryError.
        """
        progress = _Progress(doc_id_of(path))
        request = {"location": str(location), "path": path, "about": about, "bytes": len(raw)}
        characters = min(MOST_CHARACTERS + CHARACTERS_PER_BYTE * int(about["size"]), MAX_FILE)
        request |= {"encoding": self._encoding, "without": progress.ended}
        request |= {"characters": characters}
        self._send(request, raw)
        return self._parts(request, raw, progress, notes)

    def _parts(
        self, request: dict[str, Any], raw: bytes, progress: _Progress, notes: Counter[str]
    ) -> Iterator[Part]:
        """Yield what the file that is read becomes; it is read again if the process ends."""
        location, whole = request["location"], progress.whole
        while not (progress.is_done or progress.stops_because):
            try:
                if not self._busy:
                    self._send(request, raw)
                with closing(self._answers(request["characters"])) as answers:
                    yield from progress.parts(answers)
            except Exception as error:
                begun = progress.end_process()
                yield Part(begun, why_unread(error).at(f"{location}{begun.removeprefix(whole)}"))
        notes.update(progress.notes)
        if not progress.is_done:
            read, reason = progress.documents, progress.stops_because
            what = f"not read after {read:,} of its documents, because {reason}"
            yield Part(whole, InputError(what, where=location, remedy=DIVIDE))

    def _send(self, request: dict[str, Any], raw: bytes) -> None:
        """Let a process read a file."""
        process, self._idle = self._idle or _start(), None
        self._busy = process
        assert process.stdin
        try:
            process.stdin.write(json.dumps(request).encode() + b"\n")
            process.stdin.write(raw)
            process.stdin.flush()
        except OSError:
            pass  # it has ended, which is seen when answers are read
        except BaseException:
            self._busy = None
            end_process(process)
            raise

    def _answers(self, characters: int) -> Generator[dict[str, Any]]:
        """Yield what the process answers; InputError if it ends before the last answer.

        If it ends before the first one, it has read nothing, and another may read the file later.
        """
        process = self._busy
        assert process
        assert process.stdout
        has_begun = False
        try:
            for line in _lines(process.stdout, BYTES_PER_CHARACTER * characters):
                answer, has_begun = json.loads(line), True
                if answer.get("last"):
                    self._idle = process
                yield answer
                if self._idle:
                    return
            reason = _reason(process.wait())
            raise reason if has_begun else UnreadableError(reason.what)
        finally:
            if self._busy is process:  # and has not been ended with the reader
                self._busy = None
                if self._idle is not process:
                    end_process(process)


def why_unread(error: Exception) -> InputError:
    """Return why a file is not read whose reading raised `error`, so that others are."""
    if isinstance(error, InputError):
        return error
    if isinstance(error, MissingPackageError):  # it may be installed later
        return UnreadableError(error.what, remedy=error.remedy)
    if isinstance(error, MemoryError):
        return UnreadableError("there is not enough memory to read it")
    kind = UnreadableError if isinstance(error, OSError) else InputError
    return kind(f"cannot be read: {type(error).__name__}: {first_line(error)}")


def _lines(stream: IO[bytes], most: int) -> Iterator[bytes]:
    """Yield the lines that end; InputError if they have more than `most` bytes together."""
    left = most
    while line := stream.readline(left + 1):
        left -= len(line)
        if left < 0:
            raise InputError(f"the process that reads it wrote more than {most:,} bytes")
        if line.endswith(b"\n"):  # or the process has ended while it wrote
            yield line


@dataclass(slots=True)
class _Progress:
    """What has been read of a file, by one process after another.

    Attributes:
        whole: The doc_id of the file.
        ended: Ids of the documents whose reading ended a process.
        notes: What the readers have noted.
        is_done: Whether nothing is left to read.
    """

    whole: str
    ended: list[str] = field(default_factory=list)
    notes: dict[str, int] = field(default_factory=dict)
    is_done: bool = False
    _begun: str = field(init=False)  # what is read now
    _seconds: float = 0.0  # of processor time, by this process
    _seconds_before: float = 0.0  # by those before it
    _seen: set[tuple[str, bool]] = field(default_factory=set)  # id, and whether it was read

    def __post_init__(self) -> None:
        self._begun = self.whole

    @property
    def documents(self) -> int:
        """How many documents have been read."""
        return sum(is_read for _, is_read in self._seen)

    @property
    def stops_because(self) -> str:
        """Why no more is read; empty if it is."""
        if self._seconds_before + self._seconds > MOST_SECONDS_IN_ALL:
            return f"it takes more than {MOST_SECONDS_IN_ALL:,} s of processor time"
        return f"{MOST_ENDED} files in it failed" if len(self.ended) == MOST_ENDED else ""

    def parts(self, answers: Iterable[dict[str, Any]]) -> Iterator[Part]:
        """Yield what is new in the answers of a process, until the time is used up."""
        for answer in answers:
            self.notes = answer.get("notes", self.notes)
            self._begun = answer.get("begun", self._begun)
            self._seconds = answer.get("seconds", self._seconds)
            if self.stops_because:
                return
            if "doc_id" in answer:
                key = answer["doc_id"], "fields" in answer
                if key not in self._seen:
                    self._seen.add(key)
                    yield _part(answer)
        self.is_done = True

    def end_process(self) -> str:
        """Return the id of what a process that has ended was reading."""
        # it does not say for how long: at most the time for a document
        self._seconds_before += self._seconds + MOST_SECONDS
        self._seconds = 0.0
        self.ended.append(self._begun)
        self.is_done = self._begun == self.whole
        return self._begun


def _part(answer: dict[str, Any]) -> Part:
    doc_id = answer["doc_id"]
    if "fields" in answer:
        return Part(doc_id, Document(doc_id, answer["fields"]))
    kind = UnreadableError if answer["retry"] else InputError
    what, where, found, wanted, remedy = answer["error"]
    return Part(doc_id, kind(what, where=where, found=found, wanted=wanted, remedy=remedy))


def _start() -> subprocess.Popen[bytes]:
    """Start a process that waits for files."""
    try:  # libraries write backtraces of what is told in a line
        return start_limited(MODULE, MOST_MEMORY, MOST_SECONDS, subprocess.DEVNULL)
    except OSError as error:
        raise UnreadableError(f"no process to read it: {error.strerror}") from None


def _reason(code: int) -> InputError:
    """Return why a file cannot be read whose process ended with this exit code."""
    if ended_by(code, "SIGXCPU"):
        return InputError(f"it took longer than {MOST_SECONDS} s of processor time to read it")
    if ended_by(code, "SIGABRT"):  # as libraries end that get no memory
        return InputError(f"reading it failed, or needs more than {MOST_MEMORY:,} bytes of memory")
    if ended_by(code, "SIGKILL"):  # by the system, or a person
        return UnreadableError("the process that reads it was killed")
    ended = f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
    return InputError(f"the process that reads it {ended}")
