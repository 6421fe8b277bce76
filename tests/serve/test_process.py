"""Does the service work as a process: folders, signals, kills, slow and malicious clients?"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from functools import partial
from http.client import IncompleteRead
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from served import running, send

from birchbark.cli import group
from birchbark.cli.serve import _read_key
from birchbark.errors import BirchbarkError, InputError
from birchbark.index.build_index import build_index
from birchbark.index.index import Index
from conftest import DOCUMENTS, WordScorer, write_bert


def ask(port: int, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    status, answer = send(port, method, path, body)
    return status, json.loads(answer)


@pytest.fixture
def bert(tmp_path: Path) -> Path:
    return write_bert(tmp_path / "bert", labels=1)


def test_a_folder_is_indexed_and_served(tmp_path: Path, bert: Path) -> None:
    """The index is built beside the folder, and used again, with its changes, at the next start."""
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "bees.txt").write_text("Bees dance. The dance tells of a flower.")
    (tmp_path / "notes" / "manifest.json").write_text('{"name": "a program of mine"}')
    with running("notes", "--model", bert, "--writable", cwd=tmp_path) as (port, _):
        status, answer = ask(port, "POST", "/search", {"query": "bee dance"})
        assert (status, answer["hits"][0]["doc_id"]) == (200, "bees.txt")
        new = {"documents": [{"id": "canoe", "text": "A birch canoe."}]}
        assert ask(port, "POST", "/documents", new)[1]["added"] == 1
    (tmp_path / "notes" / "engine.txt").write_text("An iron engine.")
    with running("notes", "--model", bert, cwd=tmp_path) as (port, _):
        for doc_id in ("canoe", "engine.txt"):  # the latter is read while the service runs
            end = time.monotonic() + 60
            found = ""
            while found != doc_id and time.monotonic() < end:
                hits = ask(port, "POST", "/search", {"query": doc_id[:5]})[1]["hits"]
                found = hits[0]["doc_id"]
            assert found == doc_id


def test_acknowledged_writes_survive_a_kill(tmp_path: Path, bert: Path) -> None:
    """Whenever the kill comes, acknowledged additions and deletions are on disk.

    The client sees a broken connection or an incomplete answer, never a wrong one.
    """
    build_index(DOCUMENTS, tmp_path / "index")
    for round_ in range(4):
        added: list[str] = []
        deleted: list[str] = []
        with (
            ThreadPoolExecutor(1) as pool,
            running("index", "--model", bert, "--writable", cwd=tmp_path) as (port, process),
        ):
            end = time.monotonic() + 0.3 + 0.17 * round_
            number = 0
            while True:
                number += 1
                goes = number % 3 == 0  # the one before
                name = f"{round_}-{number - goes}"
                body = {"documents": [{"id": name, "text": f"zebra {name}"}]}
                words = ("DELETE", f"/documents/{name}") if goes else ("POST", "/documents", body)
                last = number > 3 and time.monotonic() > end
                doing = pool.submit(ask, port, *words)
                if last:
                    time.sleep(0.01 * round_)
                    os.kill(process.pid, signal.SIGKILL)
                try:
                    assert doing.result()[0] == 200
                    (deleted if goes else added).append(name)
                except (ConnectionError, IncompleteRead):
                    assert last
                    added = [one for one in added if one != name]  # not acknowledged
                if last:
                    break
        kept = Index(tmp_path / "index")
        there = set(added) - set(deleted)
        assert {d.doc_id for d in kept.documents(sorted(there))} == there
        assert deleted
        assert all(kept.find(name) is None for name in deleted)
    shutil.rmtree(tmp_path / "index")


def test_sigterm_lets_started_requests_finish(tmp_path: Path, bert: Path) -> None:
    """A search, a stream and a write whose bodies are incomplete are answered.

    Eight clients that search all the time get no wrong answer; later clients get no connection.
    """
    build_index(DOCUMENTS, tmp_path / "index")
    begun = {
        "/search": ({"query": "birch"}, b'"hits":[{"doc_id":'),
        "/search/stream": ({"query": "birch"}, b"event: done"),
        "/documents": ({"documents": [{"id": "zebra", "text": "zebra"}]}, b'"added":1'),
    }

    def client(port: int) -> list[tuple[int, Any]]:
        answered = []
        while True:
            try:
                answered.append(ask(port, "POST", "/search", {"query": "birch"}))
            except ConnectionError:
                return answered

    with running("index", "--model", bert, "--writable", cwd=tmp_path) as (port, process):
        with ThreadPoolExecutor(8) as pool, ExitStack() as stack:
            halves = {}
            for path, (body, _) in begun.items():
                half = socket.create_connection(("127.0.0.1", port), timeout=20)
                halves[path] = stack.enter_context(half)
                text = json.dumps(body).encode()
                half.sendall(
                    f"POST {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n"
                    f"content-type: application/json\r\ncontent-length: {len(text)}\r\n\r\n"
                    f"{text[:9].decode()}".encode()
                )
            clients = [pool.submit(client, port) for _ in range(8)]
            time.sleep(1)
            process.send_signal(signal.SIGTERM)
            answers = [answer for one in clients for answer in one.result()]
            for path, (body, wanted) in begun.items():
                halves[path].sendall(json.dumps(body).encode()[9:])
                answer = b"".join(iter(partial(halves[path].recv, 1 << 16), b""))
                assert answer.startswith(b"HTTP/1.1 200 "), path
                assert wanted in answer, path
        assert answers
        assert all(status == 200 and answer["hits"] for status, answer in answers)
        assert process.wait(20) == 0
    assert Index(tmp_path / "index").find("zebra") is not None


@pytest.mark.slow
def test_idle_connections_are_closed(tmp_path: Path, bert: Path) -> None:
    """They are closed after ten seconds without a request, or with an incomplete head or body."""
    build_index(DOCUMENTS, tmp_path / "index")
    with running("index", "--model", bert, cwd=tmp_path) as (port, _):
        silent, slow, half = doors = [
            socket.create_connection(("127.0.0.1", port)) for _ in range(3)
        ]
        slow.sendall(b"POST /search HTTP/1.1\r\nhost: localhost\r\n")
        half.sendall(
            b"POST /search HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
            b"content-length: 100\r\n\r\n{"
        )
        begun = time.monotonic()
        for connection, max_seconds in ((silent, 15), (slow, 15), (half, 30)):
            connection.settimeout(40)
            while connection.recv(1000):
                pass
            assert time.monotonic() - begun < max_seconds
        for connection in doors:
            connection.close()
        assert ask(port, "POST", "/search", {"query": "birch"})[0] == 200


def test_the_key_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is read as that of a file is: white space around it is no part of it."""
    monkeypatch.setenv("BIRCHBARK_API_KEY", " s3cret\n")
    assert _read_key(None) == "s3cret"
    monkeypatch.setenv("BIRCHBARK_API_KEY", "\n")
    assert _read_key(None) is None
    monkeypatch.setenv("BIRCHBARK_API_KEY", "two words")
    with pytest.raises(InputError, match="BIRCHBARK_API_KEY: a key must be a single word"):
        _read_key(None)


