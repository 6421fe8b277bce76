"""Can the files of a served folder be opened, and no others?"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from fastapi.testclient import TestClient

from birchbark.collection.files.folder_state import FolderSource
from birchbark.pipeline.searcher import Searcher
from birchbark.pipeline.settings.ranker import Ranker
from birchbark.pipeline.upkeep.folder_index import build_folder_index, sync_folder
from birchbark.serve.app import application
from birchbark.serve.original_files import OriginalFile, send_file
from birchbark.serve.service import Service
from conftest import WordScorer

MAILBOX = b"""From ann Tue Nov 24 10:00:00 2026
Subject: Barges
Content-Type: text/markdown; name="plan.md"

A barge on the canal.
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    files = {
        "größe.txt": b"A birch by the river.",
        "page.html": b"<title>Page</title><p>An iron bridge.</p><script>alert(1)</script>",
        "sub/code.py": b"import birch  # a comment on rivers",
        ".hidden.txt": b"A secret.",
        "empty.txt": b"",
        "in.mbox": MAILBOX,
    }
    for name, content in files.items():
        path = tmp_path / "files" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    (tmp_path / "outside.txt").write_text("Not of the folder.")
    build_folder_index(FolderSource((str(tmp_path / "files"),)), tmp_path / "index")
    return tmp_path / "files"


@pytest.fixture
def service(folder: Path) -> Iterator[TestClient]:
    searcher = Searcher(folder.parent / "index", Ranker(WordScorer()))
    with TestClient(application(Service(searcher, writable=True), "secret")) as client:
        client.headers["authorization"] = "Bearer secret"
        yield client


def test_files_are_shown_harmlessly(folder: Path, service: TestClient) -> None:
    """Pages run no scripts, code is plain text, and names survive."""
    text = service.get("/files/größe.txt")
    assert text.content == (folder / "größe.txt").read_bytes()
    assert "gr%C3%B6%C3%9Fe.txt" in text.headers["content-disposition"]
    page = service.get("/files/page.html")
    assert page.headers["content-type"].startswith("text/html")
    assert page.headers["content-security-policy"].startswith("sandbox;")
    code = service.get("/files/sub/code.py")
    assert code.headers["content-type"].startswith("text/plain")
    assert service.get("/about").json()["files"]


def test_long_paths_can_be_opened(folder: Path, service: TestClient) -> None:
    """They are as long as paths can be.

    They may be blanks, each of which is three characters of an id.
    """
    path = Path(*15 * [f"a{' ' * 250}b"], "page.html")
    (folder / path).parent.mkdir(parents=True)
    (folder / path).write_text("<p>A heron.</p>")
    searcher = Searcher(folder.parent / "index", ())
    sync_folder(
        folder.parent / "index",
        lambda c: searcher.add(c.documents, delete=c.delete, origin=c.origin),
    )
    (hit,) = service.post("/search", json={"query": "heron"}).json()["hits"][:1]
    assert len(hit["doc_id"]) > 10_000
    for route in ("documents", "files", "rendered"):
        path = quote(quote(hit["doc_id"]))  # the client decodes it once itself
        assert service.get(f"/{route}/{path}").status_code == 200


def test_a_file_in_a_file_leads_to_the_outer_one(folder: Path, service: TestClient) -> None:
    """An attachment leads to its mailbox."""
    hits = service.post("/search", json={"query": "barge canal"}).json()["hits"]
    doc_id = hits[0]["doc_id"]
    assert doc_id.startswith("in.mbox/")
    assert doc_id.endswith(".eml/plan.md")
    sent = service.get(f"/files/{quote(doc_id)}")
    assert sent.content == MAILBOX
    assert "in.mbox" in sent.headers["content-disposition"]


@pytest.mark.parametrize(
    "name",
    ["../outside.txt", "%2e%2e/outside.txt", ".hidden.txt", "", "sub", "/etc/passwd"],
)
def test_other_files_are_not_found(service: TestClient, name: str) -> None:
    response = service.get(f"/files/{name}")
    assert response.status_code == 404
    assert "root" not in response.text


