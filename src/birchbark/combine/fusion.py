"""How are whole runs combined into one?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isfinite

import numpy as np
from numpy.typing import NDArray

from birchbark import defaults
from birchbark.arguments import choice_of, instances_of, listed
from birchbark.combine.interpolate import DEFAULT_SCALE, Scale, scale_scores
from birchbark.errors import InputError, require_number
from birchbark.records import Ranking, Run


def reciprocal_rank_fusion(
    runs: Sequence[Run],
    weights: Sequence[float] | None = None,
    rank_constant: float = defaults.RANK_CONSTANT,
) -> Run:
    """Rank documents by the sum of weight / (rank_constant + rank) over runs (Cormack et al. 2009).

    Args:
        runs: The runs. A query of any run is in the result; a document that a run does not rank
            gets nothing from it.
        weights: The weight of each run, 0 or more. Defaults to None: 1 for each.
        rank_constant: 0 or more; the larger it is, the less the first ranks stand out. Defaults
            to 60.

    Raises:
        InputError: There are no runs, or a weight or the constant is invalid.
    """
    require_number("rank constant", rank_constant)
    if not (isfinite(rank_constant) and rank_constant >= 0):
        raise InputError("rank constant out of range", wanted="0 or more", found=str(rank_constant))
    return _fuse(runs, weights, lambda r: _reciprocal_ranks(r, rank_constant), "rrf")


def fuse_rankings(rankings: Sequence[Ranking], depth: int) -> Ranking:
    """Fuse rankings of one query as `reciprocal_rank_fusion` does by default."""
    shares = [(ranking, _reciprocal_ranks(ranking, defaults.RANK_CONSTANT)) for ranking in rankings]
    return _sum_shares(shares, depth)


def score_fusion(
    runs: Sequence[Run],
    weights: Sequence[float] | None = None,
    scale: Scale | str = DEFAULT_SCALE,
) -> Run:
    """Rank documents by the weighted sum of their scaled scores.

    Args:
        runs: See `reciprocal_rank_fusion`.
        weights: The weight of each run, 0 or more. Defaults to None: 1 for each.
        scale: How the scores of a run are scaled for each query: `max`, divided by the highest;
            `minmax`, mapped linearly to [0, 1], equal ones to 0; `raw`, unchanged. Defaults to
            `max`. Scores below 0 need `minmax`.

    Raises:
        InputError: There are no runs, a weight is invalid, or a query's scores cannot be scaled.
    """
    parsed = choice_of(Scale, scale, "scale")

    def shares(ranking: Ranking) -> NDArray[np.float64]:
        check_above_unranked(ranking, parsed)
        return scale_scores(ranking.scores, parsed)

    return _fuse(runs, weights, shares, "fused")


def check_above_unranked(ranking: Ranking, scale: Scale) -> None:
    """Raise InputError for a score below 0, since a document that is not ranked counts as 0."""
    if scale is not Scale.MINMAX and len(ranking) and ranking.scores[-1] < 0:
        raise InputError(
            "a score is below 0, so documents that are not ranked, which count as 0, would be "
            "above it",
            found=f"{ranking.scores[-1]:g}",
            remedy="use the scale minmax",
        )


def _fuse(
    runs: Sequence[Run],
    weights: Sequence[float] | None,
    shares: Callable[[Ranking], NDArray[np.float64]],
    tag: str,
) -> Run:
    """Sum the weighted shares of each document. shares: of a ranking's documents, (n,)."""
    runs = instances_of(runs, Run, "runs")
    if not runs:
        raise InputError("no runs to combine")
    given = [1.0] * len(runs) if weights is None else listed(weights, "weights")
    for weight in given:
        require_number("weight of a run", weight)
    if len(given) != len(runs):
        raise InputError("wrong number of weights", wanted=str(len(runs)), found=str(len(given)))
    if not all(isfinite(weight) and weight >= 0 for weight in given) or not any(given):
        raise InputError(
            "invalid weights of runs", wanted="0 or more, and one above 0", found=str(given)
        )
    rankings = {}
    for query_id in dict.fromkeys(query_id for run in runs for query_id in run.rankings):
        weighted: list[tuple[Ranking, NDArray[np.float64]]] = []
        for run, weight in zip(runs, given, strict=True):
            if ranking := run.rankings.get(query_id):
                try:
                    weighted.append((ranking, weight * shares(ranking)))
                except InputError as error:
                    raise error.at(f"run {run.tag}, query {query_id}") from None
        rankings[query_id] = _sum_shares(weighted)
    return Run(rankings, tag)


def _reciprocal_ranks(ranking: Ranking, rank_constant: float) -> NDArray[np.float64]:
    return 1 / (rank_constant + np.arange(1, len(ranking) + 1))


def _sum_shares(
    rankings: Sequence[tuple[Ranking, NDArray[np.float64]]], depth: int | None = None
) -> Ranking:
    """Rank documents by the sum of their shares. rankings: each with the shares (n,) it gives."""
    sums: dict[str, float] = {}
    for ranking, shares in rankings:
        for doc_id, share in zip(ranking.doc_ids, shares.tolist(), strict=True):
            sums[doc_id] = sums.get(doc_id, 0.0) + share
    return Ranking.from_pairs(sums, depth)
