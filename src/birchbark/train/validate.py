"""How well does a network rank the queries that were kept apart?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from birchbark.errors import InputError
from birchbark.evaluate.measures import measure
from birchbark.records import Float32s, Qrels, Ranking, Run
from birchbark.train.config import Validation
from birchbark.train.loop import Learner, in_batches
from birchbark.train.material import Inputs as PairInputs
from birchbark.train.material import Material
from birchbark.train.network import Inputs

TOKENS = 8192


def validate(learner: Learner, materials: Sequence[Material], name: str) -> dict[str, float]:
    """Data set → mean of measure `name` over its held queries that have a relevant text.

    Each query's judged texts are ranked by their log-odds. Sets that hold no queries are left out.
    """
    return {
        material.data.name: measure(*_ranked(learner, material.held), (name,)).means[name]
        for material in materials
        if len(material.held.pairs)
    }


def check_validation(materials: Sequence[Material], how: Validation) -> None:
    """Raise InputError for what `validate` could not do, before anything is learnt.

    That is an unknown measure, a share of the queries that is none of them or holds no relevant
    text, and patience without any.
    """
    measure(Qrels({"q": {"d": 1}}), Run({"q": Ranking.of(["d"], [1.0])}), (how.measure,))
    for material in materials:
        pairs = material.held.pairs
        if material.data.validation and not (pairs.grades > 0).any():
            raise InputError(
                "no query that is kept apart has a relevant text",
                where=material.data.name,
                found=f"{len(pairs.queries)} queries kept apart",
                remedy="a larger share of the queries, or validation = 0",
            )
    if how.patience and not any(material.data.validation for material in materials):
        raise InputError(
            "patience needs queries kept apart", remedy="validation = 0.1 in a data set keeps some"
        )


def _ranked(learner: Learner, held: PairInputs) -> tuple[Qrels, Run]:
    pairs, scores = held.pairs, judge(learner, held)
    grades, rankings = {}, {}
    for query, numbers in zip(pairs.queries, pairs.by_query, strict=True):
        if pairs.grades[numbers].max() > 0:
            doc_ids = [f"{pairs.doc_ids[n]} {n}" for n in numbers]  # a text may be judged twice
            grades[query] = dict(zip(doc_ids, map(int, pairs.grades[numbers]), strict=True))
            rankings[query] = Ranking.of(doc_ids, scores[numbers])
    return Qrels(grades), Run(rankings)


def judge(learner: Learner, inputs: PairInputs) -> Float32s:
    """Log-odds (n,) of all pairs, as the network is used: nothing is left to chance."""
    found = np.empty(len(inputs.pairs), np.float32)
    lengths = inputs.lengths.tolist()
    for batch in in_batches(lengths, TOKENS):
        with learner.products():
            logits = learner.network.judge(Inputs.of([inputs[n] for n in batch], learner.device))
        found[batch] = logits.cpu().numpy()
    return found
