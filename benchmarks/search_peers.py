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

import numpy as np
from numpy.typing import NDArray

from benchmarks.children import ROOT, Child, say
from benchmarks.rounds import quantiles
from benchmarks.score_engines import BASE
from benchmarks.score_model import PLAIN, QUANTISED
from benchmarks.search_collections import Prepared
from benchmarks.search_first_tokens import score_first_tokens
from benchmarks.search_rows import Vectors
from benchmarks.search_times import FEWEST
from birchbark import Index, Query, Run, defaults
from birchbark.checkpoint.heads import HEAD_KEY
from birchbark.checkpoint.json_files import read_object
from birchbark.checkpoint.locate import locate
from birchbark.checkpoint.quantize import model_copy
from birchbark.checkpoint.score_scale import ScoreScale, read_scale
from birchbark.records import Float32s

Figures = dict[str, Any]
PEERS = (BASE, "FlashRank")
LIST = """
import json
from benchmarks.score_engines import SCORE_ENGINES as engines
print(json.dumps({name: engine.version for name, engine in engines.items() if engine.installed}))
"""


def measure_peers(prepared: Prepared, python: str, cache: Path, seconds: float) -> Figures:
    """Return engine → version, times, and the largest difference from a score of Birchbark.

    python: the interpreter of the peers' environment. seconds: the time after which no further
    query starts, unless fewer than FEWEST did.
    """
    folder = cache / "peers"
    folder.mkdir(parents=True, exist_ok=True)
    candidates = prepared.candidates()
    requests = _write_requests(prepared, candidates, folder / "requests.json")
    installed = json.loads(_run(python, "-c", LIST))
    model = _export(folder / "model", python, "FlashRank" in installed)
    cores = ",".join(map(str, sorted(os.sched_getaffinity(0))))
    figures: Figures = {}
    for name in PEERS:
        if name in installed:
            say(f"peers: {name}")
            arguments = (name, str(model), str(requests), cores)
            child = Child(*arguments, module="score_worker", python=python)
            figures[name], scores = _measure(child, prepared.queries, seconds)
            timed = prepared.queries[: len(scores)]
            ours = score_first_tokens(prepared, candidates, timed, folder / "scores")
            gaps = [
                np.abs(_without_scale(of_query) - scores[query.query_id]).max()
                for query, of_query in ours
            ]
            figures[name] |= {"version": installed[name], "difference": float(max(gaps))}
    return figures


def _without_scale(scores: Float32s) -> NDArray[np.float64]:
    """Return the scores as peers compute them, who do not know the model's scale."""
    config = locate(defaults.MODEL) / "config.json"
    scale = read_scale(read_object(config)[HEAD_KEY], str(config))
    return ScoreScale().probabilities(scale.log_odds(scores))


def _measure(
    child: Child, queries: Sequence[Query], seconds: float
) -> tuple[Figures, dict[str, list[float]]]:
    """Return the times, and query_id → the scores of its candidates, in their order."""
    child.ask(kind=queries[0].query_id)  # warms up
    times: list[float] = []
    scores: dict[str, list[float]] = {}
    for query in queries:
        if len(times) >= FEWEST and sum(times) > 1000 * seconds:
            break
        answer = child.ask(kind=query.query_id)
        times.append(1000 * answer["seconds"])
        scores[query.query_id] = answer["scores"]
    child.end()
    return {**quantiles(times), "queries": len(times)}, scores


def _write_requests(prepared: Prepared, candidates: Run, path: Path) -> Path:
    """Write the texts of each query's candidates; every query is a workload of its own."""
    index, requests = Index(prepared.indexes[Vectors.NONE]), {}
    for query in prepared.queries:
        documents = index.documents(candidates.rankings[query.query_id].doc_ids)
        requests[query.query_id] = [[query.text, [document.contents for document in documents]]]
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
