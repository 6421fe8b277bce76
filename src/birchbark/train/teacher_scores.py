"""How do the scores of a teacher become training targets?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from birchbark.checkpoint.score_scale import ScoreScale
from birchbark.device.torch_session import session_factory
from birchbark.errors import InputError
from birchbark.pairs.pair_table import Indices, PairTable
from birchbark.records import Float32s, Ids
from birchbark.score.bert_scorer import BertScorer, BiEncoderScorer
from birchbark.score.cross_encoder import CrossEncoderScorer
from birchbark.score.load_scorer import load_scorer
from birchbark.score.precision import Precision
from birchbark.score.scorer import Scorer
from birchbark.score.token_limits import cut_text
from birchbark.score_cache.cached_scorer import CachedScorer
from birchbark.score_cache.score_file import Keys
from birchbark.score_cache.store import ScoreStore
from birchbark.train.config import Teacher
from birchbark.train.dataset import Log, TokenisedDataSet
from birchbark.train.pair_inputs import PairInputs
from birchbark.train.sampler import Sampler

Facts = dict[str, object]
WAIT = 24 * 3600.0  # seconds for another training run that computes scores for the same folder
ALL_COSINES = ScoreScale(-1, 2, stated=True)  # maps −1 to 1 to scores, of which none is clipped
TOKENS_PER_WRITE = 1 << 17  # about as much text is scored between two writes to the store


@dataclass(frozen=True, slots=True)
class TeacherScores:
    """Where and how teacher scores are computed and stored.

    store: the folder of the score store.
    device: the device that teachers run on.
    write: whether to store scores; false in processes that read the main process's scores.
    on_progress: receives the number of pairs scored so far and the number of all sampled pairs of
    the data set.
    """

    store: Path
    device: str = "cpu"
    write: bool = True
    on_progress: Callable[[int, int], None] = lambda pairs, total: None


def with_teacher_targets(
    datasets: Sequence[TokenisedDataSet],
    sampler: Sampler,
    steps: range,
    scores: TeacherScores,
    log: Log,
) -> list[TokenisedDataSet]:
    """Return the data sets with teacher scores as targets of the pairs that `steps` use.

    The targets of all other pairs are NaN. Where grades are the targets, a teacher makes those of
    false negatives NaN, having read all relevant texts of their queries. Data sets without a
    teacher are returned unchanged. Raises InputError for a teacher that scores documents if the
    student does not, and what `load_scorer` raises.
    """
    if not any(dataset.config.teachers for dataset in datasets):
        return list(datasets)
    return [
        _with_targets(dataset, sampled, scores, log)
        for dataset, sampled in zip(datasets, sampler.sampled_pairs(steps), strict=True)
    ]


def _with_targets(
    dataset: TokenisedDataSet, sampled: Indices, scores: TeacherScores, log: Log
) -> TokenisedDataSet:
    terms = dataset.config.loss_terms
    pairs, targets = dataset.training_pairs.pairs, list(dataset.targets)
    if any(term.teacher and not term.objective.needs_teacher for term in terms):
        asked = np.zeros(len(pairs.queries), bool)
        asked[pairs.query[sampled]] = True
        sampled = np.union1d(sampled, np.flatnonzero(asked[pairs.query] & (pairs.grades > 0)))
    computed: dict[Teacher, tuple[Float32s, list[Facts]]] = {}  # losses may share a teacher
    distilled: dict[Teacher, list[Facts]] = {}
    left_out: list[Facts] = []
    for index, term in enumerate(terms):
        if not (teacher := term.teacher):
            continue
        if teacher.unscaled not in computed:
            by_model = [
                _model_scores(dataset, model, teacher, sampled, scores, log)
                for model in teacher.models
            ]
            mean = np.stack([values for values, _ in by_model]).mean(axis=0, dtype=np.float32)
            computed[teacher.unscaled] = mean, [facts for _, facts in by_model]
        values, teachers = computed[teacher.unscaled]
        if term.objective.needs_teacher:
            targets[index] = teacher.targets(values)
            distilled[teacher.unscaled] = teachers
            continue
        targets[index] = without_false_negatives(pairs, values)
        count = int(np.isnan(targets[index]).sum())
        log(f"{dataset.config.name}: {count:,} probably relevant texts are left out")
        left_out.append({"teachers": teachers, "texts": count})
    of_all = [facts for teachers in distilled.values() for facts in teachers]
    facts = {**dataset.facts, "teachers": of_all, "left_out": left_out}
    return replace(dataset, targets=tuple(targets), facts=facts)


def check_precisions(teachers: Iterable[Teacher], device: str) -> None:
    """Raise InputError if a teacher computes in a precision that needs a GPU, without one.

    Teachers in int8 run on the CPU, whatever the device.
    """
    for teacher in teachers:
        if device == "cpu" and not teacher.precision.runs_on_cpu:
            raise InputError(
                f"{teacher.precision.value} is computed by GPUs only",
                where=f"teacher {teacher.models[0]}",
                remedy='use precision = "int8", or --device cuda',
            )


def _model_scores(
    dataset: TokenisedDataSet,
    model: str,
    teacher: Teacher,
    sampled: Indices,
    scores: TeacherScores,
    log: Log,
) -> tuple[Float32s, Facts]:
    """Return one model's scores (pairs,), and what the model card says about the model."""
    name, pairs = dataset.config.name, dataset.training_pairs.pairs
    log(f"{name}: {model} scores {len(sampled):,} of {len(pairs):,} pairs")
    session = session_factory(scores.device) if teacher.precision.runs_on_gpu else None
    scorer = load_scorer(
        model, pooling=teacher.pooling, precision=teacher.precision, session=session
    )
    fingerprint, is_cosine = scorer.fingerprint, isinstance(scorer, BiEncoderScorer)
    if isinstance(scorer, BertScorer):  # targets are cosines and log-odds, whatever their scale is
        fingerprint = scorer.outputs_fingerprint
        scale = ALL_COSINES if is_cosine else ScoreScale()
        scorer.checkpoint = replace(scorer.checkpoint, scale=scale)
    if scorer.width > 1 and not dataset.training_pairs.has_documents:
        raise InputError(
            "this model scores documents, not texts",
            where=f"teacher {model}",
            remedy="set model.parade, or choose another teacher",
        )
    values, truncated = teacher_scores(dataset.training_pairs, sampled, scorer, scores)
    if truncated:
        log(f"{name}: the teacher truncates {truncated:,} pairs")
    facts: Facts = {"model": model, "fingerprint": fingerprint, "cut": truncated}
    if teacher.pooling:
        facts["pooling"] = teacher.pooling.mode
    if teacher.precision is not Precision.FP32:
        facts["precision"] = teacher.precision.value
    return values, facts


