"""How fast is a model in each precision on this machine, and how close are its scores to fp32?"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from birchbark.checkpoint.checkpoint import Checkpoint
from birchbark.checkpoint.quantize import quantize_model
from birchbark.errors import InputError
from birchbark.records import Float32s
from birchbark.score.load_scorer import load_scorer
from birchbark.score.precision import Precision
from birchbark.score.scorer import Scorer, score_texts
from birchbark.score.session import SessionFactory

Requests = Sequence[tuple[str, Sequence[str]]]  # each query with its texts


@dataclass(frozen=True, slots=True)
class PrecisionResult:
    """Size, speed and agreement of one precision: a row of the table.

    Attributes:
        name: Name of the precision.
        megabytes: Size of the weights on disk.
        speed: Workload → pairs scored per second.
        tau: Kendall's τ-b with the scores in fp32, averaged over queries.
        difference: Largest absolute difference from a score in fp32; scores are in [0, 1].
    """

    name: str
    megabytes: float
    speed: dict[str, float]
    tau: float
    difference: float


def check_precisions(
    model: Path,
    workloads: dict[str, Requests],
    threads: int | None = None,
    advance: Callable[[int], None] = lambda steps: None,
    session: SessionFactory | None = None,
) -> Iterator[PrecisionResult]:
    """Yield the result of fp32, then those of the other precisions.

    model: the model directory. workloads: name → queries with texts. threads, session: see
    load_scorer; precisions that the session does not compute are left out. advance: called with 1
    for each precision. Raises InputError for a model that scores documents
    instead of texts (PARADE).
    """
    exact: list[Float32s] = []
    with tempfile.TemporaryDirectory() as scratch:
        variants = (  # name, bits per stored weight (0: unchanged), arithmetic
            ("fp32", 0, Precision.FP32),
            ("weights in 16 bits", 16, Precision.FP32),
            ("weights in 8 bits", 8, Precision.FP32),
            *((f"{p.value} arithmetic", 0, p) for p in Precision if p is not Precision.FP32),
        )
        for name, bits, precision in variants:
            advance(1)
            if not (precision.runs_on_cpu if session is None else precision.runs_on_gpu):
                continue
            directory = Path(scratch) / str(bits) if bits else model
            if bits:
                quantize_model(model, bits, directory)
            scorer = load_scorer(directory, threads, precision=precision, session=session)
            if scorer.width > 1:
                raise InputError(
                    "precisions are only compared for models that score texts", where=str(model)
                )
            speed, scores = _measure(scorer, workloads)
            exact = exact or scores
            yield PrecisionResult(
                name,
                Checkpoint.open(directory).bytes / 1e6,
                speed,
                float(np.mean([kendall(a, b) for a, b in zip(exact, scores, strict=True)])),
                max(float(np.abs(a - b).max()) for a, b in zip(exact, scores, strict=True)),
            )


def _measure(
    scorer: Scorer, workloads: dict[str, Requests]
) -> tuple[dict[str, float], list[Float32s]]:
    """Return workload → pairs scored per second, and the scores for each query."""
    score_texts(scorer, "warm up", ["a text to warm up with", "and one more"])
    speed: dict[str, float] = {}
    all_scores: list[Float32s] = []
    for name, requests in workloads.items():
        start = time.perf_counter()
        scores = [score_texts(scorer, query, texts) for query, texts in requests]
        speed[name] = sum(map(len, scores)) / (time.perf_counter() - start)
        all_scores += scores
    return speed, all_scores


def kendall(scores: Float32s, others: Float32s) -> float:
    """Return Kendall's τ-b of two lists of scores (n,).

    It is 1 if all scores are tied in both lists, and 0 if they are tied in only one.
    """
    a, b = (np.sign(np.subtract.outer(x, x)) for x in (scores, others))  # (n, n)
    untied = float(np.sqrt((a * a).sum() * (b * b).sum()))
    return float((a * b).sum()) / untied if untied else float(not (a.any() or b.any()))
