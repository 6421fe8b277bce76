"""What do the standard measures say of a run? Computed by ir-measures, named as it names them.

Every measure sees the ranking in our order: documents are handed over with their ranks for scores,
so that tools with tie rules of their own have no ties left to break. The order is trec_eval's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from birchbark.errors import InputError
from birchbark.records import Float32s, Qrels, Run

USUAL = ("AP", "nDCG@10", "RR@10", "P@5")


@dataclass(frozen=True)
class Results:
    """Values of measures for each judged query.

    values: measure → query_id → value. Queries that the run does not rank count 0, as with
    trec_eval -c; `unranked` counts them. `unjudged` counts queries of the run without judgments,
    which are left out.
    """

    tag: str
    values: Mapping[str, Mapping[str, float]]
    unranked: int
    unjudged: int

    @cached_property
    def means(self) -> dict[str, float]:
        """Measure → mean over all judged queries."""
        return {name: float(np.mean([*of.values()])) for name, of in self.values.items()}

    def vector(self, measure_name: str) -> Float32s:
        """Values (queries,) of one measure, in the order of the qrels."""
        return np.array([*self.values[measure_name].values()])


def measure(
    qrels: Qrels, run: Run, names: Sequence[str] = USUAL, *, judged_only: bool = False
) -> Results:
    """Evaluate `run`. names: as ir-measures spells them (AP, nDCG@20, P@20, RR@10, Bpref, …).

    judged_only: documents without a judgment are taken out of the ranking first.
    Raises InputError for an unknown measure, or if no query of the run is judged.
    """
    import ir_measures

    parsed = {name: _parse(name) for name in names}
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
    values: dict[str, dict[str, float]] = {n: dict.fromkeys(qrels.grades, 0.0) for n in names}
    name_of = {str(m): name for name, m in parsed.items()}
    for found in ir_measures.iter_calc(list(parsed.values()), judged, by_rank):
        values[name_of[str(found.measure)]][found.query_id] = float(found.value)
    return Results(
        run.tag, values, len(qrels.grades) - len(ranked), len(run.rankings.keys() - qrels.grades)
    )


def _parse(name: str) -> Any:
    import ir_measures

    try:
        parsed = ir_measures.parse_measure(name)
    except (NameError, ValueError, SyntaxError, TypeError) as unknown:
        raise InputError(
            f"unknown measure {name!r}: {unknown}",
            remedy="spell it as ir-measures does: AP, nDCG@10, P@20, RR@10, R@1000, Bpref",
        ) from None
    supports: Any = ir_measures.DefaultPipeline.supports
    if not supports(parsed):
        raise InputError(
            f"measure {name!r} needs a package that is not installed",
            remedy="see the providers of ir-measures: https://ir-measur.es",
        )
    return parsed


def _some(ids: Mapping[str, object]) -> str:
    shown = ", ".join(list(ids)[:3])
    return f"{shown}, …" if len(ids) > 3 else shown
