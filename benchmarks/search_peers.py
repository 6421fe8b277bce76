"""How long do sentence-transformers and FlashRank take for the same candidates?

Both read the first 512 tokens of each document with the same weights, a copy of the default model
in float32. They run in an environment of their own, one process at a time (score_worker.py).
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.children import ROOT, Child, say
from benchmarks.rounds import quantiles
from benchmarks.score_engines import BASE
from benchmarks.score_model import PLAIN, QUANTISED
from benchmarks.search_collections import Prepared
from benchmarks.search_times import FEWEST
from birchbark import FirstStage, Index, defaults
from birchbark.checkpoint.locate import locate
from birchbark.checkpoint.quantize import model_copy

Figures = dict[str, Any]
PEERS = (BASE, "FlashRank")
LIST = """
import json
from benchmarks.score_engines import SCORE_ENGINES as engines
print(json.dumps({name: engine.version for name, engine in engines.items() if engine.installed}))
"""


def measure_peers(
    prepared: Prepared, query_ids: Sequence[str], python: str, folder: Path, seconds: float
) -> Figures:
    """Return engine → times and version, the scores of the first query included.

    python: the interpreter of the peers' environment. seconds: the time after which no further
    query starts, unless fewer than FEWEST did.
    """
    folder.mkdir(parents=True, exist_ok=True)
    requests = _write_requests(prepared, query_ids, folder / "requests.json")
    installed = json.loads(_run(python, "-c", LIST))
    model = _export(folder / "model", python, "FlashRank" in installed)
    cores = ",".join(map(str, sorted(os.sched_getaffinity(0))))
    figures: Figures = {}
    for name in PEERS:
        if name in installed:
            say(f"peers: {name}")
            arguments = (name, str(model), str(requests), cores)
            child = Child(*arguments, module="score_worker", python=python)
            times = _measure(child, query_ids, seconds)
            figures[name] = times | {"version": installed[name]}
    return figures


def _measure(child: Child, query_ids: Sequence[str], seconds: float) -> Figures:
    child.ask(kind=query_ids[0])  # warms up
    times: list[float] = []
    scores: dict[str, list[float]] = {}
    for query_id in query_ids:
        if len(times) >= FEWEST and sum(times) > 1000 * seconds:
            break
        answer = child.ask(kind=query_id)
        times.append(1000 * answer["seconds"])
        scores[query_id] = answer["scores"]
    child.end()
    return {**quantiles(times), "queries": len(times), "scores": scores}


def _write_requests(prepared: Prepared, query_ids: Sequence[str], path: Path) -> Path:
    """Write the texts of each query's candidates; every query is a workload of its own."""
    index, run = Index(prepared.plain), prepared.run(FirstStage())
    texts = {query.query_id: query.text for query in prepared.queries}
    requests = {}
    for query_id in query_ids:
        documents = index.documents(run.rankings[query_id].doc_ids)
        requests[query_id] = [[texts[query_id], [document.contents for document in documents]]]
    path.write_text(json.dumps(requests))
    return path


def _export(model: Path, python: str, plain: bool) -> Path:
    """Write the default model in float32 and, if `plain`, torch's export of it, for FlashRank."""
    with model_copy(locate(defaults.MODEL), model, replace=True):
        pass  # weights in 8 bits are widened
    for name in (PLAIN, QUANTISED):
        (model / name).unlink(missing_ok=True)
    if plain:
        say("peers: exporting")
        _run(python, "-m", "benchmarks.score_model", str(model))
    return model


def _run(*command: str) -> str:
    """Run a command in the root of the repository, and return its output."""
    done = subprocess.run(command, check=True, cwd=ROOT, capture_output=True, text=True)
    return done.stdout
