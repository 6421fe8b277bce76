"""How fast is a model here in each precision, and how near to fp32 are its scores?"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from birchbark.checkpoint.packing import pack
from birchbark.checkpoint.reader import Checkpoint
from birchbark.errors import InputError
from birchbark.records import Float32s
from birchbark.score.model import load_scorer
from birchbark.score.precision import Precision
from birchbark.score.scorer import Scorer, score_texts

Requests = Sequence[tuple[str, Sequence[str]]]  # a query with its texts


@dataclass(frozen=True, slots=True)
class Checked:
    """A precision's row of the table.

    megabytes: of the weights' file. speed: workload → pairs a second. tau: mean over queries of
    Kendall's τ-b to fp32's scores. difference: the largest, of scores in [0, 1].
    """

    name: str
    megabytes: float
    speed: dict[str, float]
    tau: float
    difference: float


def compared(
    model: Path,
    workloads: dict[str, Requests],
    threads: int | None = None,
    advance: Callable[[int], None] = lambda steps: None,
) -> Iterator[Checked]:
    """Measure fp32 first, then the others; `advance` is called after each."""
    exact: list[Float32s] = []
    with tempfile.TemporaryDirectory() as scratch:
        kinds = [("fp32", 0, Precision.FP32), ("weights in 16 bits", 16, Precision.FP32)]
        kinds += [("weights in 8 bits", 8, Precision.FP32), ("int8 arithmetic", 0, Precision.INT8)]
        for name, bits, precision in kinds:
            home = Path(scratch) / str(bits) if bits else model
            if bits:
                pack(model, bits, home)
            scorer = load_scorer(home, threads, precision=precision)
            if scorer.width > 1:
                raise InputError("only models that score texts are checked", where=str(model))
            speed, scores = _measure(scorer, workloads)
            exact = exact or scores
            yield Checked(
                name,
                Checkpoint.open(home).bytes / 1e6,
                speed,
                float(np.mean([kendall(a, b) for a, b in zip(exact, scores, strict=True)])),
                max(float(np.abs(a - b).max()) for a, b in zip(exact, scores, strict=True)),
            )
            advance(1)


def _measure(
    scorer: Scorer, workloads: dict[str, Requests]
) -> tuple[dict[str, float], list[Float32s]]:
    """Pairs a second of each workload, and the scores of each query."""
    score_texts(scorer, "warm up", ["a text to warm up with", "and one more"])
    speed: dict[str, float] = {}
    scores: list[Float32s] = []
    for name, requests in workloads.items():
        start = time.perf_counter()
        found = [score_texts(scorer, query, texts) for query, texts in requests]
        speed[name] = sum(map(len, found)) / (time.perf_counter() - start)
        scores += found
    return speed, scores


def kendall(one: Float32s, other: Float32s) -> float:
    """τ-b of two lists of scores; 1 where neither tells any two apart."""
    a, b = (np.sign(np.subtract.outer(x, x)) for x in (one, other))
    told = float(np.sqrt((a * a).sum() * (b * b).sum()))
    return float((a * b).sum()) / told if told else float(not (a.any() or b.any()))
