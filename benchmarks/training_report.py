"""How are the figures of the training benchmark reported, and are the targets met?"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from typing import Any

from benchmarks.report import notes
from benchmarks.score_report import WORDS, ratios, spread
from benchmarks.training_engines import BASE, BATCH, CLIP, DECAY, OURS, RATE

Figures = dict[str, Any]
# Engine → the engine it is compared with, and the target for the ratio of their speeds.
TARGETS = {OURS: (BASE, 1.5), "birchbark bf16": ("Trainer bf16", 1.5)}
EQUAL = 1e-4  # a larger difference of losses is not due to rounding


def report(figures: Figures) -> str:
    """Return the report in Markdown."""
    lines = [
        "<!-- Made by benchmarks/training.py; do not edit. -->",
        "# Training a cross-encoder",
        "",
        *_conditions(figures),
        "",
    ]
    for kind in figures["times"]:
        lines += [*_table(figures, kind), ""]
    lines += [*_targets(figures), "", *_losses(figures), *notes(figures, NOTES)]
    return "\n".join(lines) + "\n"


def _conditions(figures: Figures) -> Iterator[str]:
    machine = figures["machine"]
    yield (
        f"{machine['processor']}, {figures['cores']} cores, all used, {machine['memory_gb']} GB; "
        f"Python {machine['python']}, numpy {machine['numpy']}, torch {figures['torch']}. Texts: "
        f"{figures['source']}; every other pair is relevant. Weights: all-MiniLM-L6-v2's "
        "encoder with a random head of one logit, the same for all; all weights are trained. "
        f"Batches of {BATCH}, dropout 0.1, binary cross-entropy; AdamW with rate {RATE:g} and "
        f"linear decay, weight decay {DECAY:g}, gradients clipped at {CLIP:g}. A round is one "
        "epoch from the same start. Rounds are interleaved; speed is the median (min–max), a ratio "
        "is the median of the ratios in each round."
    )
    for kind, workload in figures["workloads"].items():
        yield ""
        yield (
            f"{kind}: {workload['pairs']:,} pairs of query and {WORDS[kind]}, mean "
            f"{workload['tokens']:.0f} tokens, or {workload['padded']:.0f} when random batches "
            "are padded."
        )


def _table(figures: Figures, kind: str) -> Iterator[str]:
    times, pairs = figures["times"][kind], figures["workloads"][kind]["pairs"]
    yield f"Workload {kind}:"
    yield ""
    yield f"| loop | pairs/s | × {BASE} |"
    yield "| --- | ---: | ---: |"
    for name, seconds in times.items():
        speeds = sorted(pairs / duration for duration in seconds)
        per_round = ratios(times, name, BASE)
        version = figures["versions"][name]
        yield f"| {name} ({version}) | {spread(speeds, 1)} | {spread(per_round)} |"


def _targets(figures: Figures) -> Iterator[str]:
    yield "| target, all cores | at least | measured | |"
    yield "| --- | ---: | ---: | --- |"
    for name, (base, target) in TARGETS.items():
        for kind, times in figures["times"].items():
            if name in times and base in times:
                ratio = statistics.median(ratios(times, name, base))
                verdict = "met" if ratio >= target else "missed"
                pair = f"{name} / {base}, {kind}"
                yield f"| {pair} | {target:.1f} × | {ratio:.2f} × | {verdict} |"


def _losses(figures: Figures) -> Iterator[str]:
    """Yield the losses of both loops, step by step, and their largest difference."""
    for kind, losses in figures["losses"].items():
        if not losses:
            continue
        ours, theirs = losses[OURS], losses[BASE]
        difference = max(abs(a - b) for a, b in zip(ours, theirs, strict=True))
        steps = len(ours)
        yield (
            f"Workload {kind}, the same batches without dropout: losses differ by at most "
            f"{difference:.1e} (target: {EQUAL:g}; {'met' if difference <= EQUAL else 'missed'})."
        )
        yield ""
        yield "| loss at step | " + " | ".join(str(step + 1) for step in range(steps)) + " |"
        yield "| --- |" + " ---: |" * steps
        for name, values in losses.items():
            yield f"| {name} | " + " | ".join(f"{value:.6f}" for value in values) + " |"
        yield ""


NOTES = """
The time covers all steps of an epoch: collating batches, forward pass, backward pass, clipping and
the optimiser's step. Tokenising and loading the model are not included; nothing is validated or
saved. birchbark reads the loss of each step, to stop on NaN; the Trainer logs nothing.

birchbark does not pad, and computes the last layer only for [CLS]; its attention is in float32 with
bf16 too. Trainer is that of transformers with its defaults (fused AdamW, SDPA) on a list of token
ids with DataCollatorWithPadding, which pads each batch to its longest input; bf16 is its bf16=True.
"Grouped by length" is its train_sampling_strategy="group_by_length", which reduces padding and
makes batches less random; birchbark's remain random. Its time is its own train_runtime, which
starts after preparation. Losses are compared in float32, in the order that birchbark drew.
"""
