"""How do the figures of a run read as a table, and which targets do they meet?"""

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
    """Markdown."""
    lines = [
        "<!-- Made by benchmarks/first_stage.py; not to be edited. -->",
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
    """Megabytes: of the index proper, of stored texts, of the forward index."""
    found = {"index": 0.0, "texts": 0.0, "forward": 0.0}
    for path, size in files.items():
        name = path.rsplit("/", 1)[-1]
        kind = next((k for k in ("texts", "forward") if name.startswith(k)), "index")
        found[kind] += size / 1e6
    return found


def p50(engine: Figures, search: str, kind: str) -> list[float]:
    """Of each round, ascending; empty if not measured."""
    return sorted(round_["p50"] for round_ in engine["times"][search].get(kind, []))


def _conditions(figures: Figures) -> Iterator[str]:
    machine, text, queries = figures["machine"], figures["text"], figures["queries"]
    yield (
        f"One core of {machine['processor']}, {machine['memory_gb']} GB; Python "
        f"{machine['python']}, numpy {machine['numpy']}, numba {machine['numba']}. Text: drawn "
        f"from {text['pool_words']:,} words of {text['source']} (benchmarks/text.py), seed "
        f"{text['seed']}, {text['bytes'] / 1e6:,.0f} MB of JSONL, made in {text['seconds']:.0f} s. "
        f"Reading it takes {figures['read']['seconds']:.1f} s (json.loads alone, as every engine "
        f"is fed here), or {figures['read_collection']['seconds']:.1f} s by birchbark's own reader."
    )
    yield ""
    yield (
        f"{queries['count']} queries of 5 terms, drawn from documents by tf · idf; share of "
        f"documents with a term, 5/25/50/75/95 %: {_spread(queries['df'])}. After RM3 "
        f"{queries['weighted_df_terms']:.1f} weighted terms: {_spread(queries['weighted_df'])}. "
        "Times in ms: p50 as median of the rounds (least–most), p95 after it. Rounds take turns."
    )


def _spread(shares: dict[str, float]) -> str:
    return ", ".join(f"{100 * share:.2g} %" for share in shares.values())


def _columns(figures: Figures) -> Iterator[list[str]]:
    """The rows' names, then a column for each engine and kind of hit."""
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
            "disk MB, without the next two",
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


def _memory(found: Figures) -> str:
    return f"{found['VmRSS']:.0f} ({found['RssAnon']:.0f} anon, {found['RssFile']:.0f} file)"


def _time(engine: Figures, search: str, kind: str) -> str:
    found = p50(engine, search, kind)
    if not found:
        return "n/a"
    p95 = statistics.median(round_["p95"] for round_ in engine["times"][search][kind])
    return f"{statistics.median(found):.2f} ({found[0]:.2f}–{found[-1]:.2f}), {p95:.2f}"


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
    yield "| target | wanted | found | |"
    yield "| --- | ---: | ---: | --- |"
    for name, wanted, found in _absolute(figures, ours):
        verdict = _verdict(wanted, found) if full else f"set for {FULL:,} documents"
        yield f"| {name} | {wanted:,} | {found:,.1f} | {verdict} |"
    for name, wanted, found in _relative(figures, ours):
        yield f"| {name} | {wanted:,.2f} | {found:,.2f} | {_verdict(wanted, found)} |"


def _verdict(wanted: float, found: float) -> str:
    return f"{'met' if found <= wanted else 'missed'}: {found / wanted:.2f} times as much"


def _absolute(figures: Figures, ours: Figures) -> Iterator[tuple[str, float, float]]:
    """Name, most wanted and found, of what has a number set."""
    size = disk(ours["build"]["files"])
    yield "build s", 60, ours["build"]["seconds"]
    yield "disk MB, without forward index and stored texts", 300, size["index"]
    yield "resident MB while searching", 300, ours["searching"]["VmRSS"]
    yield "open ms", 50, ours["open"]["open_ms"]
    for name, found in figures["cold"].items():
        if name != "help":
            yield f"cold `birchbark {name}` ms", 1000, found


def _relative(figures: Figures, ours: Figures) -> Iterator[tuple[str, float, float]]:
    """Name, most wanted and found, of what is held against tantivy."""
    peer = figures["engines"].get("tantivy")
    for kind in ("five 1000", "weighted 1000"):
        mine = statistics.median(p50(ours, "doc_ids", kind))
        for search in peer["times"] if peer else ():
            theirs = statistics.median(p50(peer, search, kind))
            yield f"p50 ms {TIMES[kind]}, as tantivy ({search})", theirs, mine


def notes(figures: Figures, text: str) -> Iterator[str]:
    """What was not measured, and what people should know of the rest."""
    for name in figures["missing"]:
        yield f"{name} is not installed and was not measured."
        yield ""
    yield from text.strip().splitlines()


NOTES = """
Every engine splits, stops and stems the raw text itself while it builds, in one thread: birchbark
by its `english` analyzer (Unicode words, 33 stop words, Porter's stemmer of 1980), tantivy by its
simple tokenizer (letters and digits), the same stop words and Snowball's English stemmer, bm25s by
its own tokenizer (words of two letters and more), its own stop words and PyStemmer's English.
Queries are words put through each engine's own analysis, outside the time measured.

birchbark builds by `build_index` over Documents made from the JSONL file's lines. tantivy keeps
frequencies without positions, stored ids and a numeric column, and merges with its default policy
until it is done; its k1 and b are fixed at 1.2 and .75, the others' are .9 and .4. bm25s holds
neither ids nor texts, takes no weights, and keeps scores computed when it was built.

All hits are read into Python as (document, score). A document is a doc_id in birchbark; in tantivy
an address, a number from a column, or the id from the document store; in bm25s a row number.
Peak and RSS include pages of memory-mapped files and, for birchbark and bm25s, about 100 MB of
Python, numpy and numba (see the row before opening).
"""
