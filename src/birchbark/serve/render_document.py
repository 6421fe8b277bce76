"""How is a Markdown document or web page rendered for the page, within limits?"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b
from threading import Thread
from time import monotonic
from typing import IO, Any

from birchbark.collection.files.file_documents import doc_id_of
from birchbark.errors import BirchbarkError
from birchbark.process_limits import end_process, start_limited
from birchbark.recently_used import RecentlyUsed
from birchbark.records import Document
from birchbark.serve.background_thread import LOG
from birchbark.serve.error_responses import error_message
from birchbark.serve.original_files import OriginalFiles
from birchbark.serve.shown_text import Run

MODULE = "birchbark.serve.render_process"
MOST_CHARACTERS = 200_000  # of Markdown or of a page's markup
MOST_RENDERED = 2_000_000  # characters of markup that is rendered
MOST_SECONDS = 5  # of a processor
MOST_WAITING = 15.0  # seconds in all, as on a busy machine
MOST_MEMORY = 1_000_000_000  # bytes
STEP = 0.1  # seconds between two looks whether anybody still waits
MOST_FAILURES = 10_000  # that are remembered
MARKDOWN, HTML = "markdown", "html"  # values of the field `type`


@dataclass(frozen=True, slots=True)
class Rendered:
    """A document as markup that is safe to show.

    Attributes:
        markup: HTML; see `sanitised`. Empty if the document is shown as plain text.
        runs: Which text of the markup is which of the document's text; see `aligned_runs`.
        links: The doc_id of each file that is linked to; None for a file that is no document.
        reason: Why the document is shown as plain text; empty if it need not be.
    """

    markup: str = ""
    runs: tuple[Run, ...] = ()
    links: tuple[str | None, ...] = ()
    reason: str = ""


class DocumentRenderer:
    """Renders documents, and remembers those that cannot be rendered. Threads may share it."""

    def __init__(self, files: OriginalFiles, is_document: Callable[[str], bool]) -> None:
        self._files, self._is_document = files, is_document
        self._failures: RecentlyUsed[bytes, bool] = RecentlyUsed(MOST_FAILURES)

    def render(self, document: Document, on_step: Callable[[], None]) -> Rendered:
        """Render Markdown, from the text of its document, or a web page, from its file.

        The result has no markup for other documents, those that are too long, and those that cannot
        be rendered within the limits. on_step: called ten times a second; what it raises ends the
        rendering.
        """
        kind = document.fields.get("type")
        try:
            most_bytes = 4 * MOST_CHARACTERS
            is_page = kind == HTML
            source = self._files.page(document.doc_id, most_bytes) if is_page else document.text
        except BirchbarkError as error:
            return Rendered(reason=error_message(error))
        if kind not in (MARKDOWN, HTML) or not source:
            return Rendered()
        if len(source) > MOST_CHARACTERS:
            return Rendered(reason=f"it has more than {MOST_CHARACTERS:,} characters")
        path = document.fields.get("path", "")
        is_file = doc_id_of(path) == document.doc_id  # not an attachment: its path is another's
        given = {"source": source, "text": document.text, "is_page": is_page}
        given["most"] = MOST_RENDERED
        found = self._run({**given, "path": path if is_file else None}, on_step)
        if found is None:
            return Rendered(reason=f"it cannot be rendered within {MOST_SECONDS} s")
        if len(found["markup"]) > MOST_RENDERED:
            return Rendered(reason=f"rendered, it has more than {MOST_RENDERED:,} characters")
        linked = (doc_id_of(link) for link in found["links"])
        links = tuple(doc_id if self._is_document(doc_id) else None for doc_id in linked)
        return Rendered(found["markup"], tuple(map(tuple, found["runs"])), links)

    def _run(self, given: dict[str, Any], on_step: Callable[[], None]) -> dict[str, Any] | None:
        """Return the result of render_process.py; None if it does not end well."""
        text = json.dumps(given).encode()
        digest = blake2b(text).digest()
        on_step()
        if self._failures.get(digest):
            return None
        try:
            process = start_limited(MODULE, MOST_MEMORY, MOST_SECONDS, subprocess.PIPE)
            written, told = _answer(process, text, on_step)
            if process.returncode:
                self._failures.add(digest, True, 1)
                raise subprocess.CalledProcessError(process.returncode, MODULE, stderr=told)
        except (subprocess.SubprocessError, OSError) as error:
            output = getattr(error, "stderr", None) or b""
            last = output.decode(errors="replace").strip().rpartition("\n")[2]
            LOG.warning("a document was not rendered: %s %s", type(error).__name__, last)
            return None
        found: dict[str, Any] = json.loads(written)
        return found


def _answer(
    process: subprocess.Popen[bytes], text: bytes, on_step: Callable[[], None]
) -> tuple[bytes, bytes]:
    """Return what the process writes when it is given `text`; TimeoutExpired after a time."""
    # Before Python 3.14, Popen.communicate forgets what it has not written yet when it is called
    # again after a time.
    to, process.stdin = process.stdin, None
    writing = Thread(target=_write, args=(to, text))
    writing.start()
    try:
        end = monotonic() + MOST_WAITING
        while True:
            try:
                return process.communicate(timeout=STEP)
            except subprocess.TimeoutExpired:
                if monotonic() > end:
                    raise
            on_step()
    finally:
        if process.returncode is None:
            end_process(process)
        writing.join()


def _write(to: IO[bytes], text: bytes) -> None:
    with suppress(OSError), to:  # the process may end before it has read all
        to.write(text)