def without_false_negatives(pairs: PairTable, scores: Float32s) -> Float32s:
    """Return the grades (pairs,), with NaN for probably relevant texts of grade 0.

    They have a higher score of the teacher than every relevant text of the same query. scores: the
    teacher's (pairs,), with NaN for pairs that are not needed.
    """
    relevant = pairs.grades > 0
    best = np.full(len(pairs.queries), -np.inf, np.float32)  # (queries,)
    np.fmax.at(best, pairs.query[relevant], scores[relevant])
    best[np.isneginf(best)] = np.inf  # without a relevant text nothing is known
    grades = pairs.grades.copy()
    grades[~relevant & (scores > best[pairs.query])] = np.nan
    return grades


def teacher_scores(
    inputs: PairInputs, sampled: Indices, scorer: Scorer, scores: TeacherScores
) -> tuple[Float32s, int]:
    """Return a teacher's scores (pairs,), and the number of pairs whose query or text it truncates.

    A score is a cosine or MaxSim, −1 to 1, or a cross-encoder's log-odds; it is NaN for all but
    the `sampled` pairs. The score of a document is that by PARADE, or of its best passage. A
    teacher reads no more of a text than the student does, and of a query what it can. A
    cross-encoder reserves no tokens for queries longer than the one it reads.
    """
    truncated = done = 0
    pairs = inputs.pairs
    values = np.full(len(pairs), np.nan, np.float32)
    with ScoreStore(scores.store, scorer, write=scores.write, wait=WAIT) as store:
        cached_scorer = CachedScorer(scorer, store)
        for groups in _batches(inputs, sampled):
            passages = {pair: inputs.passages(pair) for group in groups for pair in group.tolist()}
            texts = np.unique(np.concatenate(list(passages.values()))).tolist()
            encoded = scorer.encode([pairs.texts[text] for text in texts])
            ids = dict(zip(texts, encoded, strict=True))
            requests: list[tuple[str, list[Ids]]] = []
            for group in groups:
                query, cut, most = _readable(scorer, pairs.queries[pairs.query[group[0]]])
                token_budget = min(most, inputs.text_budget(group[0]))
                read = [[ids[text] for text in passages[pair].tolist()] for pair in group.tolist()]
                truncated += sum(cut or max(map(len, texts)) > token_budget for texts in read)
                flat = [of_text[:token_budget] for of_pair in read for of_text in of_pair]
                requests.append((query, flat))
            _compute_together(scorer, store, requests)
            for (query, token_ids), group in zip(requests, groups, strict=True):
                counts = [len(passages[pair]) for pair in group.tolist()]
                values[group] = _document_scores(
                    cached_scorer, cached_scorer.score(query, token_ids), counts
                )
                done += len(group)
                scores.on_progress(done, len(sampled))
    if isinstance(scorer, CrossEncoderScorer):
        values = scorer.checkpoint.scale.log_odds(values).astype(np.float32)
    elif isinstance(scorer, BiEncoderScorer):
        values = scorer.checkpoint.scale.cosines(values)
    return values, truncated


