"""What do tests of the service share? An index, a scorer that counts words, and clients."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from birchbark.index.build_index import Schema, build_index
from birchbark.pipeline.searcher import Searcher
from birchbark.pipeline.settings.ranker import Ranker
from birchbark.serve.app import application
from birchbark.serve.limits import Limits
from birchbark.serve.service import Service
from conftest import DOCUMENTS, WordScorer, write_bert

Client = Callable[..., TestClient]


@pytest.fixture
def index_directory(tmp_path: Path) -> Path:
    """An index with a field to filter by and an id that is a path."""
    kinds = {"canoe": "water", "bridge": "water"}
    documents = [
        replace(d, fields={**d.fields, "kind": kinds.get(d.doc_id, "land")}) for d in DOCUMENTS
    ]
    documents[-1] = replace(documents[-1], doc_id="woods/forest.txt")
    build_index(documents, tmp_path / "index", Schema(keywords=("kind",)))
    return tmp_path / "index"


@pytest.fixture
def client(index_directory: Path) -> Iterator[Client]:
    """Returns a function that creates a client of a service with a ranker or a tiny BERT."""
    with ExitStack() as stack:

        def make(
            ranker: Any = None,
            limits: Limits | None = None,
            *,
            bert: bool = False,
            writable: bool = False,
            raises: bool = True,
            **application_choices: Any,
        ) -> TestClient:
            count = len(list(index_directory.parent.iterdir()))
            model = Ranker(WordScorer()) if ranker is None else ranker
            if bert:
                model = write_bert(index_directory.parent / f"bert-{count}", labels=1)
            embedding = write_bert(index_directory.parent / f"embedding-{count}")
            service = Service(
                Searcher(index_directory, model),
                str(embedding),
                limits or Limits(budget=20),
                writable=writable,
            )
            app = application(service, **application_choices)
            return stack.enter_context(TestClient(app, raise_server_exceptions=raises))

        yield make


def send(port: int, method: str, path: str, body: Any = None) -> tuple[int, bytes]:
    """Return status and body of a request over a connection of its own."""
    with closing(HTTPConnection("127.0.0.1", port, timeout=20)) as connection:
        head = {"content-type": "application/json"}
        connection.request(method, path, None if body is None else json.dumps(body), head)
        answer = connection.getresponse()
        return answer.status, answer.read()


def wait_until_ready(port: int) -> None:
    """Wait until a service has documents to search."""
    end = time.monotonic() + 60
    while send(port, "GET", "/readyz")[0] != 200:
        assert time.monotonic() < end, "the service is not ready"
        time.sleep(0.05)


@contextmanager
def running(
    *words: str | Path,
    cwd: Path,
    python: str | Path = sys.executable,
    verb: Sequence[str] = ("serve",),
) -> Iterator[tuple[int, subprocess.Popen[str]]]:
    """Yield port and process of `birchbark serve` once it is ready. verb: the command instead."""
    command = [python, "-m", "birchbark", *verb, "--port", "0", *map(str, words)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=cwd)
    try:
        assert process.stderr
        output = []
        for line in process.stderr:
            output.append(line)
            if match := re.search(r"http://[^:]+:(\d+)/", line):
                wait_until_ready(int(match[1]))
                yield int(match[1]), process
                break
        else:
            pytest.fail("".join(output))
    finally:
        process.kill()
        process.wait(20)
        process.stderr.close()
