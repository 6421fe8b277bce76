"""How do birchbark serve and a simple service respond to fifty concurrent clients?

    python -m benchmarks.serving --output benchmarks/RESULTS-SERVING.md

The documentation of this Python's standard library is indexed. Each client sends a query, waits for
the answer, and sends the next: first immediately, which overloads two processors, then after a
pause like a user's (`--pause`, ± 50 %). Then a single client with a budget of a minute has all
candidates re-ranked. Queries are words of documents, and each is sent once, so that no cache helps.
The simple service (serving_peer.py) is FastAPI with sentence-transformers' CrossEncoder, with the
same model, BM25 candidates and sentences. It has no budget; a client gives up after a minute.
Clients run on the same processors.
"""

from __future__ import annotations

import asyncio
import json
import os
import platform
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click
import numpy as np

from birchbark import Index, build_index, defaults
from birchbark.collection.documents import read_collection
from birchbark.collection.parsing.intake import Intake

WORDS, STEP = 8, 3  # words of a query; words from one query to the next
PATIENCE = 60.0  # seconds until a client gives up
SAMPLE = 5.0  # seconds between two measurements of memory


@dataclass(slots=True)
class Observations:
    """Observations of one service's clients.

    seconds: time per answer. by_model: answers for which a model scored documents, or compared
    their stored vectors. read: answers for which the first model scored documents; scored: how
    many documents in total. memory: MB over time.
    """

    seconds: list[float] = field(default_factory=list)
    exact: int = 0
    by_model: int = 0
    scored: int = 0
    read: int = 0
    refused: int = 0
    errors: int = 0
    memory: list[float] = field(default_factory=list)

    def row(self, name: str, load: Load, budget: float) -> str:
        """Format a row of the table. budget: milliseconds."""
        answers, half = len(self.seconds), len(self.memory) // 2
        cells = [name, str(load.clients), f"{load.pause:g}", f"{answers / load.seconds:.1f}"]
        if answers:
            milliseconds = np.array(self.seconds) * 1000
            cells += [f"{value:.0f}" for value in np.percentile(milliseconds, (50, 95, 100))]
            cells += [f"{np.mean(milliseconds > budget):.1%}", f"{self.exact / answers:.1%}"]
            cells += [f"{self.by_model / answers:.1%}", f"{self.read / answers:.1%}"]
            cells.append(f"{self.scored / max(1, self.read):.0f}")
        else:
            cells += ["–"] * 8
        cells += [str(self.refused), str(self.errors)]
        cells.append(f"{max(self.memory[:half]):.0f} → {max(self.memory[half:]):.0f}")
        return f"| {' | '.join(cells)} |"


@click.command()
@click.option("--clients", default=50, show_default=True)
@click.option("--seconds", default=120.0, show_default=True, help="Duration for each service.")
@click.option(
    "--budget", default=500, show_default=True, help="Time budget of a search, in milliseconds."
)
@click.option(
    "--pause",
    default=10.0,
    show_default=True,
    help="Mean pause between answer and next query, in seconds.",
)
@click.option("--output", type=click.Path(path_type=Path), help="Markdown.  [default: stdout]")
def main(clients: int, seconds: float, budget: int, pause: float, output: Path | None) -> None:
    """Measure birchbark serve, then the simple service if sentence-transformers is installed."""
    rows = []
    with tempfile.TemporaryDirectory(prefix="birchbark-serving-") as folder:
        directory = Path(folder) / "index"
        index = build_index(read_collection("pydocs", Intake()), directory)
        ours = [sys.executable, "-m", "birchbark", "serve", str(directory), "--port", "0"]
        ours += ["--max-time", f"{PATIENCE:g}s"]
        texts = queries(index)
        for name, command, options in services(ours, directory, budget):
            unhurried = {**options, "budget_ms": PATIENCE * 1000} if options else options
            for load, request in (
                (Load(texts, clients, seconds), options),
                (Load(texts, clients, seconds, pause), options),
                (Load(texts, 1, seconds), unhurried),
            ):
                with run_service(command) as (port, process):
                    observations = asyncio.run(load.run(port, process, request))
                rows.append(observations.row(name, load, budget))
                click.echo(rows[-1], err=True)
    text = report(rows, clients, seconds, budget)
    if output:
        output.write_text(text, "utf-8")
    else:
        click.echo(text, nl=False)


def services(
    ours: Sequence[str], directory: Path, budget: int
) -> Iterator[tuple[str, list[str], dict[str, object]]]:
    """Yield the name, the command and the additional request fields of each service."""
    options: dict[str, object] = {"budget_ms": budget}
    yield "birchbark serve, no stored vectors", [*ours, "--no-background-vectors"], options
    attach = [sys.executable, "-m", "birchbark", "index", "attach", str(directory)]
    subprocess.run(attach, check=True)
    yield "the same with stored vectors", list(ours), options
    alone = [*ours, "--model", defaults.EMBEDDING]
    yield "stored vectors, embedding alone", alone, options
    if find_spec("sentence_transformers"):
        peer = [sys.executable, "-m", "benchmarks.serving_peer", str(directory)]
        yield "FastAPI + CrossEncoder", peer, {}


