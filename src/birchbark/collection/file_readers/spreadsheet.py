"""How do the sheets of a workbook become text that can be searched and read?"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

from birchbark.collection.file_readers.file import Fields, File
from birchbark.collection.file_readers.table import row_paragraphs
from birchbark.errors import InputError, UnreadableError

PROCESS = Path(__file__).with_name("spreadsheet_process.py")
MOST_SECONDS = 60.0
MOST_MEMORY = 2_000_000_000  # bytes; a few cells far apart need memory for all between them
MOST_CELLS = 5_000_000
MOST_CHARACTERS = 50_000_000  # a text that is in many cells is in the file once


def calamine_installed() -> bool:
    """Return whether the package that reads spreadsheets is installed."""
    return find_spec("python_calamine") is not None


def read_spreadsheet(file: File) -> Fields:
    """Return the name of each sheet, followed by its rows as paragraphs: see `row_paragraphs`.

    Dates are written as in ISO 8601, and numbers without decimals that they do not have. What
    exceeds MOST_CELLS or MOST_CHARACTERS is noted. The workbook is read by a process of its own,
    with limited memory and time. Raises InputError for a file that cannot be read within this
    memory, and UnreadableError if it takes too long.
    """
    limits = [str(limit) for limit in (MOST_MEMORY, MOST_CELLS, MOST_CHARACTERS)]
    command = [sys.executable, "-P", str(PROCESS), *limits]
    try:
        done = subprocess.run(
            command, input=file.raw, capture_output=True, timeout=MOST_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise UnreadableError(f"it took longer than {MOST_SECONDS:.0f} s to read it") from None
    except OSError as error:
        raise UnreadableError(f"no process to read it: {error.strerror}") from None
    _check(done)
    found = json.loads(done.stdout)
    if found["is_cut"]:
        file.intake.note(
            f"spreadsheet not read after {MOST_CELLS:,} cells or {MOST_CHARACTERS:,} characters"
        )
    sheets = ((name, row_paragraphs(rows)) for name, rows in found["sheets"])
    blocks = [block for name, rows in sheets if rows for block in (name, *rows)]
    return {"title": "", "text": "\n\n".join(blocks)}


def _check(done: subprocess.CompletedProcess[bytes]) -> None:
    """Raise the error that the process ended with, if it did. It aborts if memory is lacking."""
    if not done.returncode:
        return
    reason = done.stderr.decode(errors="replace").strip().split("\n")[-1]
    if "memory" in reason.lower() or done.returncode == -signal.SIGABRT:
        reason = f"it needs more than {MOST_MEMORY:,} bytes of memory"
    elif done.returncode < 0:
        raise UnreadableError(f"the process that reads it was ended by signal {-done.returncode}")
    if "detect file format" in reason:  # what calamine also says of encrypted ones
        reason = "it is damaged, or protected by a password"
    raise InputError(f"the spreadsheet cannot be read: {reason}")
