"""How well does a network rank the texts of held-out queries?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import fsum

import numpy as np

from birchbark.errors import InputError
from birchbark.evaluate.measures import check_averaged, measure
from birchbark.evaluate.rank_measures import Float64s
from birchbark.evaluate.significance import mean_interval
from birchbark.pairs.pair_table import Indices, PairTable
from birchbark.records import Float32s, Qrels, Ranking, Run
from birchbark.score.batches import similar_lengths
from birchbark.train.config import LOSS, ValidationSettings
from birchbark.train.dataset import MAX_COMPARED, TokenisedDataSet
from birchbark.train.learner import Learner, list_losses
from birchbark.train.lists import sample_lists
from birchbark.train.masked_lm import MaskedLearner
from birchbark.train.masking import LOG_LIKELIHOOD
from birchbark.train.packed_inputs import PackedInputs
from birchbark.train.pair_inputs import PairInputs


@dataclass(frozen=True, slots=True)
class ValidationResult:
    """How well a network performs on the held-out queries of a data set.

    values: the measure's value for each query with a relevant text; for `loss`, the mean loss of
    each query's lists; for a masked model, the log-likelihood of each held-out pair.
    loss: the sum over loss terms of the term's weight times the mean loss per list; None for duo
    and masked models, without loss terms or lists, and if a term has a teacher, because held-out
    pairs have no teacher scores.
    agreement: for duo, the share of compared pairs of texts whose order does not depend on which of
    them is read first: p_ij and p_ji lie on different sides of ½ (0.5 by chance). None for other
    models, and without comparisons.
    """

    values: Sequence[float]
    loss: float | None
    agreement: float | None = None

    @property
    def mean(self) -> float:
        """The mean of the values."""
        return fsum(self.values) / len(self.values)

    @property
    def summary(self) -> dict[str, float | int]:
        """The mean, the bounds of its 95 % confidence interval, and the number of values.

        With a single value, both bounds are that value. For duo, also the agreement.
        """
        count = len(self.values)
        low, high = mean_interval(np.array(self.values)) if count > 1 else (self.mean, self.mean)
        agreement = {} if self.agreement is None else {"agreement": self.agreement}
        return {"mean": self.mean, "low": low, "high": high, "queries": count, **agreement}


def validate(
    learner: Learner, datasets: Sequence[TokenisedDataSet], measure_name: str, seed: int
) -> dict[str, ValidationResult]:
    """Return the validation result of each data set with held-out queries, by name.

    The measure is computed from a ranking of each query's judged texts; for a duo model, of at most
    MAX_COMPARED of them. `loss`, and the log-likelihood of a masked model, need no ranking.
    seed: seed for sampling the lists whose loss is computed, and for masking; with equal seeds, all
    validations use the same lists and masks.
    """
    results = {}
    for dataset in datasets:
        inputs, name = dataset.heldout_pairs, dataset.config.name
        if not len(inputs.pairs):
            continue
        if isinstance(learner, MaskedLearner):
            values = learner.log_likelihoods(dataset, seed).astype(float).tolist()
            results[name] = ValidationResult(values, None)
            continue
        loss = agreement = None
        if learner.network.architecture.duo:
            scores, agreement = compare_pairs(learner, inputs)
        else:
            scores = score_pairs(learner, inputs)
            losses = _list_losses(dataset, scores, seed)
            if losses is not None:
                loss = float(np.concatenate(losses).mean())
            if measure_name == LOSS:
                _require_losses(losses, name)
                results[name] = ValidationResult(_means(losses or ()), loss)
                continue
        by_query = measure(*_qrels_and_run(inputs.pairs, scores), (measure_name,)).values[
            measure_name
        ]
        results[name] = ValidationResult([*by_query.values()], loss, agreement)
    return results


def _require_losses(lists: Sequence[object] | None, name: str) -> None:
    if not lists:
        raise InputError(
            "no held-out list has a loss",
            where=name,
            remedy="hold out more queries, or choose a ranking measure",
        )


def _means(losses: Sequence[Float64s]) -> list[float]:
    return [float(of_query.mean()) for of_query in losses]


def _list_losses(dataset: TokenisedDataSet, logits: Float32s, seed: int) -> list[Float64s] | None:
    """Return each query's losses of lists that are sampled as in training, (lists,) each.

    A list's loss is the weighted sum over loss terms.

    The result is None without loss terms or lists, and if a term has a teacher. logits: (pairs,).
    """
    import torch

    config, pairs = dataset.config, dataset.heldout_pairs.pairs
    lists = _held_out_lists(dataset, seed)
    if not lists:
        return None
    targets = [pairs.grades[indices] for indices in lists]
    scores = torch.from_numpy(logits)
    total = np.zeros(len(lists))
    for term in config.loss_terms:
        total += term.weight * list_losses(term.objective, scores, lists, targets).numpy()
    query = pairs.query[[indices[0] for indices in lists]]  # (lists,)
    order = np.argsort(query, kind="stable")
    return np.split(total[order], np.flatnonzero(np.diff(query[order])) + 1)


def _held_out_lists(dataset: TokenisedDataSet, seed: int) -> list[Indices]:
    """Return the held-out lists that have a loss; see `_list_losses`."""
    config = dataset.config
    if config.teachers or not config.loss_terms:
        return []
    sampling = replace(config.lists, take=None)
    pairs = dataset.heldout_pairs.pairs
    return list(sample_lists(pairs, sampling, (seed,), config.has_gradient))


def check_validation(datasets: Sequence[TokenisedDataSet], settings: ValidationSettings) -> None:
    """Raise InputError, before training starts, if validation cannot work.

    It cannot work if the measure is unknown, or if a data set has no held-out query with a relevant
    text or, with the measure `loss`, no held-out list that has one.
    """
    if settings.measure not in (LOSS, LOG_LIKELIHOOD):
        check_averaged((settings.measure,))
    for dataset in datasets:
        pairs = dataset.heldout_pairs.pairs
        if dataset.config.validation and not (pairs.grades > 0).any():
            raise InputError(
                "no held-out query has a relevant text",
                where=dataset.config.name,
                found=f"{len(pairs.queries)} held-out queries",
                remedy="hold out a larger share of the queries, or set validation = 0",
            )
        if dataset.config.validation and settings.measure == LOSS:
            _require_losses(_held_out_lists(dataset, 0), dataset.config.name)


def _qrels_and_run(pairs: PairTable, scores: Float32s) -> tuple[Qrels, Run]:
    """Return the qrels and the run of all queries with a relevant text.

    scores: (pairs,); pairs whose score is NaN are left out of both.
    """
    grades, rankings = {}, {}
    for query, indices in zip(pairs.queries, pairs.by_query, strict=True):
        if pairs.grades[indices].max() > 0:
            indices = indices[~np.isnan(scores[indices])]
            doc_ids = [
                f"{pairs.doc_ids[n]} {n}" for n in indices
            ]  # unique, even if a document has several pairs
            grades[query] = dict(zip(doc_ids, map(int, pairs.grades[indices]), strict=True))
            rankings[query] = Ranking.of(doc_ids, scores[indices])
    return Qrels(grades), Run(rankings)


def compare_pairs(learner: Learner, inputs: PairInputs) -> tuple[Float32s, float | None]:
    """Return the scores of all pairs by comparisons, (pairs,), and the agreement, without dropout.

    Each text's score is the sum, over the texts it is compared with, of the probability that it is
    the more relevant one. At most MAX_COMPARED texts per query are compared: one with the highest
    grade, and a random sample of the others that depends on the query's index alone. The scores of
    all other texts are NaN. Agreement: see ValidationResult.
    """
    pairs = inputs.pairs
    scores = np.full(len(pairs), np.nan, np.float32)
    preferred: dict[tuple[int, int], bool] = {}  # (i, j): is i judged better when read first?
    for query, indices in enumerate(pairs.by_query):
        shuffled = np.random.default_rng(query).permutation(indices)
        best = shuffled[np.argmax(pairs.grades[shuffled])]
        compared = [best, *shuffled[shuffled != best][: MAX_COMPARED - 1]]
        scores[compared] = 0
        comparisons = [(i, j) for i in compared for j in compared if i != j]
        encoded = [inputs.comparison(i, j) for i, j in comparisons]
        for batch in similar_lengths([len(ids) for ids, _ in encoded], learner.inference_tokens):
            with learner.autocast():
                packed = PackedInputs.of([encoded[n] for n in batch], learner.device)
                probabilities = learner.network.score(packed).sigmoid().cpu().numpy()  # (batch,)
            np.add.at(scores, [comparisons[n][0] for n in batch], probabilities)
            preferred |= {
                comparisons[n]: p > 0.5 for n, p in zip(batch, probabilities, strict=True)
            }
    agree = [first != preferred[j, i] for (i, j), first in preferred.items() if i < j]
    return scores, float(np.mean(agree)) if agree else None


def score_pairs(learner: Learner, inputs: PairInputs) -> Float32s:
    """Return the log-odds of all pairs, (pairs,), without dropout."""
    scores = np.empty(len(inputs.pairs), np.float32)
    for batch in similar_lengths(inputs.lengths.tolist(), learner.inference_tokens):
        with learner.autocast():
            by_pair = [inputs[n] for n in batch]
            encoded = [
                encoded_input for inputs_of_pair in by_pair for encoded_input in inputs_of_pair
            ]
            counts = list(map(len, by_pair))
            packed = PackedInputs.of(encoded, learner.device, counts)
            logits = learner.network.score(packed)  # (batch,)
        scores[batch] = logits.cpu().numpy()
    return scores
