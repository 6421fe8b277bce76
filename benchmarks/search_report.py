"""How are quality and time of searches reported, and which targets do they meet?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from benchmarks.search_collections import COLLECTIONS
from benchmarks.search_first_tokens import NAME as FIRST_TOKENS
from benchmarks.search_rows import GROUPS, MIXTURE, Row, rows
from birchbark import defaults
from birchbark.score.precision import Precision, fastest_precision

Figures = dict[str, Any]
NAMES = tuple(collection.name for collection in COLLECTIONS)
MISSING = "–"
AP_LOSS = 0.002  # of the default plan, at most
STORED_MS, COMPUTED_MS = {"p50": 120, "p95": 200}, {Precision.FP32: 400, Precision.INT8: 220}
MILLION_MS = 300


def report(figures: Figures, drawing: str) -> str:
    """Return the report in Markdown. drawing: the path of the plot."""
    lines = [
        "<!-- Made by benchmarks/search.py; do not edit. -->",
        "# Searches: quality beside time",
        "",
        *_conditions(figures),
        "",
        f"![Mean AP of each way to search against its p50]({drawing})",
        "",
        "## AP and time",
        "",
        *_main_table(figures),
        "",
        *_peers(figures),
        "## A query for new documents, and in a running service",
        "",
        *_running(figures),
        "",
        *_million(figures),
        "## Targets",
        "",
        *_targets(figures),
        "",
        "## nDCG@10",
        "",
        *_quality_table(figures["quality"], "nDCG@10"),
        "",
        *_rm3(figures),
        *NOTES.strip().splitlines(),
    ]
    return "\n".join(lines) + "\n"


def mean(quality: Figures, name: str, measure: str = "AP") -> float | None:
    """Return the mean over the collections; None unless the row was measured on all of them."""
    values = [of_collection.get(name) for of_collection in quality.values()]
    if not values or None in values:
        return None
    return float(sum(value[measure] for value in values) / len(values))


def milliseconds(figures: Figures, row: Row, kind: str = "new", quantile: str = "p50") -> Any:
    """Return a quantile of the times of a row; None if it was not timed."""
    timed = figures["times"].get("rows", {}).get(row.name, {}).get(kind)
    return timed and timed[quantile]


def is_searched(row: Row) -> bool:
    """Whether `birchbark search` searches like this on this machine."""
    return row.is_default and row.precision is fastest_precision()


def _conditions(figures: Figures) -> Iterator[str]:
    times = figures["times"]
    if times:
        machine, versions = times["machine"], times["versions"]
        named = ", ".join(f"{name} {number}" for name, number in versions.items())
        yield (
            f"{machine['processor']}, {machine['cores']} cores, {machine['memory_gb']} GB; Python "
            f"{machine['python']}, {named}. Made by `make bench-search`."
        )
        yield ""
    counts = {
        name: next(iter(of_name.values()))["queries"]
        for name, of_name in figures["quality"].items()
        if of_name
    }
    yield (
        "Quality: judged queries, of large collections a random sample: "
        + ", ".join(f"{name} ({count})" for name, count in counts.items())
        + f"; {defaults.RERANKING_DEPTH} candidates by BM25, all of them ranked. Time: queries of "
        "TIME, the 10 best of 100 candidates with their evidence, exact answers, models loaded, "
        "every document new to the process."
    )


def _main_table(figures: Figures) -> Iterator[str]:
    yield "| search | pairs | p50 ms | p95 ms | queries | mean AP | " + " | ".join(NAMES) + " |"
    yield "| --- |" + " ---: |" * (5 + len(NAMES))
    for group in GROUPS:
        yield f"| **{group}** |" + " |" * (5 + len(NAMES))
        for row in rows():
            if row.group == group:
                cells = [*_timed(figures, row), *_quality(figures["quality"], row.name, "AP")]
                yield f"| {_name(row)} | {' | '.join(cells)} |"


def _name(row: Row) -> str:
    if not row.is_default:
        return row.name
    return f"**{row.name}: the default{' here' if is_searched(row) else ' without VNNI'}**"


def _timed(figures: Figures, row: Row) -> list[str]:
    timed = figures["times"].get("rows", {}).get(row.name, {}).get("new")
    if not timed:
        return [MISSING] * 4
    pairs = [f"{timed[kind]:.0f}" for kind in ("pairs", "embedded") if timed[kind]]
    return [
        " + ".join(pairs) or "0",
        f"{timed['p50']:,.0f}",
        f"{timed['p95']:,.0f}",
        str(timed["queries"]),
    ]


def _quality(quality: Figures, row: str, measure: str, names: Sequence[str] = NAMES) -> list[str]:
    """Return the mean and the value for each collection. row: its name."""
    average = mean(quality, row, measure)
    cells = [MISSING if average is None else f"{average:.4f}"]
    for name in names:
        value = quality.get(name, {}).get(row)
        cells.append(f"{value[measure]:.4f}" if value else MISSING)
    return cells


def _quality_table(quality: Figures, measure: str) -> Iterator[str]:
    names = [name for name in NAMES if name in quality]
    yield f"| search | mean {measure} | {' | '.join(names)} |"
    yield "| --- |" + " ---: |" * (1 + len(names))
    for row in rows():
        if any(row.name in quality[name] for name in names):
            yield f"| {_name(row)} | {' | '.join(_quality(quality, row.name, measure, names))} |"
    if any(FIRST_TOKENS in quality[name] for name in names):
        cells = _quality(quality, FIRST_TOKENS, measure, names)
        yield f"| {FIRST_TOKENS}, as peers read | {' | '.join(cells)} |"


def _rm3(figures: Figures) -> Iterator[str]:
    if figures["rm3"]:
        yield "## AP with RM3 in the first stage"
        yield ""
        yield from _quality_table(figures["rm3"], "AP")
        yield ""


def _running(figures: Figures) -> Iterator[str]:
    yield "| search | new: p50 ms | p95 ms | running: p50 ms | p95 ms |"
    yield "| --- |" + " ---: |" * 4
    for row in rows():
        if milliseconds(figures, row, "running"):
            cells = [
                f"{milliseconds(figures, row, kind, quantile):,.1f}"
                for kind in ("new", "running")
                for quantile in ("p50", "p95")
            ]
            yield f"| {_name(row)} | {' | '.join(cells)} |"


def _peers(figures: Figures) -> Iterator[str]:
    if not figures["peers"]:
        return
    yield "## Peers: the same candidates, the first 512 tokens of each document"
    yield ""
    yield "| engine | p50 ms | p95 ms | queries | scores differ by | mean AP | " + " | ".join(NAMES)
    yield "| --- |" + " ---: |" * (5 + len(NAMES))
    quality = _quality(figures["quality"], FIRST_TOKENS, "AP")
    for name, timed in figures["peers"].items():
        cells = [f"{timed['p50']:,.0f}", f"{timed['p95']:,.0f}", str(timed["queries"])]
        cells += [f"{timed['difference']:.1e}", *quality]
        yield f"| {name} {timed['version']} | {' | '.join(cells)} |"
    yield ""


def _million(figures: Figures) -> Iterator[str]:
    million = figures["million"]
    if not million:
        return
    yield f"## {million['documents']:,} documents, no stored vectors"
    yield ""
    yield "| search | pairs | p50 ms | p95 ms | queries |"
    yield "| --- |" + " ---: |" * 4
    for name, timed in million["rows"].items():
        pairs = " + ".join(f"{timed[k]:.0f}" for k in ("pairs", "embedded") if timed[k]) or "0"
        times = f"{timed['p50']:,.0f} | {timed['p95']:,.0f}"
        yield f"| {name} | {pairs} | {times} | {timed['queries']} |"
    yield ""


def _targets(figures: Figures) -> Iterator[str]:
    yield "| target | wanted | measured | |"
    yield "| --- | ---: | ---: | --- |"
    for row in rows():
        if not row.is_default:
            continue
        for quantile, limit in _limits(row):
            value = milliseconds(figures, row, "new", quantile)
            if value is not None:
                name = f"{row.name}, {quantile} ms"
                yield f"| {name} | ≤ {limit} | {value:,.0f} | {_verdict(value <= limit)} |"
        yield from _ap_targets(figures["quality"], row)
    if million := figures["million"]:
        for row in rows():
            if is_searched(row) and (timed := million["rows"].get(row.name)):
                name = f"{million['documents']:,} documents, {row.name}, p50 ms"
                verdict = _verdict(timed["p50"] <= MILLION_MS)
                yield f"| {name} | ≤ {MILLION_MS} | {timed['p50']:,.0f} | {verdict} |"


def _limits(row: Row) -> list[tuple[str, float]]:
    return [*STORED_MS.items()] if row.vectors else [("p50", COMPUTED_MS[row.precision])]


def _ap_targets(quality: Figures, row: Row) -> Iterator[str]:
    """Compare a default plan with the full mixture on each collection."""
    for name, of_name in quality.items():
        if row.name in of_name and MIXTURE.name in of_name:
            least, value = of_name[MIXTURE.name]["AP"] - AP_LOSS, of_name[row.name]["AP"]
            verdict = _verdict(value >= least)
            yield f"| {row.name}, AP of {name} | ≥ {least:.4f} | {value:.4f} | {verdict} |"


def _verdict(met: bool) -> str:
    return "met" if met else "missed"


NOTES = """
## Notes

“3 of 20”: the cross-encoder reads the three best segments of each of the 20 best candidates, by
first stage and embedding. “3 each, 60 pairs”: three of each of as many candidates as 60 pairs
suffice for. “Embedding reads 1”: one segment of each candidate, chosen by the terms of the query.
Segments are sentences; the passages of DL19 are read whole. Pairs: what the cross-encoder read per
query, plus what the embedding read; fewer than the plan allows where the 10 best were known
earlier. The weight of the first stage is .2 unless stated otherwise; embedding and cross-encoder
have equal weights.

Exact answers equal those that a plan gives without a deadline. Rows that take longer than others
are timed for fewer queries (the column says how many), in the same random order. “New”: a searcher
and scorers that have read nothing before, for every query. “Running”: one searcher for all queries,
which remembers documents, sentences and vectors, but has never seen the query.

AP of DL19 counts grades 2 and 3 as relevant, as TREC did; its candidates are the BM25 run of the
collection. CACM's judgments are qrels.fixed.txt. Peers receive whole documents, of which the model
reads 512 tokens together with the query, and rank by its scores alone. Their AP was computed
from scores of Birchbark's scorer, with the same tokens and weights; “differ by” is the largest
difference between these and the peer's own. Their times do not include the first stage.
"""
