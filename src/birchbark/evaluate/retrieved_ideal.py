"""How is nDCG computed whose ideal ranking has only the documents that were retrieved?

Reports that sort their own results for the ideal ranking, instead of all relevant documents, have
this measure. It is higher, and a ranking that retrieves less can have a higher value.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from itertools import islice
from typing import Any

NAME = "nDCG_retrieved"


@cache
def ndcg_retrieved() -> Any:
    """Return the measure, which has the parameters of ir-measures' nDCG."""
    from ir_measures import nDCG

    return type(NAME, (type(nDCG),), {"NAME": NAME, "__name__": NAME})()


def as_ndcg(measure: Any) -> Any:
    """Return nDCG with the parameters of this measure."""
    from ir_measures import nDCG

    return nDCG(**measure.params)


def retrieved_judgments(
    judged: Mapping[str, Mapping[str, int]],
    rankings: Mapping[str, Mapping[str, float]],
    cutoff: int | None,
) -> dict[str, dict[str, int]]:
    """Return the grades of the first `cutoff` documents of each ranking, 0 for unjudged ones.

    judged: query → document → grade. rankings: query → document → score, best first.
    """
    return {
        query: {doc: judged[query].get(doc, 0) for doc in islice(scores, cutoff)}
        for query, scores in rankings.items()
    }
