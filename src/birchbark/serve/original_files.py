"""Which file does a document come from, and how is it sent safely to a browser?"""

from __future__ import annotations

import mimetypes
import os
from collections.abc import Sequence
from io import BufferedReader
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

from starlette.datastructures import Headers
from starlette.responses import FileResponse
from starlette.types import Message, Receive, Scope, Send

from birchbark.collection.file_readers.file import File
from birchbark.collection.file_readers.file_types import HTML, file_type
from birchbark.collection.file_readers.text_encoding import as_utf8, declared_encoding
from birchbark.collection.files.folder_state import FolderSource
from birchbark.collection.parsing.intake import Intake
from birchbark.collection.parsing.lines import decompressed
from birchbark.errors import InputError
from birchbark.index.shards import read_manifest
from birchbark.pipeline.upkeep.folder_index import folder_state

NOT_ASCII = bytes(range(128, 256))
SAMPLE = 65_536  # bytes at the beginning of a file that tell whether it is text
# Scripts of a shown file do not run, and it loads nothing. Browsers show PDF only without sandbox.
SANDBOX = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:"


class OriginalFile(NamedTuple):
    """A file that is open, whatever has its name by now."""

    name: str
    opened: BufferedReader


class OriginalFiles:
    """The files of the folders that an index was built from.

    Only files that are documents of the index can be had. They are looked up by the document's id
    in what the index knows of its folder, so that no request can name another file.
    """

    def __init__(self, index: Path, folders: Sequence[Path] = ()) -> None:
        """folders: where the folders are; () for where they were when they were indexed."""
        self._index, self._folders = index, folders
        self._lock = Lock()
        self._read_of = ""  # the checksum of the index's origin when it was read
        self._known = FolderSource(()), dict[str, str]()  # and doc_id → path of its file

    @property
    def exist(self) -> bool:
        """Whether the index was built from folders of which one still exists."""
        source, paths = self._update()
        return bool(paths) and any(Path(folder).is_dir() for folder in source.folders)

    def open(self, doc_id: str) -> OriginalFile | None:
        """Open a document's file; None if it has none, or it cannot be read as it was indexed.

        A link that leads out of the folder is not followed, unless it was when indexing.
        """
        source, paths = self._update()
        if doc_id not in paths:
            return None
        try:
            return OriginalFile(Path(paths[doc_id]).name, source.open(paths[doc_id]))
        except InputError:
            return None

    def page(self, doc_id: str, most_bytes: int) -> str | None:
        """Return the markup of the web page that a document is; None if it is none.

        Raises InputError if the file has more bytes, unpacked, or cannot be read.
        """
        file = self.open(doc_id)
        if file is None:
            return None
        path = Path(file.name)
        with file.opened as opened:
            if file_type(path) is not HTML:
                return None
            size = os.fstat(opened.fileno()).st_size
            if size <= most_bytes:
                with decompressed(opened, path) as stream:
                    raw = stream.read(most_bytes + 1)
                size = len(raw)
        if size > most_bytes:
            raise InputError(f"the file has more than {most_bytes:,} bytes")
        return File(path, raw, self._update()[0].intake()).decode(markup=True)

    def _update(self) -> tuple[FolderSource, dict[str, str]]:
        """Return what the index knows of its folders; it is read if it has changed."""
        checksum = read_manifest(self._index).origin_checksum
        with self._lock:
            if checksum != self._read_of:
                state = folder_state(self._index)
                self._known = state.source.moved(self._folders), state.paths
                self._read_of = checksum
            return self._known


class _OpenedFileResponse(FileResponse):
    """Sends an open file, and closes it. What it grows by meanwhile is not sent."""

    def __init__(self, opened: BufferedReader, **options: Any) -> None:
        self._opened, handle = opened, opened.fileno()
        super().__init__(f"/dev/fd/{handle}", stat_result=os.fstat(handle), **options)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        left = 0

        async def send_announced(message: Message) -> None:
            nonlocal left
            if message["type"] == "http.response.start":
                left = int(Headers(raw=message["headers"])["content-length"])
            else:
                message["body"] = message["body"][:left]
                left -= len(message["body"])
            await send(message)

        with self._opened:
            await super().__call__(scope, receive, send_announced)


def send_file(file: OriginalFile) -> FileResponse:
    """Return a file for a browser: shown if browsers can show it safely, otherwise saved.

    Source code and other text is shown as plain text; pages are shown without their scripts.
    """
    sample = os.pread(file.opened.fileno(), SAMPLE, 0)
    is_text = b"\0" not in sample
    kind, compression = mimetypes.guess_type(file.name)
    if compression or kind is None:
        kind = "application/octet-stream" if compression or not is_text else "text/plain"
    if kind in ("text/html", "application/xhtml+xml", "application/pdf"):
        shown = True
    else:
        shown = kind.startswith("text/") or is_text
        kind = "text/plain" if shown else kind
    policy = (
        "default-src 'none'; style-src 'unsafe-inline'" if kind == "application/pdf" else SANDBOX
    )
    response = _OpenedFileResponse(
        file.opened,
        media_type=kind,
        filename=file.name,
        content_disposition_type="inline" if shown else "attachment",
        headers={"content-security-policy": policy},
    )
    if kind.startswith("text/"):
        response.headers["content-type"] = kind + _charset(sample, kind)
    return response


def _charset(sample: bytes, kind: str) -> str:
    """Return what the type of a text says of its encoding; nothing if the browser is to find it.

    It does so if a page declares one, and for text that is not, or hardly, in UTF-8.
    """
    if sample.isascii() and kind == "text/html" and declared_encoding(sample):
        return ""
    whole = sample if len(sample) < SAMPLE else sample.rstrip(NOT_ASCII)  # no part of a character
    return "" if as_utf8(whole, Intake()) is None else "; charset=utf-8"
