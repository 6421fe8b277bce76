"""How long does it take to open an index and to answer queries, in interleaved rounds?"""

from __future__ import annotations

import json
import statistics
from pathlib import Path
from typing import Any

from benchmarks.children import Child, say
from benchmarks.engines import Engine

KINDS = (("five", 1000), ("five", 10), ("weighted", 1000), ("weighted", 10))
Figures = dict[str, Any]


def measure_opening(
    engine: Engine, folder: Path, queries: Path, opens: int
) -> tuple[Child, Figures]:
    """Open an index in `opens` new processes, with cached files; return the last, and figures."""
    say(f"opening with {engine.name}")
    directory = (folder / engine.name).resolve()
    for path in directory.rglob("*"):
        if path.is_file():
            path.read_bytes()
    openings: list[Figures] = []
    for remaining in reversed(range(opens)):
        child = Child(engine.name)
        opening = child.ask(do="open", directory=str(directory), queries=str(queries))
        first_ms = (child.last if remaining else child.ask)(do="first")
        openings.append(opening | {"first_ms": first_ms})
    medians = {
        name: statistics.median(opening[name] for opening in openings)
        for name in ("import_ms", "open_ms", "first_ms")
    }
    return child, medians | {"before": openings[-1]["before"], "after": openings[-1]["after"]}


def run_rounds(children: dict[Engine, Child], rounds: int) -> Figures:
    """Return engine → search → kind → p50, p95 and hits per round, after a warm-up round."""
    times: Figures = {engine.name: {} for engine in children}
    for number in range(rounds + 1):
        say(f"round {number} of {rounds}" if number else "warming up")
        for kind, k in KINDS:
            for engine, child in children.items():
                if kind == "weighted" and not engine.weighted:
                    continue
                for search in engine.searches:
                    answer = child.ask(do="round", kind=kind, search=search, k=k)
                    of_kind = (
                        times[engine.name].setdefault(search, {}).setdefault(f"{kind} {k}", [])
                    )
                    if number:
                        of_kind.append(quantiles(answer["ms"]) | {"hits": answer["hits"]})
    return times


def quantiles(times: list[float]) -> Figures:
    """Return p50, p95 and mean."""
    ordered = sorted(times)
    return {
        "p50": statistics.median(ordered),
        "p95": ordered[int(0.95 * (len(ordered) - 1))],
        "mean": statistics.fmean(ordered),
    }


def spread(queries: Path) -> Figures:
    """Return quantiles of the share of documents that contain a query term."""
    loaded = json.loads(queries.read_text())
    figures: Figures = {"count": len(loaded)}
    for kind in ("df", "weighted_df"):
        shares = sorted(share for query in loaded for share in query[kind])
        figures[kind] = {
            q: shares[int(q * (len(shares) - 1))] for q in (0.05, 0.25, 0.5, 0.75, 0.95)
        }
        figures[f"{kind}_terms"] = len(shares) / len(loaded)
    return figures
