"""How well does a network rank the queries that were kept apart?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import fsum

import numpy as np

from birchbark.errors import InputError
from birchbark.evaluate.measures import check_averaged, measure
from birchbark.evaluate.significance import mean_interval
from birchbark.records import Float32s, Qrels, Ranking, Run
from birchbark.train.config import Validation
from birchbark.train.examples import Pairs, draw
from birchbark.train.loop import MEASURED, Learner, in_batches, list_losses
from birchbark.train.masked import MaskedLearner
from birchbark.train.masking import LIKELIHOOD
from birchbark.train.material import COMPARED, Material, PairInputs
from birchbark.train.network import Inputs


@dataclass(frozen=True, slots=True)
class Figures:
    """What a data set's held queries say of a network.

    values: the measure's, of each query that has a relevant text. loss: of the set's own aims, mean
    over lists; None without any, or where targets are a teacher's, who is asked about no held pair.
    """

    values: Sequence[float]
    loss: float | None

    @property
    def mean(self) -> float:
        """The mean of the measure."""
        return fsum(self.values) / len(self.values)

    @property
    def told(self) -> dict[str, float | int]:
        """Mean, its 95 % interval (of one query: its value), and the number of queries."""
        count = len(self.values)
        low, high = mean_interval(np.array(self.values)) if count > 1 else (self.mean, self.mean)
        return {"mean": self.mean, "low": low, "high": high, "queries": count}


def validate(
    learner: Learner, materials: Sequence[Material], name: str, seed: int
) -> dict[str, Figures]:
    """Data set → figures of its held queries; sets that hold none are left out.

    Of a masked network the values are log-likelihoods of the held pairs.

    Each query's judged texts are ranked by their log-odds; measure `name` is a mean over queries
    that have a relevant text. seed: of the lists whose loss is taken, the same ones each time.
    """
    found = {}
    for material in materials:
        pairs = material.held.pairs
        if len(pairs):
            if isinstance(learner, MaskedLearner):
                values = learner.likelihoods(material, seed).astype(float).tolist()
                found[material.data.name] = Figures(values, None)
                continue
            duo = learner.network.form.duo
            logits = (duo_scores if duo else score_pairs)(learner, material.held)
            measured = measure(*_ranked(pairs, logits), (name,)).values[name]
            loss = None if duo else _loss(material, logits, seed)
            found[material.data.name] = Figures([*measured.values()], loss)
    return found


def _loss(material: Material, logits: Float32s, seed: int) -> float | None:
    """The mean loss of lists that are drawn as those that are learnt from, all of them."""
    import torch

    data, pairs = material.data, material.held.pairs
    if data.teachers or not data.aims:
        return None
    every = replace(data.draw, take=None)
    lists = [np.array(one) for one in draw(pairs, every, (seed,), data.learns_from)]
    if not lists:
        return None
    targets = [pairs.grades[one] for one in lists]
    scores = torch.from_numpy(logits)
    return sum(
        aim.weight * float(list_losses(aim.objective, scores, lists, targets).mean())
        for aim in data.aims
    )


def check_validation(materials: Sequence[Material], how: Validation) -> None:
    """Raise InputError for what `validate` could not do, before anything is learnt.

    That is an unknown measure, a share of the queries that is none of them or holds no relevant
    text, and patience without any.
    """
    if how.measure != LIKELIHOOD:
        check_averaged((how.measure,))
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


def _ranked(pairs: Pairs, scores: Float32s) -> tuple[Qrels, Run]:
    grades, rankings = {}, {}
    for query, numbers in zip(pairs.queries, pairs.by_query, strict=True):
        if pairs.grades[numbers].max() > 0:
            numbers = numbers[~np.isnan(scores[numbers])]
            doc_ids = [f"{pairs.doc_ids[n]} {n}" for n in numbers]  # a text may be judged twice
            grades[query] = dict(zip(doc_ids, map(int, pairs.grades[numbers]), strict=True))
            rankings[query] = Ranking.of(doc_ids, scores[numbers])
    return Qrels(grades), Run(rankings)


def duo_scores(learner: Learner, inputs: PairInputs) -> Float32s:
    """Sums (n,) of the chances that a pair is better than each other of its query.

    Of at most ten pairs a query, one with its highest grade among them; NaN for the others, drawn
    by the query's number alone.
    """
    pairs = inputs.pairs
    found = np.full(len(pairs), np.nan, np.float32)
    for query, numbers in enumerate(pairs.by_query):
        drawn = np.random.default_rng(query).permutation(numbers)
        best = drawn[np.argmax(pairs.grades[drawn])]
        some = [best, *drawn[drawn != best][: COMPARED - 1]]
        found[some] = 0
        asked = [(i, j) for i in some for j in some if i != j]
        read = [inputs.comparison(i, j) for i, j in asked]
        for batch in in_batches([len(ids) for ids, _ in read], MEASURED):
            with learner.products():
                them = Inputs.of([read[n] for n in batch], learner.device)
                chances = learner.network.score(them).sigmoid().cpu().numpy()
            np.add.at(found, [asked[n][0] for n in batch], chances)
    return found


def score_pairs(learner: Learner, inputs: PairInputs) -> Float32s:
    """Log-odds (n,) of all pairs, as the network is used: nothing is left to chance."""
    found = np.empty(len(inputs.pairs), np.float32)
    lengths = inputs.lengths.tolist()
    for batch in in_batches(lengths, MEASURED):
        with learner.products():
            several = [inputs[n] for n in batch]
            pairs, counts = [pair for own in several for pair in own], list(map(len, several))
            logits = learner.network.score(Inputs.of(pairs, learner.device, counts))
        found[batch] = logits.cpu().numpy()
    return found
