"""What does an engine cost in time and memory, measured in a separate process?

Run as `python -m benchmarks.worker ENGINE`; ENGINE may also be `read` (only reads the JSONL file)
or `read_collection` (with birchbark's own reader). The parent has pinned the process to one core.
Requests and answers are lines of JSON.
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

from benchmarks.engines import ENGINES, Engine, OpenIndex

KINDS = ("five", "weighted")


def main() -> None:
    """Answer the requests on standard input until it ends."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # so that output of an engine is not taken for an answer
    name = sys.argv[1]
    handlers = _readers(name) if name.startswith("read") else EngineWorker(ENGINES[name]).handlers()
    for line in sys.stdin:
        request = json.loads(line)
        answer = handlers[request.pop("do")](**request)
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


def pairs(text: Path) -> Iterator[tuple[str, str]]:
    """Yield (id, text) of each line of the JSONL file, the input of every engine."""
    with text.open("rb") as lines:
        for line in lines:
            values = json.loads(line)
            yield values["id"], values["text"]


def memory() -> dict[str, float]:
    """Return the resident megabytes of this process: total, anonymous, of files, and peak."""
    names = ("VmRSS", "RssAnon", "RssFile", "VmHWM")
    lines = (line.split(":") for line in Path("/proc/self/status").read_text().splitlines())
    return {name: int(value.split()[0]) * 1024 / 1e6 for name, value in lines if name in names}


def _readers(name: str) -> dict[str, Callable[..., Any]]:
    def read(text: str) -> dict[str, Any]:
        start = time.perf_counter()
        documents = sum(1 for _ in pairs(Path(text)))
        return {"seconds": time.perf_counter() - start, "documents": documents}

    def read_collection(text: str) -> dict[str, Any]:
        from birchbark.collection import documents as collection
        from birchbark.collection.parsing.intake import Intake

        start = time.perf_counter()
        documents = sum(1 for _ in collection.read_collection(text, Intake()))
        return {"seconds": time.perf_counter() - start, "documents": documents}

    return {"read": read if name == "read" else read_collection}


class EngineWorker:
    """An engine with its open index."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._opened: OpenIndex
        self._queries: dict[str, list[dict[str, float]]] = {}

    def handlers(self) -> dict[str, Callable[..., Any]]:
        """Return request → method."""
        return {
            "build": self.build,
            "open": self.open,
            "first": self.first,
            "round": self.round,
            "memory": memory,
        }

    def build(self, text: str, directory: str, limit: int | None = None) -> dict[str, Any]:
        """Build; return seconds, imports not included, and memory. limit: number of documents."""
        self._engine.load()
        before = memory()
        start = time.perf_counter()
        facts = self._engine.build(Path(directory), islice(pairs(Path(text)), limit))
        seconds = time.perf_counter() - start
        return {"seconds": seconds, "before": before, "after": memory(), "facts": facts}

    def open(self, directory: str, queries: str) -> dict[str, Any]:
        """Open; return milliseconds, and memory before and after."""
        start = time.perf_counter()
        self._engine.load()
        imported = time.perf_counter()
        before = memory()
        begin = time.perf_counter()
        self._opened = self._engine.open(Path(directory))
        seconds = time.perf_counter() - begin
        after = memory()
        self._load_queries(json.loads(Path(queries).read_text()))
        return {
            "import_ms": 1e3 * (imported - start),
            "open_ms": 1e3 * seconds,
            "before": before,
            "after": after,
        }

    def first(self) -> float:
        """Return milliseconds of the first query, which loads or compiles code."""
        return self._time(self._engine.searches[0], self._queries["five"][0], 1000)

    def round(self, kind: str, search: str, k: int) -> dict[str, Any]:
        """Return the milliseconds of each query, in order, and the total number of hits."""
        run = self._opened.searches[search]
        times, hits = [], 0
        for weights in self._queries[kind]:
            start = time.perf_counter()
            result = run(weights, k)
            times.append(1e3 * (time.perf_counter() - start))
            hits += len(result)
        return {"ms": times, "hits": hits}

    def _time(self, search: str, weights: dict[str, float], k: int) -> float:
        start = time.perf_counter()
        self._opened.searches[search](weights, k)
        return 1e3 * (time.perf_counter() - start)

    def _load_queries(self, queries: list[dict[str, dict[str, float]]]) -> None:
        """Analyze the words of the queries with the engine; not timed."""
        self._queries = {kind: [self._terms(q[kind]) for q in queries] for kind in KINDS}

    def _terms(self, words: dict[str, float]) -> dict[str, float]:
        terms: dict[str, float] = {}
        for word, weight in words.items():
            for term in self._opened.analyse(word):
                terms[term] = terms.get(term, 0.0) + weight
        return terms


if __name__ == "__main__":
    main()
