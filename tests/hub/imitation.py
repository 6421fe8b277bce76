"""How is the hub imitated in tests? By a local server that answers its two requests."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

COMMIT = "0123456789abcdef0123456789abcdef01234567"
LARGE = 2000  # bytes; larger files are listed like the hub's LFS files
ID = "canoes/birch"


class Imitation(ThreadingHTTPServer):
    """Serves the files of one model, with the failures that tests set.

    requested: paths in order. tokens: the Authorization of each. status: substring of a path → HTTP
    status to answer. truncated: file → number of bytes to send. sent: file → other content to send.
    hidden: existing files that are not listed. listing: content to send instead of the list. terse:
    list names only. stalled: the file whose transfer stalls half-way.
    """

    def __init__(self, directory: Path) -> None:
        super().__init__(("127.0.0.1", 0), _Answers)
        self.directory = directory
        self.requested: list[str] = []
        self.tokens: list[str | None] = []
        self.status: dict[str, int] = {}
        self.truncated: dict[str, int] = {}
        self.sent: dict[str, bytes] = {}
        self.hidden: set[str] = set()
        self.listing: bytes | None = None
        self.terse = False
        self.stall = threading.Event()
        self.stalled = ""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def names(self) -> list[str]:
        """Return the names of the files that were sent."""
        return [path.partition("/cdn/")[2] for path in self.requested if "/cdn/" in path]

    def list_files(self) -> bytes:
        if self.listing is not None:
            return self.listing
        siblings = []
        for path in sorted(p for p in self.directory.rglob("*") if p.is_file()):
            name, data = path.relative_to(self.directory).as_posix(), path.read_bytes()
            entry: dict[str, object] = {"rfilename": name, "size": len(data), "blobId": git(data)}
            if len(data) >= LARGE:
                sha256 = hashlib.sha256(data).hexdigest()
                entry["lfs"] = {"sha256": sha256, "size": len(data), "pointerSize": 134}
                entry["blobId"] = "0" * 40  # of the LFS pointer
            if name not in self.hidden:
                siblings.append({"rfilename": name} if self.terse else entry)
        return json.dumps({"id": ID, "sha": COMMIT, "siblings": siblings}).encode()


def git(data: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


class _Answers(BaseHTTPRequestHandler):
    server: Imitation

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        path = unquote(urlsplit(self.path).path)
        self.server.requested.append(self.path)
        self.server.tokens.append(self.headers.get("Authorization"))
        status = next((s for part, s in self.server.status.items() if part in path), None)
        if status:
            self.send_response(status)
            self.send_header("X-Error-Message", "reason given by the hub")
            self.end_headers()
        elif path.startswith(f"/api/models/{ID}/revision/"):
            self.answer(self.server.list_files())
        elif path.startswith(f"/{ID}/resolve/{COMMIT}/"):
            name = path.removeprefix(f"/{ID}/resolve/{COMMIT}/")
            self.send_response(302)  # files come from another host
            self.send_header("Location", f"http://localhost:{self.server.server_port}/cdn/{name}")
            self.end_headers()
        elif path.startswith("/cdn/"):
            self.file(path.removeprefix("/cdn/"))
        else:
            self.send_response(401)
            self.end_headers()

    def file(self, name: str) -> None:
        data = self.server.sent.get(name, (self.server.directory / name).read_bytes())
        if name == self.server.stalled:
            self.answer(data, len(data) // 2)
            self.wfile.flush()
            self.server.stall.wait(20)
        else:
            self.answer(data, self.server.truncated.get(name))

    def answer(self, data: bytes, size: int | None = None) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data[:size])


@contextmanager
def imitation(directory: Path) -> Iterator[Imitation]:
    """Run the server until the block ends."""
    with Imitation(directory) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.stall.set()
            server.shutdown()
            thread.join()
