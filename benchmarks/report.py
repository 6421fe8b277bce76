"""How are the figures of the first stage reported, and which targets do they meet?"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from typing import Any

Figures = dict[str, Any]
FULL = 1_000_000
TIMES = {
    "five 1000": "5 terms → 1000",
    "five 10": "5 terms → 10",
    "weighted 1000": "26 weighted → 1000",
    "weighted 10": "26 weighted → 10",
}


def report(figures: Figures) -> str:
    """Return the report in Markdown."""
    lines = [
        "<!-- Made by benchmarks/first_stage.py; do not edit. -->",
        f"# First stage, {figures['text']['documents']:,} documents, one core",
        "",
        *_conditions(figures),
        "",
        *_table(_columns(figures)),
        "",
        *_targets(figures),
        "",
        *notes(figures, NOTES),
    ]
    return "\n".join(lines) + "\n"


def disk(files: dict[str, int]) -> dict[str, float]:
    """Return the sizes in MB of the index itself, the stored texts and the forward index."""
    sizes = {"index": 0.0, "texts": 0.0, "forward": 0.0}
    for path, size in files.items():
        name = path.rsplit("/", 1)[-1]
        kind = next((k for k in ("texts", "forward") if name.startswith(k)), "index")
        sizes[kind] += size / 1e6
    return sizes


def p50(engine: Figures, search: str, kind: str) -> list[float]:
    """Return the p50 of each round, in ascending order; empty if not measured."""
    return sorted(round_["p50"] for round_ in engine["times"][search].get(kind, []))


def _conditions(figures: Figures) -> Iterator[str]:
    machine, text, queries = figures["machine"], figures["text"], figures["queries"]
    yield (
        f"One core of {machine['processor']}, {machine['memory_gb']} GB; Python "
        f"{machine['python']}, numpy {machine['numpy']}, numba {machine['numba']}. Text drawn "
        f"from {text['pool_words']:,} words of prose (source: {text['source']}; "
        f"benchmarks/text.py), seed {text['seed']}, {text['bytes'] / 1e6:,.0f} MB of JSONL, "
        f"made in {text['seconds']:.0f} s. "
        f"Reading it takes {figures['read']['seconds']:.1f} s with json.loads, as for every engine "
        f"here, or {figures['read_collection']['seconds']:.1f} s with birchbark's own reader."
    )
    yield ""
    yield (
        f"{queries['count']} queries of 5 terms, drawn from documents by tf · idf; share of "
        f"documents with a term, 5/25/50/75/95 %: {_spread(queries['df'])}. After RM3 "
        f"{queries['weighted_df_terms']:.1f} weighted terms: {_spread(queries['weighted_df'])}. "
        "Times in ms: the median p50 of all rounds (min–max), then p95. Rounds are interleaved."
    )


def _spread(shares: dict[str, float]) -> str:
    return ", ".join(f"{100 * share:.2g} %" for share in shares.values())


def _columns(figures: Figures) -> Iterator[list[str]]:
    """Yield a column of row names, then one column per engine and search."""
    yield ["", *_build({}, 0), *_open({}), *TIMES.values()]
    for name, engine in figures["engines"].items():
        for number, search in enumerate(engine["times"]):
            fixed = [*_build(engine, figures["read"]["seconds"]), *_open(engine)]
            yield [
                f"{name} {engine['version']}: {search}",
                *(fixed if number == 0 else ['"'] * len(fixed)),
                *(_time(engine, search, kind) for kind in TIMES),
            ]


def _build(engine: Figures, reading: float) -> list[str]:
    if not engine:
        return [
            "build s",
            "– without reading JSONL",
            "peak MB of build",
            "index MB on disk, without the next two",
            "stored texts MB",
            "forward index MB",
        ]
    build, size = engine["build"], disk(engine["build"]["files"])
    times = [f"{build['seconds']:.1f}", f"{build['seconds'] - reading:.1f}"]
    return [*times, f"{build['after']['VmHWM']:,.0f}", *(f"{v:,.0f}" for v in size.values())]


def _open(engine: Figures) -> list[str]:
    if not engine:
        return [
            "import ms",
            "open ms",
            "first query ms",
            "RSS MB before opening",
            "– opened",
            "– after all queries",
        ]
    opened = engine["open"]
    return [
        *(f"{opened[name]:,.1f}" for name in ("import_ms", "open_ms", "first_ms")),
        *(_memory(m) for m in (opened["before"], opened["after"], engine["searching"])),
    ]


def _memory(resident: Figures) -> str:
    anonymous, files = resident["RssAnon"], resident["RssFile"]
    return f"{resident['VmRSS']:.0f} ({anonymous:.0f} anon, {files:.0f} file)"


def _time(engine: Figures, search: str, kind: str) -> str:
    values = p50(engine, search, kind)
    if not values:
        return "n/a"
    p95 = statistics.median(round_["p95"] for round_ in engine["times"][search][kind])
    return f"{statistics.median(values):.2f} ({values[0]:.2f}–{values[-1]:.2f}), {p95:.2f}"


def _table(columns: Iterator[list[str]]) -> Iterator[str]:
    for number, row in enumerate(zip(*columns, strict=True)):
        yield f"| {' | '.join(row)} |"
        if number == 0:
            yield "| --- " + "| ---: " * (len(row) - 1) + "|"


def _targets(figures: Figures) -> Iterator[str]:
    ours = figures["engines"].get("birchbark")
    if ours is None:
        return
    full = figures["text"]["documents"] == FULL
    yield "| target | at most | measured | |"
    yield "| --- | ---: | ---: | --- |"
    for name, limit, value in _absolute(figures, ours):
        verdict = _verdict(limit, value) if full else f"set for {FULL:,} documents"
        yield f"| {name} | {limit:,} | {value:,.1f} | {verdict} |"
    for name, limit, value in _relative(figures, ours):
        yield f"| {name} | {limit:,.2f} | {value:,.2f} | {_verdict(limit, value)} |"


def _verdict(limit: float, value: float) -> str:
    return f"{'met' if value <= limit else 'missed'}: {value / limit:.2f} × the target"


def _absolute(figures: Figures, ours: Figures) -> Iterator[tuple[str, float, float]]:
    """Yield name, limit and measured value of each absolute target."""
    size = disk(ours["build"]["files"])
    yield "build s", 60, ours["build"]["seconds"]
    yield "disk MB, without forward index and stored texts", 300, size["index"]
    yield "resident MB while searching", 300, ours["searching"]["VmRSS"]
    yield "open ms", 50, ours["open"]["open_ms"]
    for name, milliseconds in figures["cold"].items():
        if name != "help":
            yield f"cold `birchbark {name}` ms", 1000, milliseconds


def _relative(figures: Figures, ours: Figures) -> Iterator[tuple[str, float, float]]:
    """Yield name, limit and measured value of each target relative to tantivy."""
    peer = figures["engines"].get("tantivy")
    for kind in ("five 1000", "weighted 1000"):
        our_time = statistics.median(p50(ours, "doc_ids", kind))
        for search in peer["times"] if peer else ():
            their_time = statistics.median(p50(peer, search, kind))
            yield f"p50 ms {TIMES[kind]}, tantivy ({search})", their_time, our_time


def notes(figures: Figures, text: str) -> Iterator[str]:
    """Yield the engines that were not measured, then notes on the others."""
    for name in figures["missing"]:
        yield f"{name} is not installed and was not measured."
        yield ""
    yield from text.strip().splitlines()


NOTES = """
Each engine tokenises and stems the raw text itself while building, in one thread: birchbark with
its `english` analyzer (Unicode words, 33 stop words, the Porter stemmer of 1980), tantivy with its
simple tokeniser (letters and digits), the same stop words and Snowball's English stemmer, bm25s
with its own tokeniser (words of two or more letters), its own stop words and PyStemmer's English.
Each engine analyzes the words of the queries itself, outside the measured time.

birchbark uses `build_index` on Documents made from the lines of the JSONL file. tantivy stores
frequencies without positions, ids and a numeric column, and merges with its default policy until
done; its k1 and b are fixed at 1.2 and .75, those of the others are .9 and .4. bm25s stores neither
ids nor texts, does not support term weights, and computes scores when it builds.

All hits are read into Python as (document, score). A document is a doc_id in birchbark; in tantivy
an address, a number from a column, or the id from the document store; in bm25s a row number. Peak
and RSS include pages of memory-mapped files and, for birchbark and bm25s, about 100 MB of Python,
numpy and numba (see the row before opening).
"""