def test_start_errors(tmp_path: Path, bert: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Errors are raised before the service listens."""
    monkeypatch.chdir(tmp_path)
    build_index(DOCUMENTS, tmp_path / "index")
    (tmp_path / "empty.key").write_text(" \n")
    (tmp_path / "odd.key").write_text("s3cret é")
    (tmp_path / "latin.key").write_bytes(b"s3cret\xe9")
    occupied = socket.create_server(("127.0.0.1", 0))
    for words, message in (
        (("nowhere",), "nowhere: no such index or folder"),
        (
            ("index", "--model", bert, "--port", str(occupied.getsockname()[1])),
            "cannot listen on this address",
        ),
        (("index", "--key-file", "empty.key"), "empty.key: contains no key"),
        (("index", "--key-file", "no.key"), "no.key: the key cannot be read: No such file"),
        (("index", "--key-file", "odd.key"), "odd.key: a key must be a single word"),
        (("index", "--key-file", "latin.key"), "latin.key: a key must be a single word"),
        (("index", "--host", "0.0.0.0", "--writable"), "could change documents"),
        (("index", "--insecure"), "--insecure has no effect without --writable"),
        (("index", "--allowed-host", "a.example:8000"), "expected HOST, without port or scheme"),
        (("index", "--allowed-host", "https://a.example"), "HOST, without port or scheme"),
        (("index", "--budget", "1m"), "not a time"),
        (("index", "--budget", "1h"), "not a time"),
        (("index", "--budget", "0s"), "a time of 0"),
        (("index", "--budget", "60s"), "the default budget exceeds the maximum time"),
        (("index", "--reports", "nowhere"), "nowhere: no such folder"),
        (("index", "--model", "none", "--set", "depth=3"), "depth has no effect with model none"),
        (("index", "--embedding", "nowhere"), "no such model"),
    ):
        result = CliRunner().invoke(group, ["serve", *map(str, words)])
        assert isinstance(result.exception, BirchbarkError)
        assert message in str(result.exception)
    occupied.close()


def test_the_readmes_command_works(tmp_path: Path) -> None:
    """It serves the notes of the README with the default model."""
    readme = (Path(__file__).parents[2] / "README.md").read_text()
    (arguments,) = re.findall(r"^    birchbark serve ([^#\n]+)", readme, re.M)
    notes = re.findall(r'^echo "(.+)" > (notes/\w+\.txt)$', readme, re.M)
    (tmp_path / "notes").mkdir()
    for text, name in notes:
        (tmp_path / name).write_text(text)
    folder = arguments.strip().replace("~/Documents", "notes")
    with running(folder, cwd=tmp_path) as (port, _):
        query = {"query": "how long do I have to return a parcel"}
        answer = ask(port, "POST", "/search", query)[1]
        assert answer["hits"][0]["doc_id"] == "returns.txt"
        best = max(answer["hits"][0]["segments"], key=lambda segment: segment["score"])
        shown = best["text"][slice(*best["sentence"])]
        assert shown == "Parcels can be sent back within thirty days."


def test_malicious_requests_are_refused(tmp_path: Path, bert: Path) -> None:
    """Ten million bytes, wrong lengths and paths to other files are sent as raw bytes."""
    build_index(DOCUMENTS, tmp_path / "index")
    (tmp_path / "secret.txt").write_text("s3cret")
    head = "host: localhost\r\ncontent-type: application/json\r\nconnection: close\r\n"

    def sent(first: str, *rest: bytes) -> bytes:
        with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
            connection.sendall(f"{first} HTTP/1.1\r\n{head}".encode())
            with suppress(ConnectionError):  # disconnected before everything was sent
                for one in rest or (b"\r\n",):
                    connection.sendall(one)
            answer = b""
            with suppress(ConnectionError):  # or with some of the answer unread
                while piece := connection.recv(1 << 16):
                    answer += piece
            return answer

    large = b'{"query": "' + b"x" * 10_000_000 + b'"}'
    token_ids = [b"%x\r\n%b\r\n" % (len(p), p) for p in (large[:5_000_000], large[5_000_000:])]
    with running("index", "--model", bert, "--reports", ".", cwd=tmp_path) as (port, _):
        for path in ("/search", "/search/stream", "/v2/rerank", "/attention", "/documents"):
            told = sent(f"POST {path}", b"content-length: %d\r\n\r\n" % len(large), large[:9])
            assert told.startswith(b"HTTP/1.1 413 "), path
        told = sent("POST /search", b"transfer-encoding: chunked\r\n\r\n", *token_ids, b"0\r\n\r\n")
        assert told.startswith(b"HTTP/1.1 413 ")
        for length in (b"-1", b"1e9", b"ten", b"9" * 400):
            told = sent("POST /search", b"content-length: " + length + b"\r\n\r\n{}")
            assert told[9:12] in (b"400", b"413"), length
        for path in (
            "/page/../../secret.txt", "/reports/../secret.txt", "/reports/..%2fsecret.txt",
            "/page/%2e%2e%2f%2e%2e%2fsecret.txt", "/documents/../secret.txt", "//secret.txt",
            "/documents/%2e%2e/secret.txt", "/reports/%00", "/../secret.txt", "/page//secret.txt",
            "http://localhost/secret.txt", "/documents//etc/passwd", "/page/..\\secret.txt",
        ):  # fmt: skip
            told = sent(f"GET {path}")
            assert told[9:12] in (b"400", b"404"), path
            assert b"s3cret" not in told
            assert b"root:" not in told
        assert ask(port, "POST", "/search", {"query": "birch"})[0] == 200


def test_threads_apply_to_every_model(
    tmp_path: Path, bert: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This includes the embedding of the page and the model of stored vectors."""
    build_index(DOCUMENTS, tmp_path / "index")
    opened: list[tuple[str, object]] = []

    def load(model: str, threads: int | None, *how: object) -> WordScorer:
        opened.append((model, threads))
        return WordScorer()

    def run(application: Any, *more: object) -> None:
        application.service.searcher.models.scorer("another")

    monkeypatch.setattr("birchbark.pipeline.loaded_models.load_scorer", load)
    monkeypatch.setattr("birchbark.serve.server.run", run)
    words = [
        "serve",
        str(tmp_path / "index"),
        "--model",
        str(bert),
        "--port",
        "0",
        "--threads",
        "1",
    ]
    result = CliRunner().invoke(group, words, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    assert {model for model, _ in opened} > {str(bert), "another"}
    assert {threads for _, threads in opened} == {1}
