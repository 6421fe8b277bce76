"""How are documents of word processors, e-books, notebooks and manual pages read, by pandoc?"""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

from birchbark.collection.files.file import Fields, File
from birchbark.collection.parsing.markup import plain_text
from birchbark.errors import InputError, UnreadableError

TEMPLATE = Path(__file__).with_name("pandoc.html")  # title and body, and nothing else
MOST_MEMORY = "1G"
MOST_SECONDS = 60.0


def pandoc_installed() -> bool:
    """Return whether the package that contains pandoc is installed."""
    return find_spec("pypandoc") is not None


def pandoc_reader(format_name: str) -> Callable[[File], Fields]:
    """Return the reader for a format that pandoc knows under `format_name`.

    Pandoc runs as a process of its own that can read no other file, with limited memory and time.
    The reader raises InputError for a file that pandoc cannot read within them, and UnreadableError
    for one that it may read at another time.
    """

    def read(file: File) -> Fields:
        title, text = plain_text(_html(file, format_name))
        return {"title": title, "text": text}

    return read


def read_manual_page(file: File) -> Fields:
    """Return title, such as `ls(1)`, and text of a manual page, in one of two macro packages."""
    macros = "mdoc" if b"\n.Dd " in b"\n" + file.raw else "man"
    return pandoc_reader(macros)(file)


def is_manual_page(raw: bytes) -> bool:
    """Return whether the file has the title line that a manual page begins with."""
    return any(command in b"\n" + raw[:20_000] for command in (b"\n.TH ", b"\n.Dd "))


def _html(file: File, format_name: str) -> str:
    import pypandoc

    command = [
        pypandoc.get_pandoc_path(),
        *("+RTS", f"-M{MOST_MEMORY}", "-RTS"),
        *(f"--from={format_name}", "--to=html", "--wrap=none", "--sandbox", "--quiet"),
        f"--template={TEMPLATE}",
    ]
    try:
        done = subprocess.run(
            command, input=file.raw, capture_output=True, timeout=MOST_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise UnreadableError(f"pandoc took longer than {MOST_SECONDS:.0f} s to read it") from None
    except OSError as error:
        raise UnreadableError(f"pandoc cannot be started: {error.strerror}") from None
    if done.returncode < 0:
        raise UnreadableError(f"pandoc was ended by signal {-done.returncode}")
    if done.returncode:
        reason = done.stderr.decode(errors="replace").strip().split("\n")[0]
        raise InputError(f"pandoc cannot read it: {reason}", wanted=f"a file of type {format_name}")
    return done.stdout.decode(errors="replace")
