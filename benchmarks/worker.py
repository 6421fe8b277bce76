"""What does one engine cost in a process of its own? Requests and answers are lines of JSON.

Run as `python -m benchmarks.worker ENGINE`; ENGINE is also `read` (the JSONL file alone) or
`read_collection` (by birchbark's own reader). The parent has pinned it to one core.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from benchmarks.engines import ENGINES, Engine, Opened

KINDS = ("five", "weighted")


def main() -> None:
    """Answer the requests on standard input until it ends."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever an engine prints is no answer
    name = sys.argv[1]
    handlers = _readers(name) if name.startswith("read") else Measured(ENGINES[name]).handlers()
    for line in sys.stdin:
        request = json.loads(line)
        answer = handlers[request.pop("do")](**request)
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


def pairs(text: Path) -> Iterator[tuple[str, str]]:
    """(id, text) of each line of the JSONL file: how every engine is fed."""
    with text.open("rb") as lines:
        for line in lines:
            values = json.loads(line)
            yield values["id"], values["text"]


def memory() -> dict[str, float]:
    """Resident megabytes of this process: now (anonymous, of files, together) and at most."""
    wanted = ("VmRSS", "RssAnon", "RssFile", "VmHWM")
    lines = (line.split(":") for line in Path("/proc/self/status").read_text().splitlines())
    return {name: int(value.split()[0]) * 1024 / 1e6 for name, value in lines if name in wanted}


def _readers(name: str) -> dict[str, Callable[..., Any]]:
    def read(text: str) -> dict[str, Any]:
        start = time.perf_counter()
        documents = sum(1 for _ in pairs(Path(text)))
        return {"seconds": time.perf_counter() - start, "documents": documents}

    def read_collection(text: str) -> dict[str, Any]:
        from birchbark.collection import documents as collection
        from birchbark.collection.intake import Intake

        start = time.perf_counter()
        documents = sum(1 for _ in collection.read_collection(text, Intake()))
        return {"seconds": time.perf_counter() - start, "documents": documents}

    return {"read": read if name == "read" else read_collection}


class Measured:
    """An engine with the index it has opened."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._opened: Opened
        self._queries: dict[str, list[dict[str, float]]] = {}

    def handlers(self) -> dict[str, Callable[..., Any]]:
        """Request → what answers it."""
        return {
            "build": self.build,
            "open": self.open,
            "first": self.first,
            "round": self.round,
            "memory": memory,
        }

    def build(self, text: str, directory: str, limit: int | None = None) -> dict[str, Any]:
        """Seconds and peak memory; imports are not counted. limit: of documents."""
        self._engine.load()
        before = memory()
        start = time.perf_counter()
        facts = self._engine.build(Path(directory), islice(pairs(Path(text)), limit))
        seconds = time.perf_counter() - start
        return {"seconds": seconds, "before": before, "after": memory(), "facts": facts}

    def open(self, directory: str, queries: str) -> dict[str, Any]:
        """Milliseconds to open, and memory before and after."""
        start = time.perf_counter()
        self._engine.load()
        imported = time.perf_counter()
        before = memory()
        begin = time.perf_counter()
        self._opened = self._engine.open(Path(directory))
        seconds = time.perf_counter() - begin
        after = memory()
        self._take(json.loads(Path(queries).read_text()))
        return {
            "import_ms": 1e3 * (imported - start),
            "open_ms": 1e3 * seconds,
            "before": before,
            "after": after,
        }

    def first(self) -> float:
        """Milliseconds of this process's first query: compiled code is loaded or made here."""
        return self._time(self._engine.searches[0], self._queries["five"][0], 1000)

    def round(self, kind: str, search: str, k: int) -> dict[str, Any]:
        """Milliseconds of each query, in order, and how many hits all had together."""
        run = self._opened.searches[search]
        times, hits = [], 0
        for weights in self._queries[kind]:
            start = time.perf_counter()
            found = run(weights, k)
            times.append(1e3 * (time.perf_counter() - start))
            hits += len(found)
        return {"ms": times, "hits": hits}

    def _time(self, search: str, weights: dict[str, float], k: int) -> float:
        start = time.perf_counter()
        self._opened.searches[search](weights, k)
        return 1e3 * (time.perf_counter() - start)

    def _take(self, queries: list[dict[str, dict[str, float]]]) -> None:
        """The queries' words through the engine's own analysis; not timed."""
        self._queries = {kind: [self._terms(q[kind]) for q in queries] for kind in KINDS}

    def _terms(self, words: dict[str, float]) -> dict[str, float]:
        terms: dict[str, float] = {}
        for word, weight in words.items():
            for term in self._opened.analyse(word):
                terms[term] = terms.get(term, 0.0) + weight
        return terms


if __name__ == "__main__":
    main()
