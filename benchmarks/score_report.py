"""How are the figures of scoring reported, and which targets do they meet?"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.report import notes
from benchmarks.score_engines import BASE

Figures = dict[str, Any]
# Engine → workload → target speed relative to sentence-transformers, and optionally a higher aim.
TARGETS: dict[str, dict[str, tuple[float, ...]]] = {
    "birchbark fp32": {"A": (1.7,), "B": (1.5,)},
    "birchbark int8": {"A": (2.8, 4.0), "B": (2.4, 3.2)},
}
WORDS = {"A": "sentences", "B": "passages of 150 words"}


def report(figures: Figures) -> str:
    """Return the report in Markdown."""
    lines = [
        "<!-- Made by benchmarks/score.py; do not edit. -->",
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
    """Return the speed relative to `base` in each round, in ascending order."""
    return sorted(b / t for b, t in zip(times.get(base, ()), times[name], strict=False))


def _conditions(figures: Figures) -> Iterator[str]:
    machine = figures["machine"]
    yield (
        f"{machine['processor']}, {machine['memory_gb']} GB; Python {machine['python']}, numpy "
        f"{machine['numpy']}. Texts: {figures['source']}. Weights: all-MiniLM-L6-v2's encoder with "
        "a random head, the same for all. An engine receives one query with its texts at a time, "
        "as strings, and returns scores. Rounds are interleaved; speed is the median (min–max), "
        "a ratio is the median of the ratios in each round."
    )
    for kind, workload in figures["workloads"].items():
        yield ""
        yield (
            f"{kind}: {workload['pairs']:,} pairs of query and {WORDS[kind]}, mean "
            f"{workload['tokens']:.0f} tokens."
        )


def _table(figures: Figures, cores: str, kind: str) -> Iterator[str]:
    times, shape = figures["times"][cores][kind], figures["workloads"][kind]
    scores = figures["times"][cores]["scores"][kind]
    peak = max(times["peak"])
    yield f"Workload {kind}, {'one core' if cores == '1' else f'{cores} cores'}:"
    yield ""
    yield "| engine | pairs/s | × sentence-transformers | share of fp32 peak | τ with the first |"
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
    yield f"Peak: {peak:.0f} GFLOP/s in float32, the highest speed of a single matrix product."


def spread(values: list[float], places: int = 2) -> str:
    """Format the median (min–max) of ascending `values` with `places` decimals."""
    if not values:
        return "n/a"
    median, least, greatest = (
        f"{v:.{places}f}" for v in (statistics.median(values), values[0], values[-1])
    )
    return f"{median} ({least}–{greatest})"


def tau(one: list[float], other: list[float]) -> float:
    """Return Kendall's τ-a."""
    a, b = (np.sign(np.subtract.outer(x, x)) for x in (one, other))
    return float((a * b).sum() / (len(one) * (len(one) - 1)))


def _targets(figures: Figures) -> Iterator[str]:
    times = figures["times"]["1"]
    if BASE not in times["A"]:
        return
    yield "| target, one core | at least | measured | |"
    yield "| --- | ---: | ---: | --- |"
    for name, kinds in TARGETS.items():
        for kind, levels in kinds.items():
            for number, least in enumerate(levels):
                if name in times[kind]:
                    ratio = statistics.median(ratios(times[kind], name))
                    verdict = "met" if ratio >= least else "missed"
                    aim = "aim, " if number else ""
                    yield f"| {aim}{name}, {kind} | {least:.1f} × | {ratio:.2f} × | {verdict} |"


NOTES = """
Share of peak: the floating-point operations of birchbark's graph (the last layer only for [CLS]),
divided by time and peak. A peer that computes more, or pads, has a smaller share; int8 may exceed
100 %. Operations other than matrix products (norms, GELU, softmax, tokenising, Python) take time as
well, so fp32 cannot reach 100 %.

sentence-transformers is CrossEncoder.predict with its defaults (batches of 32, sorted by length,
padded). FlashRank pads a whole request to its longest text. The plain export is torch's, run by
ONNX Runtime with all optimisations, sorted by length, 512 padded tokens a batch; its dynamic int8
has one scale for each output of the weights and one for a batch's activations, so scores depend on
the batch. birchbark's do not, in either precision.
"""
