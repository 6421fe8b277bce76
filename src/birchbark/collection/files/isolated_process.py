"""Which documents do files become? Run as a process of its own, by `isolated_reader.py`.

Reads requests from stdin, each a line of JSON and the bytes of a file, and writes answers to
stdout, each a line of JSON: `begun` with the doc_id of what is read now, the `seconds` of processor
time that the file has taken, and the `notes` until then; `doc_id` with `fields` or `error`; at
last, `notes` and `last`.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from errno import ENOSPC
from pathlib import Path
from typing import Any

from birchbark.collection.file_readers.file import File
from birchbark.collection.file_readers.file_types import file_type
from birchbark.collection.files.file_documents import DIVIDE, Part, doc_id_of, parts_of
from birchbark.collection.files.find_sections import with_section_starts
from birchbark.collection.parsing.intake import Intake
from birchbark.errors import InputError, UnreadableError
from birchbark.process_limits import given_limits, limit_memory, limit_time
from birchbark.records import Document
from birchbark.systems import TROUBLES

PART_CHARACTERS = 500  # as which each document or error of a file counts
Write = Callable[[dict[str, Any]], None]


def answer(
    request: dict[str, Any], raw: bytes, memory: int, seconds: int, write: Write
) -> dict[str, int]:
    """Read a file, write the answers except the last one, and return the notes."""
    intake = Intake(encoding=request["encoding"])
    seconds_before = _seconds_used()

    def begin(doc_id: str) -> bool:
        if doc_id in request["without"]:
            return False
        limit_time(seconds)
        used = _seconds_used() - seconds_before
        write({"begun": doc_id, "seconds": used, "notes": intake.notes})
        return True

    path, location = request["path"], Path(request["location"])
    kind = file_type(Path(path))
    assert kind
    found = parts_of(File(location, raw, intake), path, kind, request["about"], begin)
    try:
        for part in _first_characters(found, request["characters"], doc_id_of(path), location):
            if isinstance(part.found, Document):
                part = part._replace(found=with_section_starts(part.found, intake))
            write(_as_json(part))
    except MemoryError:
        error = InputError(f"it needs more than {memory:,} bytes of memory", where=str(location))
        write(_as_json(Part(doc_id_of(path), error)))
    except OSError as error:
        if error.errno not in TROUBLES:
            raise
        write(_as_json(Part(doc_id_of(path), _trouble(error).at(str(location)))))
    return intake.notes


def _trouble(error: OSError) -> UnreadableError:
    remedy = "free some space for temporary files (TMPDIR)" if error.errno == ENOSPC else ""
    return UnreadableError(f"cannot be read: {error.strerror or error}", remedy=remedy)


def _seconds_used() -> float:
    """Return the processor time of this process and of those that it has waited for."""
    return sum(os.times()[:4])


def _first_characters(
    parts: Iterable[Part], most: int, doc_id: str, location: Path
) -> Iterator[Part]:
    """Yield parts until their fields have `most` characters; then an error.

    Each document or error counts as PART_CHARACTERS more. doc_id, location: of the file whose parts
    they are.
    """
    left = most
    for part in parts:
        fields = part.found.fields if isinstance(part.found, Document) else {}
        left -= PART_CHARACTERS + sum(map(len, fields.values()))
        if left < 0:
            if text := fields.get("text", "")[:left]:
                yield Part(part.doc_id, Document(part.doc_id, {**fields, "text": text}))
            what = f"only {most:,} characters of it are read"
            what += f"; each document counts as {PART_CHARACTERS}"
            yield Part(doc_id, InputError(what, where=str(location), remedy=DIVIDE))
            return
        yield part


def _as_json(part: Part) -> dict[str, Any]:
    found = part.found
    if isinstance(found, InputError):
        told = (found.what, found.where, found.found, found.wanted, found.remedy)
        retry = isinstance(found, UnreadableError)
        return {"doc_id": part.doc_id, "error": told, "retry": retry}
    return {"doc_id": part.doc_id, "fields": dict(found.fields)}


def main() -> None:
    """Answer requests, within the limits of the command line, until there are no more."""
    memory, seconds = given_limits()
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what libraries print is no answer
    limit_memory(memory)

    def write(found: dict[str, Any]) -> None:
        line = json.dumps(found, ensure_ascii=False) + "\n"
        answers.write(line.encode(errors="surrogatepass"))  # as names in errors can have
        answers.flush()

    while line := sys.stdin.buffer.readline():
        request = json.loads(line)
        raw = sys.stdin.buffer.read(request["bytes"])
        notes = answer(request, raw, memory, seconds, write)
        write({"notes": notes, "last": True})


if __name__ == "__main__":
    main()
