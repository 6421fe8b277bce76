"""What do fifty people get who all search at once, of birchbark serve and of a plain service?

    python -m benchmarks.serving --output benchmarks/RESULTS-SERVING.md

The documentation in this Python's standard library is indexed. Each client asks, waits for the
answer, and asks again: at once, which is more than any two processors can read for, and then as
people do, who look at what they were given for some seconds (`--pause`, half as long to half as
long again). Then one client alone asks for all that can be read, without a budget. Queries are
words of documents, and none is asked twice, so that nothing is remembered. The plain service
(serving_peer.py) is FastAPI with sentence-transformers' CrossEncoder: the same model, the same BM25
candidates, the same sentences. It has no budget; a client gives up after a minute. Clients run on
the same processors.
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

from birchbark import Index, build_index
from birchbark.checkpoint.named import EMBEDDING_MODEL
from birchbark.collection.documents import read_collection
from birchbark.collection.intake import Intake

WORDS, STEP = 8, 3  # of a query; from one to the next
PATIENCE = 60.0  # seconds
SAMPLE = 5.0  # seconds between two looks at a process's memory


@dataclass(slots=True)
class Told:
    """What the clients of one service saw. seconds: of each answer; memory: MB, as time went by."""

    seconds: list[float] = field(default_factory=list)
    exact: int = 0
    settled: int = 0
    read: int = 0
    refused: int = 0
    errors: int = 0
    memory: list[float] = field(default_factory=list)

    def row(self, name: str, load: Load, budget: float) -> str:
        """A row of the table. budget: milliseconds."""
        answers, half = len(self.seconds), len(self.memory) // 2
        cells = [name, str(load.clients), f"{load.pause:g}", f"{answers / load.seconds:.1f}"]
        if answers:
            milliseconds = np.array(self.seconds) * 1000
            cells += [f"{one:.0f}" for one in np.percentile(milliseconds, (50, 95, 100))]
            cells += [f"{np.mean(milliseconds > budget):.1%}", f"{self.exact / answers:.1%}"]
            cells += [f"{self.read / answers:.1%}", f"{self.settled / max(1, self.read):.0f}"]
        else:
            cells += ["–"] * 7
        cells += [str(self.refused), str(self.errors)]
        cells.append(f"{max(self.memory[:half]):.0f} → {max(self.memory[half:]):.0f}")
        return f"| {' | '.join(cells)} |"


@click.command()
@click.option("--clients", default=50, show_default=True)
@click.option("--seconds", default=120.0, show_default=True, help="For each service.")
@click.option("--budget", default=500, show_default=True, help="Milliseconds of a search.")
@click.option("--pause", default=10.0, show_default=True, help="Seconds, where clients pause.")
@click.option("--output", type=click.Path(path_type=Path), help="Markdown.  [default: stdout]")
def main(clients: int, seconds: float, budget: int, pause: float, output: Path | None) -> None:
    """Ask birchbark serve, then the plain service, where sentence-transformers is installed."""
    rows = []
    with tempfile.TemporaryDirectory(prefix="birchbark-serving-") as folder:
        place = Path(folder) / "index"
        index = build_index(read_collection("pydocs", Intake()), place)
        ours = [sys.executable, "-m", "birchbark", "serve", str(place), "--port", "0"]
        ours += ["--longest", f"{PATIENCE:g}s"]
        words = queries(index)
        for name, command, asked in services(ours, place, budget):
            loads = (Load(words, clients, seconds), Load(words, clients, seconds, pause))
            alone = {**asked, "budget_ms": PATIENCE * 1000} if asked else asked
            for load, more in (*((one, asked) for one in loads), (Load(words, 1, seconds), alone)):
                with served(command) as (port, process):
                    told = asyncio.run(load.run(port, process, more))
                rows.append(told.row(name, load, budget))
                click.echo(rows[-1], err=True)
    text = report(rows, clients, seconds, budget)
    if output:
        output.write_text(text, "utf-8")
    else:
        click.echo(text, nl=False)


def services(
    ours: Sequence[str], place: Path, budget: int
) -> Iterator[tuple[str, list[str], dict[str, object]]]:
    """Name, command and further words of a request."""
    hurried: dict[str, object] = {"budget_ms": budget}
    yield "birchbark serve", list(ours), hurried
    yield "the same in int8", [*ours, "--precision", "int8"], hurried
    attach = ["index", "attach", str(place), "--vectors", EMBEDDING_MODEL]
    subprocess.run([sys.executable, "-m", "birchbark", *attach], check=True)
    by_vectors = [*ours, "--model", EMBEDDING_MODEL]
    yield "the same by kept vectors", by_vectors, hurried
    if find_spec("sentence_transformers"):
        peer = [sys.executable, "-m", "benchmarks.serving_peer", str(place)]
        yield "FastAPI + CrossEncoder", peer, {}


def queries(index: Index) -> list[str]:
    """A few words in a row out of all texts, each once, in an order that looks like chance."""
    texts = (re.findall(r"\w+", one.text) for one in index)
    pieces = (" ".join(t[at : at + WORDS]) for t in texts for at in range(0, len(t), STEP))
    found = list(dict.fromkeys(pieces))
    random.Random(0).shuffle(found)
    return found


@contextmanager
def served(command: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Port and process number of a service that has begun to listen; it is stopped afterwards."""
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr
        for line in process.stderr:
            if found := re.search(r"http://127\.0\.0\.1:(\d+)", line):
                yield int(found[1]), process.pid
                return
        raise click.ClickException(f"{command} did not begin to listen")
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:  # it works on what nobody waits for any more
            process.kill()
            process.wait(10)


