"""How do the figures of training read as tables, and is the target met?"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from typing import Any

from benchmarks.report import notes
from benchmarks.score_report import WORDS, ratios, spread
from benchmarks.training_engines import BASE, BATCH, CLIP, DECAY, OURS, RATE

Figures = dict[str, Any]
# Engine → the one it is held against, and what is aimed at, in times its speed.
TARGETS = {OURS: (BASE, 1.5), "birchbark bf16": ("Trainer bf16", 1.5)}
EQUAL = 1e-4  # a larger difference of losses is not rounding


def report(figures: Figures) -> str:
    """Markdown."""
    lines = [
        "<!-- Made by benchmarks/training.py; not to be edited. -->",
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
        f"{figures['source']}; every other pair is called relevant. Weights: all-MiniLM-L6-v2's "
        "encoder with a head of one logit drawn from a seed, the same for all; all of them learn. "
        f"Batches of {BATCH}, dropout 0.1, binary cross-entropy; AdamW with rate {RATE:g} that "
        f"falls linearly, decay {DECAY:g}, gradients clipped at {CLIP:g}. A round is one epoch "
        "from the same start. Rounds take turns; speed is the median (least–most), a ratio that of "
        "one round, the median of them."
    )
    for kind, found in figures["workloads"].items():
        yield ""
        yield (
            f"{kind}: {found['pairs']:,} pairs of query and {WORDS[kind]}, mean "
            f"{found['tokens']:.0f} tokens; {found['padded']:.0f} where batches drawn by chance "
            "are padded."
        )


def _table(figures: Figures, kind: str) -> Iterator[str]:
    times, pairs = figures["times"][kind], figures["workloads"][kind]["pairs"]
    yield f"Workload {kind}:"
    yield ""
    yield f"| loop | pairs/s | × {BASE} |"
    yield "| --- | ---: | ---: |"
    for name, seconds in times.items():
        speeds = sorted(pairs / one for one in seconds)
        per_round = ratios(times, name, BASE)
        version = figures["versions"][name]
        yield f"| {name} ({version}) | {spread(speeds, 1)} | {spread(per_round)} |"


def _targets(figures: Figures) -> Iterator[str]:
    yield "| target, all cores | aim | found | |"
    yield "| --- | ---: | ---: | --- |"
    for name, (base, aim) in TARGETS.items():
        for kind, times in figures["times"].items():
            if name in times and base in times:
                found = statistics.median(ratios(times, name, base))
                verdict = "met" if found >= aim else "missed"
                yield f"| {name} beside {base}, {kind} | {aim:.1f} × | {found:.2f} × | {verdict} |"


def _losses(figures: Figures) -> Iterator[str]:
    """Losses of both loops, step by step, and how far they are apart."""
    for kind, losses in figures["losses"].items():
        if not losses:
            continue
        ours, theirs = losses[OURS], losses[BASE]
        apart = max(abs(a - b) for a, b in zip(ours, theirs, strict=True))
        steps = len(ours)
        yield (
            f"Workload {kind}, the same batches without dropout: losses differ by at most "
            f"{apart:.1e} (wanted: {EQUAL:g}; {'met' if apart <= EQUAL else 'missed'})."
        )
        yield ""
        yield "| loss at step | " + " | ".join(str(step + 1) for step in range(steps)) + " |"
        yield "| --- |" + " ---: |" * steps
        for name, values in losses.items():
            yield f"| {name} | " + " | ".join(f"{value:.6f}" for value in values) + " |"
        yield ""


NOTES = """
Counted are all steps of an epoch: putting batches together, forward pass, backward pass, clipping
and the optimiser's step. Both loops get texts that were turned into token ids before, which is not
counted, nor is loading the model; nothing is validated or saved. birchbark reads the loss of each
step, as it does to refuse one that is no number; the Trainer logs nothing.

birchbark puts no padding between inputs, and computes the last layer for [CLS] alone; its attention
is in float32 in bf16 too. Trainer is transformers' at its defaults (fused AdamW, SDPA) on a list of
token ids with DataCollatorWithPadding, which pads each batch to its longest input; bf16 is its
bf16=True. "Grouped by length" is its train_sampling_strategy="group_by_length", which leaves less
to pad and makes batches less random; birchbark's stay random. Time is the Trainer's own
train_runtime, which begins when all is prepared. Losses are compared in float32, in the order that
birchbark drew.
"""
