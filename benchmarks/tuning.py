"""How fast are interpolation weights chosen by cross-validation, compared with trec_eval?

    python -m benchmarks.tuning --output benchmarks/RESULTS-TUNING.md

The experiment of the birch paper at the size of Robust04, with random scores: 250 queries, 1,000
candidates each, the grid of a, w2 and w3 in steps of .1 (1,331 points), AP, five folds, one core.
The peer is trec_eval's code, called in this process through pytrec_eval for each point of the grid,
as the paper's programs call trec_eval. It is timed on a sample of the points. The values at these
points must agree, or the benchmark fails.
"""

from __future__ import annotations

import os
import sys
import time
from itertools import product
from pathlib import Path

import click
import numpy as np
import pytrec_eval

from birchbark.evaluate.folds import make_folds
from birchbark.evaluate.tune import Candidates, tune
from birchbark.records import Qrels, Ranking

LEVELS = np.arange(11) / 10
RELEVANT, SEGMENTS, FOLDS = 70, 3, 5  # Robust04 has 17,412 relevant documents for 249 topics
SAME = 1e-9


@click.command()
@click.option("--queries", default=250, show_default=True)
@click.option("--depth", default=1000, show_default=True)
@click.option("--points", default=20, show_default=True, help="Points that trec_eval is timed on.")
@click.option("--output", type=click.Path(path_type=Path), help="Markdown.  [default: stdout]")
def main(queries: int, depth: int, points: int, output: Path | None) -> None:
    """Time birchbark and trec_eval, and compare their values."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    candidates, qrels = _collection(queries, depth)
    grid = np.array(
        [
            (a, *((1 - a) * w for w in (1.0, *ws)))
            for a in LEVELS
            for ws in product(LEVELS, repeat=2)
        ]
    )
    folds = make_folds(qrels.grades, FOLDS, 0)
    started = time.perf_counter()
    tuning = tune(candidates, qrels, grid, "AP", folds, depth)
    ours = time.perf_counter() - started
    sample = np.linspace(0, len(grid) - 1, points).astype(int)
    started = time.perf_counter()
    theirs = [_by_trec_eval(candidates, qrels, grid[point].tolist()) for point in sample]
    each = (time.perf_counter() - started) / points
    difference = max(
        abs(values[query_id] - tuning.values[point, position])
        for point, values in zip(sample, theirs, strict=True)
        for position, query_id in enumerate(tuning.query_ids)
    )
    sizes = f"{queries} queries, {depth:,} candidates, {len(grid):,} points, one core"
    peer_seconds = each * len(grid)
    text = f"""<!-- Made by benchmarks/tuning.py; do not edit. -->
# Weights by cross-validation: {sizes}

| | seconds |
| --- | --- |
| all points evaluated, weights of {FOLDS} folds chosen | {ours:.1f} |
| trec_eval's code in the same process, extrapolated from {points} points | {peer_seconds:.0f} |
| ratio | {peer_seconds / ours:.0f} |

AP of every query at these {points} points differs by at most {difference:.1e}.
"""
    if output is None:
        click.echo(text, nl=False)
    else:
        output.write_text(text)
    if difference > SAME:
        sys.exit(f"values differ by {difference}")


def _collection(queries: int, depth: int) -> tuple[dict[str, Candidates], Qrels]:
    """Draw scores of a first stage and of three segments, almost without ties."""
    random = np.random.default_rng(0)
    ids = tuple(sorted((f"d{number}" for number in range(depth)), reverse=True))
    candidates, grades = {}, {}
    for query in map(str, range(queries)):
        first = random.uniform(0.2, 1, (depth, 1))
        segments = np.sort(random.beta(0.3, 2, (depth, SEGMENTS)), axis=1)[:, ::-1]
        candidates[query] = Candidates(ids, np.concatenate([first, segments], axis=1))
        relevant = random.choice(depth, min(depth, RELEVANT), replace=False)
        grades[query] = {f"d{number}": 1 for number in relevant}
    return candidates, Qrels(grades)


def _by_trec_eval(
    candidates: dict[str, Candidates],
    qrels: Qrels,
    weights: np.ndarray[tuple[int], np.dtype[np.float64]],
) -> dict[str, float]:
    """Return query_id → AP for one combination of weights."""
    run = {}
    for query_id, of_query in candidates.items():
        combined = sum(w * of_query.scores[:, column] for column, w in enumerate(weights))
        ranking = Ranking.of(of_query.doc_ids, combined)
        run[query_id] = {doc_id: -float(rank) for rank, doc_id in enumerate(ranking.doc_ids)}
    judged = {query_id: dict(grades) for query_id, grades in qrels.grades.items()}
    values = pytrec_eval.RelevanceEvaluator(judged, {"map"}).evaluate(run)
    return {query_id: measures["map"] for query_id, measures in values.items()}


if __name__ == "__main__":
    main()