def queries(index: Index) -> list[str]:
    """Return distinct runs of WORDS words from all texts, shuffled with a fixed seed."""
    texts = (re.findall(r"\w+", document.text) for document in index)
    runs = (" ".join(t[at : at + WORDS]) for t in texts for at in range(0, len(t), STEP))
    shuffled = list(dict.fromkeys(runs))
    random.Random(0).shuffle(shuffled)
    return shuffled


@contextmanager
def run_service(command: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Start a service, yield its port and process id when it listens, and stop it afterwards."""
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr
        for line in process.stderr:
            if match := re.search(r"http://127\.0\.0\.1:(\d+)", line):
                yield int(match[1]), process.pid
                return
        raise click.ClickException(f"{command} did not start to listen")
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:  # still busy with requests that clients have abandoned
            process.kill()
            process.wait(10)


@dataclass(slots=True)
class Load:
    """Concurrent clients. pause: mean seconds between an answer and the next query."""

    queries: Sequence[str]
    clients: int
    seconds: float
    pause: float = 0.0

    async def run(self, port: int, process: int, options: dict[str, Any]) -> Observations:
        """Run all clients; three requests that warm up the service are not counted."""
        observations, queries = Observations(), iter(self.queries)
        for _ in range(3):
            await _search(port, {"query": next(queries), **options})
        end = time.monotonic() + self.seconds
        rng = random.Random(1)

        async def client() -> None:
            await asyncio.sleep(self.pause * rng.random())
            while time.monotonic() < end:
                await self._send(port, {"query": next(queries), **options}, observations)
                await asyncio.sleep(self.pause * (0.5 + rng.random()))

        async def watch() -> None:
            while time.monotonic() < end:
                observations.memory.append(_memory(process))
                await asyncio.sleep(SAMPLE)

        await asyncio.gather(watch(), *(client() for _ in range(self.clients)))
        return observations

    async def _send(
        self, port: int, request: dict[str, object], observations: Observations
    ) -> None:
        started = time.monotonic()
        try:
            status, answer = await asyncio.wait_for(_search(port, request), PATIENCE)
        except (OSError, ValueError, TimeoutError, asyncio.IncompleteReadError):
            observations.errors += 1
            return
        if status == 503:
            observations.refused += 1
            await asyncio.sleep(1)  # as Retry-After says
        elif status != 200:
            observations.errors += 1
        else:
            observations.seconds.append(time.monotonic() - started)
            observations.exact += bool(answer.get("exact"))
            observations.by_model += bool(answer["scored"] or answer.get("by_vectors"))
            observations.scored += answer["scored"]
            observations.read += answer["scored"] > 0


async def _search(port: int, request: dict[str, object]) -> tuple[int, dict[str, Any]]:
    """Send a request on a new connection; return the status and JSON of the answer."""
    body = json.dumps(request).encode()
    head = "POST /search HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    head += f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(head.encode() + body)
        await writer.drain()
        response = await reader.read()
    finally:
        writer.close()
    head_bytes, _, content = response.partition(b"\r\n\r\n")
    return int(head_bytes.split()[1]), json.loads(content)


def _memory(process: int) -> float:
    """Return the resident memory of a process in MB."""
    status = Path(f"/proc/{process}/status").read_text()
    match = re.search(r"VmRSS:\s+(\d+) kB", status)
    return int(match[1]) / 1024 if match else 0.0


def report(rows: Sequence[str], clients: int, seconds: float, budget: int) -> str:
    """Return the report in Markdown."""
    processors = len(os.sched_getaffinity(0))
    machine = (
        f"{processors} processors, shared with the clients; Python {platform.python_version()}"
    )
    lines = [
        "# Serving, measured by `python -m benchmarks.serving`",
        "",
        f"{clients} clients for {seconds:g} s each, with a budget of {budget} ms and a pause after "
        f"each answer (mean, 0 for none); then a single client with a budget of a minute. "
        f"{machine}. Late: answers after more than {budget} ms. Exact: equal to the "
        "answer without a deadline. By a model: ranked by the cross-encoder, or at least by the "
        "embedding. Main scorer: answers for which the main scorer (by default the "
        "cross-encoder) scored documents; documents: the mean number of "
        "these. Errors: no answer within a minute, or an invalid one. Memory: the maximum in the "
        "first and in the second half.",
        "",
        "| service | clients | pause s | answers/s | p50 ms | p95 ms | slowest ms | late | exact "
        "| by a model | main scorer | documents | refused | errors | memory MB |",
        "| --- " * 15 + "|",
        *rows,
        "",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
