"""How are quality and time of searches reported?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks.search_collections import COLLECTIONS
from benchmarks.search_first_tokens import NAME as FIRST_TOKENS
from benchmarks.search_quality import MEASURES
from benchmarks.search_rows import DEFAULTS, ROWS, Row
from birchbark import defaults

Figures = dict[str, Any]
NAMES = tuple(collection.name for collection in COLLECTIONS)
MISSING = "–"
# p50 of new documents in ms, at most, that are wanted of the default on each kind of index
TARGETS = dict(zip((row.name for row in DEFAULTS), (None, 250, 110), strict=True))


def report(figures: Figures) -> str:
    """Return the report in Markdown."""
    lines = [
        "<!-- Made by benchmarks/search.py; do not edit. -->",
        "# Searches: quality beside time",
        "",
        *_conditions(figures),
        "",
        "## AP and time",
        "",
        *_main_table(figures),
        "",
        *_peers(figures),
        "## Targets",
        "",
        *_targets(figures),
        "",
    ]
    for measure in MEASURES[1:] if figures["quality"] else ():
        lines += [f"## {measure}", "", *_quality_table(figures["quality"], measure), ""]
    return "\n".join([*lines, *NOTES.strip().splitlines()]) + "\n"


def mean(quality: Figures, row: str, measure: str) -> float | None:
    """Return the mean over the collections; None unless the row was measured on all of them."""
    values = [of_collection.get(row) for of_collection in quality.values()]
    if not values or None in values:
        return None
    return float(sum(value[measure] for value in values) / len(values))


def _conditions(figures: Figures) -> Iterator[str]:
    if times := figures["times"]:
        machine, versions = times["machine"], times["versions"]
        named = ", ".join(f"{name} {number}" for name, number in versions.items())
        yield (
            f"{machine['processor']}, {machine['cores']} cores, {machine['memory_gb']} GB; Python "
            f"{machine['python']}, {named}. Made by `make bench NAME=search`."
        )
        yield ""
    counts = ", ".join(f"{name} ({rows['queries']})" for name, rows in figures["quality"].items())
    quality = f"a random sample of the judged queries of {counts}" if counts else "not measured yet"
    yield (
        f"Quality: {quality}; the {defaults.RERANKING_DEPTH} best documents. Time: queries of "
        "TIME, the 10 best with their evidence, models loaded. New: every document is new to the "
        "process. Running: one query after another, as in a service. All answers are exact, "
        "without a deadline."
    )


def _main_table(figures: Figures) -> Iterator[str]:
    times = ("pairs", "new: p50 ms", "p95 ms", "running: p50 ms", "p95 ms")
    yield f"| search | {' | '.join(times)} | mean AP | {' | '.join(NAMES)} |"
    yield "| --- |" + " ---: |" * (len(times) + 1 + len(NAMES))
    for row in ROWS:
        cells = [*_timed(figures, row), *_quality(figures["quality"], row.name, "AP")]
        yield f"| {_name(row)} | {' | '.join(cells)} |"


def _name(row: Row) -> str:
    return f"**{row.name}**" if row in DEFAULTS else row.name


def _timed(figures: Figures, row: Row) -> list[str]:
    timed = figures["times"].get("rows", {}).get(row.name)
    if not timed:
        return [MISSING] * 5
    new = timed["new"]
    pairs = " + ".join(f"{new[kind]:.0f}" for kind in ("pairs", "embedded") if new[kind])
    kinds = [timed[kind][quantile] for kind in ("new", "running") for quantile in ("p50", "p95")]
    return [pairs or "0", *(f"{value:,.0f}" for value in kinds)]


def _quality(quality: Figures, row: str, measure: str) -> list[str]:
    """Return the mean and the value for each collection."""
    average = mean(quality, row, measure)
    cells = [MISSING if average is None else f"{average:.4f}"]
    for name in NAMES:
        value = quality.get(name, {}).get(row)
        cells.append(f"{value[measure]:.4f}" if value else MISSING)
    return cells


def _quality_table(quality: Figures, measure: str) -> Iterator[str]:
    yield f"| search | mean {measure} | {' | '.join(NAMES)} |"
    yield "| --- |" + " ---: |" * (1 + len(NAMES))
    for row in ROWS:
        yield f"| {_name(row)} | {' | '.join(_quality(quality, row.name, measure))} |"
    yield f"| {FIRST_TOKENS} | {' | '.join(_quality(quality, FIRST_TOKENS, measure))} |"


def _peers(figures: Figures) -> Iterator[str]:
    if not figures["peers"]:
        return
    yield "## Peers: BM25's 100 candidates, the first 512 tokens of each"
    yield ""
    columns = ("engine", "p50 ms", "p95 ms", "queries", "scores differ by", "mean AP", *NAMES)
    yield f"| {' | '.join(columns)} |"
    yield "| --- |" + " ---: |" * (len(columns) - 1)
    quality = _quality(figures["quality"], FIRST_TOKENS, "AP")
    for name, timed in figures["peers"].items():
        cells = [f"{timed['p50']:,.0f}", f"{timed['p95']:,.0f}", str(timed["queries"])]
        cells += [f"{timed['difference']:.1e}", *quality]
        yield f"| {name} {timed['version']} | {' | '.join(cells)} |"
    yield ""


def _targets(figures: Figures) -> Iterator[str]:
    yield "| target | wanted | measured | |"
    yield "| --- | ---: | ---: | --- |"
    for name, limit in TARGETS.items():
        timed = figures["times"].get("rows", {}).get(name)
        if timed and limit:
            value = timed["new"]["p50"]
            verdict = "met" if value <= limit else "missed"
            yield f"| {name}, new documents, p50 ms | ≤ {limit} | {value:,.0f} | {verdict} |"


NOTES = """
## Notes

Pairs: what the cross-encoder read per query, plus what the embedding read. The default is that of
`birchbark search`, in int8 where the processor has VNNI. “Just indexed” is an index as `birchbark
index` leaves it, with static vectors; “with the embedding's vectors” is one after `birchbark index
attach`. Peers re-rank what BM25 finds, and cut long documents. The targets are for two cores with
VNNI, which a processor without AVX-512 does not have: it computes in fp32.
"""