@dataclass(slots=True)
class Load:
    """So many clients, for so long. pause: seconds between an answer and the next query."""

    queries: Sequence[str]
    clients: int
    seconds: float
    pause: float = 0.0

    async def run(self, port: int, process: int, asked: dict[str, Any]) -> Told:
        """All of them at once; the first requests of a service are not counted."""
        told, waiting = Told(), iter(self.queries)
        for _ in range(3):
            await _ask(port, {"query": next(waiting), **asked})
        end = time.monotonic() + self.seconds
        chance = random.Random(1)

        async def client() -> None:
            await asyncio.sleep(self.pause * chance.random())
            while time.monotonic() < end:
                await self._once(port, {"query": next(waiting), **asked}, told)
                await asyncio.sleep(self.pause * (0.5 + chance.random()))

        async def watch() -> None:
            while time.monotonic() < end:
                told.memory.append(_memory(process))
                await asyncio.sleep(SAMPLE)

        await asyncio.gather(watch(), *(client() for _ in range(self.clients)))
        return told

    async def _once(self, port: int, request: dict[str, object], told: Told) -> None:
        begun = time.monotonic()
        try:
            status, answer = await asyncio.wait_for(_ask(port, request), PATIENCE)
        except (OSError, ValueError, TimeoutError, asyncio.IncompleteReadError):
            told.errors += 1
            return
        if status == 503:
            told.refused += 1
            await asyncio.sleep(1)  # as Retry-After says
        elif status != 200:
            told.errors += 1
        else:
            told.seconds.append(time.monotonic() - begun)
            told.exact += bool(answer.get("exact"))
            told.settled += answer["settled"]
            told.read += answer["settled"] > 0


async def _ask(port: int, request: dict[str, object]) -> tuple[int, dict[str, Any]]:
    """Status and JSON of an answer, by a connection of its own."""
    body = json.dumps(request).encode()
    head = "POST /search HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    head += f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(head.encode() + body)
        await writer.drain()
        whole = await reader.read()
    finally:
        writer.close()
    first, _, rest = whole.partition(b"\r\n\r\n")
    return int(first.split()[1]), json.loads(rest)


def _memory(process: int) -> float:
    """Resident MB."""
    status = Path(f"/proc/{process}/status").read_text()
    found = re.search(r"VmRSS:\s+(\d+) kB", status)
    return int(found[1]) / 1024 if found else 0.0


def report(rows: Sequence[str], clients: int, seconds: float, budget: int) -> str:
    """The table, and where it was measured."""
    processors = len(os.sched_getaffinity(0))
    where = f"{processors} processors, shared with the clients; Python {platform.python_version()}"
    lines = [
        "# Serving, as measured by `python -m benchmarks.serving`",
        "",
        f"{clients} clients for {seconds:g} s each, who pause after an answer for so many seconds "
        f"on average, 0 for not at all, and ask with a budget of {budget} ms; then one without. "
        f"{where}. Late: answers after more than {budget} ms. Exact: those of reading all 100 "
        "candidates. By model: answers that the model had a part in, and how many documents it "
        "read for each. Errors: no answer within a minute, or a wrong one. Memory: the most, in "
        "the first and in the second half.",
        "",
        "| service | clients | pause s | answers/s | p50 ms | p95 ms | slowest ms | late | exact "
        "| by model | read | refused | errors | memory MB |",
        "| --- " * 14 + "|",
        *rows,
        "",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
