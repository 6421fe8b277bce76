"""How are documents of word processors, e-books, notebooks and manual pages read, by pandoc?"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

from birchbark.collection.file_readers.file import Fields, File
from birchbark.collection.file_readers.latex import with_definitions
from birchbark.collection.file_readers.office import (
    as_pandoc_reads,
    lacks_words,
    property_title,
    readable_parts,
    text_pandoc_omits,
)
from birchbark.collection.file_readers.org import all_exported
from birchbark.collection.file_readers.rtf import in_unicode
from birchbark.collection.parsing.lines import UTF8_BOM
from birchbark.collection.parsing.markup import heading_starts, plain_text
from birchbark.errors import InputError, UnreadableError
from birchbark.process_limits import ended_by, limit_time
from birchbark.records import stated_sections

TEMPLATE = Path(__file__).with_name("pandoc.html")  # title and body, and nothing else
MOST_MEMORY = "1G"
MOST_SECONDS = 60  # of a processor
MOST_WAITING = 600.0  # seconds in all, as on a busy machine
RAW_AS_CODE = TEMPLATE.with_suffix(".lua")
DOCX, EPUB, LATEX, NOTEBOOK = "docx", "epub", "latex", "ipynb"
ODT, ORG, RTF = "odt", "org", "rtf"
_NOTE_MARK = re.compile(
    r'<a href="[^"<>]*" class="footnote-(?:ref|back)"[^<>]*>(?:<sup>)?[^<>]*(?:</sup>)?</a>'
)
_HEADING = re.compile(r"<h([1-6])[\s>]")


def pandoc_reader(format_name: str) -> Callable[[File], Fields]:
    """Return the reader for a format that pandoc knows under `format_name`.

    Pandoc runs as a process of its own that can read no other file, with limited memory and time.
    The title is the one that pandoc finds, that of the file's properties, or a heading, which is
    then no part of the text. The reader raises InputError for a file that pandoc cannot
    read within its limits, and UnreadableError for one that it may read at another time.
    """

    def read(file: File) -> Fields:
        parts = readable_parts(file.raw) if format_name in (DOCX, ODT) else {}
        is_word = format_name == DOCX
        raw = as_pandoc_reads(parts, file.raw) if is_word else file.raw
        raw = in_unicode(raw) if format_name == RTF else raw
        raw = raw.removeprefix(UTF8_BOM)
        raw = all_exported(raw) if format_name == ORG else raw
        html, messages = _html(raw, format_name)
        if format_name == LATEX and (defined := with_definitions(raw, messages)) != raw:
            with suppress(InputError):  # such as for a command of which LaTeX makes an environment
                html, _ = _html(defined, format_name)
        markup = _NOTE_MARK.sub("", html)
        title, text = plain_text(markup)
        title = title or property_title(parts)
        if is_word and lacks_words(parts, f"{title} {text}"):
            file.intake.note("word file with words that pandoc does not read")
        if not title:
            title, text = _by_heading(markup)
        whole = f"{text}\n\n{text_pandoc_omits(parts, text)}".strip()
        return {"title": title, "text": whole, **stated_sections(heading_starts(markup, text))}

    return read


def _by_heading(markup: str) -> tuple[str, str]:
    """Return a heading as the title, and the rest as the text.

    It is the first one if no text precedes it, else the only one of the highest level.
    """
    start = _HEADING.search(markup)
    if start and plain_text(markup[: start.start()])[1]:
        highest = [found for found in _HEADING.finditer(markup) if found[1] == "1"]
        start = highest[0] if len(highest) == 1 else None
    end = markup.find(f"</h{start[1]}>", start.end()) if start else -1
    if start is None or end < 0:
        return "", plain_text(markup)[1]
    title = " ".join(plain_text(markup[start.start() : end])[1].split())
    return title, plain_text(markup[: start.start()] + markup[end:])[1]


def read_manual_page(file: File) -> Fields:
    """Return title, such as `ls(1)`, and text of a manual page, in one of two macro packages."""
    macros = "mdoc" if b"\n.Dd " in b"\n" + file.raw else "man"
    return pandoc_reader(macros)(file)


def is_manual_page(raw: bytes) -> bool:
    """Return whether the file has the title line that a manual page begins with."""
    return any(command in b"\n" + raw[:20_000] for command in (b"\n.TH ", b"\n.Dd "))


def _html(raw: bytes, format_name: str) -> tuple[str, str]:
    """Return the file in HTML, and what pandoc says of LaTeX."""
    import pypandoc

    command = [
        pypandoc.get_pandoc_path(),
        *("+RTS", f"-M{MOST_MEMORY}", "-RTS"),
        *(f"--from={format_name}", "--to=html", "--wrap=none", "--sandbox"),
        "--verbose" if format_name == LATEX else "--quiet",
        f"--template={TEMPLATE}",
        *(["--metadata=date="] if format_name == EPUB else []),  # the time of its making
        *([f"--lua-filter={RAW_AS_CODE}"] if format_name in (NOTEBOOK, ORG) else []),
    ]
    try:
        done = subprocess.run(
            command,
            input=raw,
            capture_output=True,
            timeout=MOST_WAITING,
            check=False,
            preexec_fn=partial(limit_time, MOST_SECONDS),
        )
    except subprocess.TimeoutExpired:
        raise UnreadableError(f"pandoc took longer than {MOST_WAITING:.0f} s to read it") from None
    except OSError as error:
        raise UnreadableError(f"pandoc cannot be started: {error.strerror}") from None
    if ended_by(done.returncode, "SIGXCPU"):
        raise InputError(f"pandoc took longer than {MOST_SECONDS} s of processor time to read it")
    if done.returncode < 0:
        raise UnreadableError(f"pandoc was ended by signal {-done.returncode}")
    messages = done.stderr.decode(errors="replace")
    if done.returncode:
        errors = (line for line in messages.strip().split("\n") if not line.startswith("["))
        reason = next(errors, "")
        raise InputError(f"pandoc cannot read it: {reason}", wanted=f"a file of type {format_name}")
    return done.stdout.decode(errors="replace"), messages