def _readable(scorer: Scorer, query: str) -> tuple[str, bool, int]:
    """Return what the scorer can read of a query, whether it has more, and the text's tokens.

    These are the number of tokens that the scorer can read of a text beside what it reads of the
    query.
    """
    if isinstance(scorer, CrossEncoderScorer):
        query, rest = cut_text(scorer, query, scorer.max_query_tokens)
        return query, rest > 0, scorer.max_text_tokens(query)
    rest = 0
    if isinstance(scorer, BiEncoderScorer):
        query, rest = cut_text(scorer.queries, query, scorer.max_query_tokens)
    return query, rest > 0, scorer.token_budget(query)


def _document_scores(
    scorer: CachedScorer, values: Float32s, counts: Sequence[int]
) -> NDArray[np.float32]:
    """Return the scores of pairs (pairs,).

    values: the scores (passages,) or vectors (passages, width) of all passages. counts: the number
    of passages of each pair.
    """
    starts = np.cumsum([0, *counts])
    if scorer.width == 1:
        return np.maximum.reduceat(values, starts[:-1])
    documents = np.split(values, starts[1:-1])
    return np.array([scorer.score_document(vectors)[0] for vectors in documents], np.float32)


def _batches(inputs: PairInputs, sampled: Indices) -> Iterator[list[Indices]]:
    """Yield batches of about TOKENS_PER_WRITE tokens of text.

    A batch is a list of groups; a group is an array of sampled pairs of one query.
    """
    pairs = inputs.pairs
    is_sampled = np.zeros(len(pairs), bool)
    is_sampled[sampled] = True
    sizes = inputs.text_tokens  # (pairs,)
    batch: list[Indices] = []
    size = 0
    for of_query in pairs.by_query:
        indices = of_query[is_sampled[of_query]]
        ends = np.cumsum(sizes[indices])
        for group in np.split(indices, np.flatnonzero(np.diff(ends // TOKENS_PER_WRITE)) + 1):
            if len(group):
                batch.append(group)
                size += int(sizes[group].sum())
            if size >= TOKENS_PER_WRITE:
                yield batch
                batch, size = [], 0
    if batch:
        yield batch


def _compute_together(
    scorer: Scorer, store: ScoreStore, requests: Sequence[tuple[str, list[Ids]]]
) -> None:
    """Compute what has no stored score, for all requests at once.

    The texts of a single query are too few to fill a batch. Scores of a cross-encoder are stored;
    of a bi-encoder, the vectors of queries and texts are kept for the calls of `score`.
    """
    unscored: list[tuple[str, list[Ids], Keys]] = []
    for query, token_ids in requests:
        keys = store.keys(query, token_ids)
        distinct, first = np.unique(keys, axis=0, return_index=True)
        new = np.sort(first[~store.find(distinct)[1]])
        if len(new):
            unscored.append((query, [token_ids[i] for i in new], keys[new]))
    if isinstance(scorer, BiEncoderScorer):
        queries = [query for query, _, _ in unscored]
        scorer.prefetch(queries, [ids for _, texts, _ in unscored for ids in texts])
    elif isinstance(scorer, CrossEncoderScorer):
        values = scorer.score_queries([(query, texts) for query, texts, _ in unscored])
        for (_, _, keys), of_query in zip(unscored, values, strict=True):
            store.add(keys, of_query)
