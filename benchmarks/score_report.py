"""How do the figures of scoring read as tables, and which targets do they meet?"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.report import notes
from benchmarks.score_engines import BASE

Figures = dict[str, Any]
# Engine → workload → the least wanted, and what is aimed at, in times sentence-transformers.
TARGETS: dict[str, dict[str, tuple[float, ...]]] = {
    "birchbark fp32": {"A": (1.7,), "B": (1.5,)},
    "birchbark int8": {"A": (2.8, 4.0), "B": (2.4, 3.2)},
}
WORDS = {"A": "sentences", "B": "passages of 150 words"}


def report(figures: Figures) -> str:
    """Markdown."""
    lines = [
        "<!-- Made by benchmarks/score.py; not to be edited. -->",
        "# Scoring pairs of query and text",
        "",
        *_conditions(figures),
        "",
    ]
    for cores in figures["times"]:
        for kind in WORDS:
            lines += [*_table(figures, cores, kind), ""]
    lines += [*_targets(figures), "", *notes(figures, NOTES)]
    return "\n".join(lines) + "\n"


def ratios(times: Figures, name: str, base: str = BASE) -> list[float]:
    """How many times as fast as `base`, in each round, ascending."""
    return sorted(b / t for b, t in zip(times.get(base, ()), times[name], strict=False))


def _conditions(figures: Figures) -> Iterator[str]:
    machine = figures["machine"]
    yield (
        f"{machine['processor']}, {machine['memory_gb']} GB; Python {machine['python']}, numpy "
        f"{machine['numpy']}. Texts: {figures['source']}. Weights: all-MiniLM-L6-v2's encoder with "
        "a head drawn from a seed, the same for all. An engine is given one query with its texts "
        "at a time, as strings, and gives scores. Rounds take turns; speed is the median (least–"
        "most), a ratio that of one round, the median of them."
    )
    for kind, found in figures["workloads"].items():
        yield ""
        yield (
            f"{kind}: {found['pairs']:,} pairs of query and {WORDS[kind]}, mean "
            f"{found['tokens']:.0f} tokens."
        )


def _table(figures: Figures, cores: str, kind: str) -> Iterator[str]:
    times, shape = figures["times"][cores][kind], figures["workloads"][kind]
    scores = figures["times"][cores]["scores"][kind]
    peak = max(times["peak"])
    yield f"Workload {kind}, {'one core' if cores == '1' else f'{cores} cores'}:"
    yield ""
    yield "| engine | pairs/s | × sentence-transformers | share of fp32 peak | τ to the first |"
    yield "| --- | ---: | ---: | ---: | ---: |"
    first = next(iter(scores.values()))
    for name in scores:
        speeds = sorted(shape["pairs"] / seconds for seconds in times[name])
        per_round = ratios(times, name)
        share = shape["gflop"] / statistics.median(times[name]) / peak
        yield (
            f"| {name} {figures['versions'][name]} | {spread(speeds, 1)} | {spread(per_round)} | "
            f"{100 * share:.0f} % | {tau(first, scores[name]):.3f} |"
        )
    yield ""
    yield f"Peak: {peak:.0f} GFLOP/s in float32, the most that one product of matrices reached."


def spread(values: list[float], places: int = 2) -> str:
    """Median (least–most) of ascending `values`, with so many decimals."""
    if not values:
        return "n/a"
    middle, least, most = (
        f"{v:.{places}f}" for v in (statistics.median(values), values[0], values[-1])
    )
    return f"{middle} ({least}–{most})"


def tau(one: list[float], other: list[float]) -> float:
    """Kendall's τ-a."""
    a, b = (np.sign(np.subtract.outer(x, x)) for x in (one, other))
    return float((a * b).sum() / (len(one) * (len(one) - 1)))


def _targets(figures: Figures) -> Iterator[str]:
    times = figures["times"]["1"]
    if BASE not in times["A"]:
        return
    yield "| target, one core | wanted | found | |"
    yield "| --- | ---: | ---: | --- |"
    for name, kinds in TARGETS.items():
        for kind, wanted in kinds.items():
            for number, least in enumerate(wanted):
                if name in times[kind]:
                    found = statistics.median(ratios(times[kind], name))
                    verdict = "met" if found >= least else "missed"
                    aim = "aim, " if number else ""
                    yield f"| {aim}{name}, {kind} | {least:.1f} × | {found:.2f} × | {verdict} |"


NOTES = """
Share of peak: the multiplications that birchbark's graph needs (the last layer for [CLS] alone),
over time and peak. A peer that does more than these, or pads, has a smaller share for it; integers
may pass 100 %. What is not in the products of matrices (norms, GELU, softmax, tokens, Python) takes
part of the time, so fp32 cannot reach 100 %.

sentence-transformers is CrossEncoder.predict at its defaults (batches of 32, sorted by length,
padded). FlashRank pads a whole request to its longest text. The plain export is torch's, run by
ONNX Runtime with all its optimisations, sorted by length, 512 padded tokens a batch; its dynamic
int8 has a scale for each output of the weights and one for a batch's activations, so its scores
change with the batch. birchbark's do not, in either precision.
"""