def test_documents_that_are_no_files_have_none(folder: Path, service: TestClient) -> None:
    """They have none even if they claim a path."""
    added = {"documents": [{"id": "claim", "text": "A text.", "path": "../outside.txt"}]}
    assert service.post("/documents", json=added).status_code == 200
    assert service.get("/documents/claim").status_code == 200
    assert service.get("/files/claim").status_code == 404


def test_changes_of_the_folder_are_followed(folder: Path, service: TestClient) -> None:
    """A new file can be opened as soon as it is a document, a deleted one no longer."""
    (folder / "new.txt").write_text("A new birch.")
    (folder / "page.html").unlink()
    assert service.get("/files/new.txt").status_code == 404
    assert service.get("/files/page.html").status_code == 404
    searcher = Searcher(folder.parent / "index", ())

    sync_folder(
        folder.parent / "index",
        lambda c: searcher.add(c.documents, delete=c.delete, origin=c.origin),
    )
    assert service.get("/files/new.txt").text == "A new birch."


@pytest.mark.parametrize("what", ["file", "folder", "pipe"])
def test_links_that_are_put_there_later_are_not_followed(
    folder: Path, service: TestClient, what: str
) -> None:
    """They may replace the file or its folder; a pipe makes nobody wait."""
    (folder.parent / "secret").mkdir()
    (folder.parent / "secret/code.py").write_text("A secret.")
    if what == "folder":
        (folder / "sub").rename(folder.parent / "aside")
        (folder / "sub").symlink_to("../secret")
    else:
        (folder / "sub/code.py").unlink()
        if what == "file":
            (folder / "sub/code.py").symlink_to("../../secret/code.py")
        else:
            os.mkfifo(folder / "sub/code.py")
    response = service.get("/files/sub/code.py")
    assert response.status_code == 404
    assert "secret" not in response.text.lower()


def test_parts_of_a_file_can_be_had(folder: Path, service: TestClient) -> None:
    """Viewers of PDF ask for parts; no file stays open."""
    before = len(list(Path("/dev/fd").iterdir()))
    part = service.get("/files/sub/code.py", headers={"range": "bytes=7-11"})
    assert (part.status_code, part.content) == (206, b"birch")
    assert service.get("/files/sub/code.py", headers={"range": "bytes=99-"}).status_code == 416
    assert len(list(Path("/dev/fd").iterdir())) == before


def test_no_more_is_sent_of_a_file_than_was_announced(tmp_path: Path) -> None:
    """A log may grow while it is sent."""
    path = tmp_path / "log.txt"
    path.write_bytes(b"birch " * 20_000)
    response = send_file(OriginalFile(path.name, path.open("rb")))
    with path.open("ab") as log:
        log.write(b"moss " * 100_000)
    sent = TestClient(response).get("/")
    assert sent.headers["content-length"] == "120000"
    assert sent.content == b"birch " * 20_000


def test_links_carry_the_key_as_a_password(service: TestClient) -> None:
    del service.headers["authorization"]
    refused = service.get("/files/page.html")
    assert refused.status_code == 401
    assert refused.headers["www-authenticate"].startswith("Basic")
    assert service.get("/files/page.html", auth=("", "secret")).status_code == 200


def test_an_index_of_no_folder_has_no_files(index: Path, tmp_path: Path) -> None:
    searcher = Searcher(index.directory, ())
    with TestClient(application(Service(searcher))) as client:
        assert client.get("/files/canoe").status_code == 404
        assert not client.get("/about").json()["files"]


def test_texts_are_shown_in_their_encoding(folder: Path, service: TestClient) -> None:
    """It is told if it is UTF-8, but for a few bytes; browsers find others, and declared ones."""
    for name, content, charset in (
        ("page.html", b'<meta charset="iso-8859-1">caf\xe9', ""),
        ("sub/code.py", b"# caf\xe9", ""),
        ("größe.txt", "café ".encode() * 9 + b"caf\xe9", "; charset=utf-8"),
        ("größe.txt", "café ".encode() * 20_000, "; charset=utf-8"),
    ):
        (folder / name).write_bytes(content)
        kind = "text/html" if name.endswith("html") else "text/plain"
        assert service.get(f"/files/{name}").headers["content-type"] == kind + charset
