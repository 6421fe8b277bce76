"""How long do opening and queries take, the engines taking turns?"""

from __future__ import annotations

import json
import statistics
from pathlib import Path
from typing import Any

from benchmarks.children import Child, say
from benchmarks.engines import Engine

KINDS = (("five", 1000), ("five", 10), ("weighted", 1000), ("weighted", 10))
Figures = dict[str, Any]


def opening(engine: Engine, place: Path, queries: Path, opens: int) -> tuple[Child, Figures]:
    """Open in `opens` fresh processes with the files in the system's cache; the last one stays."""
    say(f"opening with {engine.name}")
    directory = (place / engine.name).resolve()
    for path in directory.rglob("*"):
        if path.is_file():
            path.read_bytes()
    seen: list[Figures] = []
    for left in reversed(range(opens)):
        child = Child(engine.name)
        found = child.ask(do="open", directory=str(directory), queries=str(queries))
        seen.append(found | {"first_ms": (child.ask if not left else child.last)(do="first")})
    middle = {
        name: statistics.median(f[name] for f in seen)
        for name in ("import_ms", "open_ms", "first_ms")
    }
    return child, middle | {"before": seen[-1]["before"], "after": seen[-1]["after"]}


def in_turns(children: dict[Engine, Child], rounds: int) -> Figures:
    """Engine → search → kind → p50, p95 of each round and hits. One round more warms up."""
    found: Figures = {engine.name: {} for engine in children}
    for number in range(rounds + 1):
        say(f"round {number} of {rounds}" if number else "warming up")
        for kind, k in KINDS:
            for engine, child in children.items():
                if kind == "weighted" and not engine.weighted:
                    continue
                for search in engine.searches:
                    answer = child.ask(do="round", kind=kind, search=search, k=k)
                    at = found[engine.name].setdefault(search, {}).setdefault(f"{kind} {k}", [])
                    if number:
                        at.append(quantiles(answer["ms"]) | {"hits": answer["hits"]})
    return found


def quantiles(times: list[float]) -> Figures:
    """Of milliseconds."""
    ordered = sorted(times)
    return {
        "p50": statistics.median(ordered),
        "p95": ordered[int(0.95 * (len(ordered) - 1))],
        "mean": statistics.fmean(ordered),
    }


def spread(queries: Path) -> Figures:
    """How frequent the queries' terms are: quantiles of the share of documents with a term."""
    asked = json.loads(queries.read_text())
    found: Figures = {"count": len(asked)}
    for kind in ("df", "weighted_df"):
        shares = sorted(share for query in asked for share in query[kind])
        found[kind] = {q: shares[int(q * (len(shares) - 1))] for q in (0.05, 0.25, 0.5, 0.75, 0.95)}
        found[f"{kind}_terms"] = len(shares) / len(asked)
    return found
