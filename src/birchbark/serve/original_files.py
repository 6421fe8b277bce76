"""Which file does a document come from, and how is it sent safely to a browser?"""

from __future__ import annotations

import mimetypes
from collections.abc import Sequence
from pathlib import Path
from threading import Lock

from starlette.responses import FileResponse

from birchbark.collection.files.folder_state import FILE, FolderSource, FolderState
from birchbark.errors import InputError

# Scripts of a shown file do not run, and it loads nothing. Browsers show PDF only without sandbox.
SANDBOX = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:"


class OriginalFiles:
    """The files of the folders that an index was built from.

    Only files that are documents of the index can be had. They are looked up by the document's id
    in what the index knows of its folder, so that no request can name another file.
    """

    def __init__(self, index: Path, folders: Sequence[Path] = ()) -> None:
        """folders: where the folders are; () for where they were when they were indexed."""
        self._index, self._folders = index, folders
        self._lock = Lock()
        self._read_when = -1
        self._known = FolderSource(()), dict[str, str]()  # and doc_id → path of its file

    @property
    def exist(self) -> bool:
        """Whether the index was built from folders of which one still exists."""
        source, paths = self._update()
        return bool(paths) and any(Path(folder).is_dir() for folder in source.folders)

    def find(self, doc_id: str) -> Path | None:
        """Return the path of a document's file; None if it has none, or it is no longer there."""
        source, paths = self._update()
        path = source.locate(paths[doc_id]) if doc_id in paths else None
        return path if path and path.is_file() else None

    def _update(self) -> tuple[FolderSource, dict[str, str]]:
        """Return what the index knows of its folders; it is read if it has changed."""
        try:
            written = (self._index / FILE).stat().st_mtime_ns
        except OSError:
            return self._known
        with self._lock:
            state = FolderState.read(self._index) if written != self._read_when else None
            if state:
                files = state.files.items()
                paths = {doc_id: path for path, file in files for doc_id in file.documents}
                self._known = state.source.moved(self._folders), paths
                self._read_when = written
            return self._known


def send_file(path: Path) -> FileResponse:
    """Return a file for a browser: shown if browsers can show it safely, otherwise saved.

    Source code and other text is shown as plain text; pages are shown without their scripts.
    """
    kind, compression = mimetypes.guess_type(path.name)
    if compression or kind is None:
        kind = "application/octet-stream" if compression or not _is_text(path) else "text/plain"
    if kind in ("text/html", "application/xhtml+xml", "application/pdf"):
        shown = True
    else:
        shown = kind.startswith("text/") or _is_text(path)
        kind = "text/plain" if shown else kind
    policy = (
        "default-src 'none'; style-src 'unsafe-inline'" if kind == "application/pdf" else SANDBOX
    )
    return FileResponse(
        path,
        media_type=kind,
        filename=path.name,
        content_disposition_type="inline" if shown else "attachment",
        headers={"content-security-policy": policy},
    )


def _is_text(path: Path) -> bool:
    """Return whether the beginning of a file has no bytes that text does not have."""
    try:
        with path.open("rb") as file:
            return b"\0" not in file.read(4096)
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}") from None
