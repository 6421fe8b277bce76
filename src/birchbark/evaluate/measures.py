"""What do the standard measures say of a run? Computed by ir-measures, named as it names them.

Every measure sees the ranking in our order: documents are handed over with their ranks for scores,
so that tools with tie rules of their own have no ties left to break. The order is trec_eval's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from birchbark.errors import InputError
from birchbark.records import Qrels, Run

USUAL = ("AP", "nDCG@10", "RR@10", "P@5")


@dataclass(frozen=True, slots=True)
class Results:
    """Values of measures for each judged query, and over all of them.

    values: measure → query_id → value. Queries that the run does not rank count 0, as with
    trec_eval -c; `unranked` counts them. `unjudged` counts queries of the run without judgments,
    which are left out. means: measure → mean over all judged queries (a sum for counts: NumRet).
    """

    tag: str
    values: Mapping[str, Mapping[str, float]]
    means: Mapping[str, float]
    unranked: int = 0
    unjudged: int = 0


def measure(
    qrels: Qrels, run: Run, names: Sequence[str] = USUAL, *, judged_only: bool = False
) -> Results:
    """Evaluate `run`. names: as ir-measures spells them (AP, nDCG@20, P@20, RR@10, Bpref, …).

    judged_only: documents without a judgment are taken out of the ranking first.
    Raises InputError for an unknown measure, or if no query of the run is judged.
    """
    import ir_measures

    parsed = {name: _parse(name) for name in names}
    if not parsed:
        raise InputError("no measure was asked for")
    ranked = {
        query_id: run.rankings[query_id] for query_id in qrels.grades if query_id in run.rankings
    }
    if not ranked:
        raise InputError(
            "no query of the run is judged",
            found=f"{_some(run.rankings)} in the run, {_some(qrels.grades)} in the qrels",
            remedy="do both belong to one test collection?",
        )
    by_rank = {
        query_id: {
            doc_id: float(-rank)
            for rank, doc_id in enumerate(
                doc_id
                for doc_id in ranking.doc_ids
                if not judged_only or doc_id in qrels.grades[query_id]
            )
        }
        for query_id, ranking in ranked.items()
    }
    judged = {query_id: dict(grades) for query_id, grades in qrels.grades.items()}
    distinct = {str(m): m for m in parsed.values()}  # AP and MAP are one
    found: dict[str, dict[str, float]] = {m: dict.fromkeys(qrels.grades, 0.0) for m in distinct}
    for one in ir_measures.iter_calc(list(distinct.values()), judged, by_rank):
        found[str(one.measure)][one.query_id] = float(one.value)
    return Results(
        run.tag,
        {name: found[str(m)] for name, m in parsed.items()},
        {name: _aggregate(m, found[str(m)].values()) for name, m in parsed.items()},
        len(qrels.grades) - len(ranked),
        len(run.rankings.keys() - qrels.grades),
    )


def check_averaged(names: Iterable[str]) -> None:
    """Raise InputError for an unknown measure, and for a count, which is summed over queries."""
    for name in names:
        if type(_parse(name).aggregator()).__name__ == "SumAgg":
            raise InputError(f"measure {name!r} is a count", wanted="one that is averaged")


def _aggregate(measure: Any, values: Iterable[float]) -> float:
    """As the measure has it: the mean for most, the sum for counts."""
    aggregator = measure.aggregator()
    for value in values:
        aggregator.add(value)
    return float(aggregator.result())


def _parse(name: str) -> Any:
    import ir_measures

    try:
        measure = ir_measures.parse_measure(name)
        if measure.params.get("cutoff", 1) < 1:
            raise ValueError("the cutoff must be 1 or more")
        supports: Any = ir_measures.DefaultPipeline.supports
        supported = supports(measure)
    except (NameError, ValueError, SyntaxError, TypeError, AssertionError) as unknown:
        raise InputError(
            f"unknown measure {name!r}: {unknown}",
            remedy="spell it as ir-measures does: AP, nDCG@10, P@20, RR@10, R@1000, Bpref",
        ) from None
    if not supported:
        raise InputError(
            f"measure {name!r} needs a package that is not installed",
            remedy="see the providers of ir-measures: https://ir-measur.es",
        )
    return measure


def _some(ids: Mapping[str, object]) -> str:
    shown = ", ".join(list(ids)[:3])
    return f"{shown}, …" if len(ids) > 3 else shown
