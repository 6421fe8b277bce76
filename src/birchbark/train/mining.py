"""Which texts does the model in training find hardest to tell from the relevant ones?

Before every n-th step, texts that could be relevant to the queries of the next n steps are scored
by the model as it is then: those that BM25 ranks first, or, for a bi-encoder, those whose vectors
are nearest. Those that it scores highest become the negatives of these queries (Xiong et al. 2021,
ANCE). Unjudged texts that score higher than all relevant ones, less a margin, are left out, since
many of them are relevant.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from birchbark.artifact import new_directory
from birchbark.errors import ArtifactError, InputError
from birchbark.index.build_index import build_index
from birchbark.index.index import Index
from birchbark.pairs.pair_table import Indices, PairTable, Selected
from birchbark.records import Document, Float32s
from birchbark.retrieve.first_stage import rank_query
from birchbark.score.batches import similar_lengths
from birchbark.train.config import MiningSettings
from birchbark.train.dataset import Log, TokenisedDataSet
from birchbark.train.learner import Learner
from birchbark.train.packed_inputs import PackedInputs
from birchbark.train.pair_inputs import InputLayout, PairInputs
from birchbark.train.sampler import Sampler
from birchbark.train.validation import score_pairs

INDEX = "index"  # in the folder of token ids
FILE = "negatives-{}.npy"
TEXTS_PER_BLOCK = 16_384  # whose vectors are computed at once
QUERIES_PER_BLOCK = 512  # which are compared with these at once

Negatives = NDArray[np.int32]  # (negatives, 2): indices of query and text


def mine(
    learner: Learner,
    datasets: Sequence[TokenisedDataSet],
    sampler: Sampler,
    steps: range,
    settings: MiningSettings,
    log: Log,
) -> list[Negatives]:
    """Return, per data set, the negatives of all queries that `steps` use.

    datasets, sampler: as they are without mining. Queries without a text of grade 0 are left out,
    and counted in the log.
    """
    mined = []
    for dataset, sampled in zip(datasets, sampler.sampled_pairs(steps), strict=True):
        pairs = dataset.training_pairs.pairs
        has_negatives = pairs.lowest_grades == 0  # (queries,)
        queries = np.unique(pairs.query[sampled])
        if kept := int((~has_negatives[queries]).sum()):
            name = dataset.config.name
            log(f"{name}: {kept:,} queries without a text of grade 0 keep their texts")
        queries = queries[has_negatives[queries]]
        mined.append(_hardest(learner, dataset, queries, settings, log))
    return mined


def write_negatives(folder: Path, mined: Sequence[Negatives]) -> None:
    """Write the negatives of each data set to the new folder `folder`, atomically."""
    with new_directory(folder) as scratch:
        for number, negatives in enumerate(mined):
            np.save(scratch / FILE.format(number), negatives)


def read_negatives(folder: Path, datasets: int) -> list[Negatives]:
    """Return the negatives of each of `datasets` data sets; ArtifactError if they are damaged."""
    mined = []
    for number in range(datasets):
        path = folder / FILE.format(number)
        try:
            mined.append(np.load(path, allow_pickle=False))
        except (OSError, ValueError, EOFError) as damage:
            raise ArtifactError(
                "damaged negatives",
                where=str(path),
                remedy="remove the folder of the training run, and start again",
            ) from damage
    return mined


def with_negatives(dataset: TokenisedDataSet, negatives: Negatives) -> TokenisedDataSet:
    """Return the data set with these texts in place of those of grade 0, for their queries.

    Relevant pairs stay in their order, so the same lists are sampled, with other negatives.
    """
    pairs = dataset.training_pairs.pairs
    first_of_text = _first_pairs(pairs.text, len(pairs.texts))
    is_mined = np.zeros(len(pairs.queries), bool)
    is_mined[negatives[:, 0]] = True
    kept = np.flatnonzero(~(is_mined[pairs.query] & (pairs.grades == 0)))
    rows = np.concatenate([kept, first_of_text[negatives[:, 1]]])
    table = PairTable(
        pairs.queries,
        pairs.texts,
        np.concatenate([pairs.query[kept], negatives[:, 0]]),
        np.concatenate([pairs.text[kept], negatives[:, 1]]),
        np.arange(len(rows) + 1),
        np.concatenate([pairs.grades[kept], np.zeros(len(negatives), np.float32)]),
        Selected(pairs.doc_ids, rows),
    )
    inputs = replace(dataset.training_pairs, pairs=table)
    return replace(dataset, training_pairs=inputs, targets=(table.grades,) * len(dataset.targets))


def _hardest(
    learner: Learner,
    dataset: TokenisedDataSet,
    queries: Indices,
    settings: MiningSettings,
    log: Log,
) -> Negatives:
    """Return the texts of grade 0, and unjudged ones, that the model scores highest."""
    inputs = dataset.training_pairs
    pairs = inputs.pairs
    judged = np.concatenate([pairs.by_query[n] for n in queries] or [np.zeros(0, np.int64)])
    candidates = _candidates(learner, dataset, queries, settings.depth)
    query = np.concatenate([pairs.query[judged], candidates[:, 0]])
    text = np.concatenate([pairs.text[judged], candidates[:, 1]])
    unjudged = np.full(len(candidates), np.nan, np.float32)
    grades = np.concatenate([pairs.grades[judged], unjudged])
    table = PairTable(pairs.queries, pairs.texts, query, text, np.arange(len(text) + 1), grades, ())
    scores = score_pairs(learner, replace(inputs, pairs=table))

    relevant = grades > 0
    best = np.full(len(pairs.queries), np.inf, np.float32)  # the highest score of a relevant text
    best[query[relevant]] = -np.inf
    np.maximum.at(best, query[relevant], scores[relevant])
    is_new = np.isnan(grades)
    left_out = is_new & (scores > best[query] - settings.margin)
    usable = np.flatnonzero(~relevant & ~left_out)
    order = usable[np.lexsort((text[usable], -scores[usable], query[usable]))]
    firsts = np.flatnonzero(np.diff(query[order], prepend=-1))  # where each query begins
    rank = np.arange(len(order)) - np.repeat(firsts, np.diff(firsts, append=len(order)))
    chosen = order[rank < (settings.keep or 2 * (dataset.config.lists.texts - 1))]
    log(
        f"{dataset.config.name}: {is_new[chosen].sum():,} of {len(chosen):,} negatives of "
        f"{len(queries):,} queries are mined; {left_out.sum():,} texts are left out, which score "
        "higher than all relevant ones, less the margin"
    )
    return np.stack([query[chosen], text[chosen]], axis=1).astype(np.int32)


def _candidates(
    learner: Learner, dataset: TokenisedDataSet, queries: Indices, depth: int
) -> Negatives:
    """Return up to `depth` texts for each query that are not paired with it."""
    pairs = dataset.training_pairs.pairs
    first_pairs = _first_pairs(pairs.text, len(pairs.texts))  # −1: texts of held-out queries alone
    ranked: Iterable[Indices]
    if dataset.training_pairs.layout is InputLayout.SEPARATE:
        ranked = _nearest(learner, dataset.training_pairs, queries, depth, first_pairs)
    else:
        ranked = _by_bm25(dataset, queries, depth, first_pairs >= 0)
    found = []
    for query, texts in zip(queries.tolist(), ranked, strict=True):
        known = pairs.text[pairs.by_query[query]]
        new = texts[~np.isin(texts, known)]
        found.append(np.stack([np.full(len(new), query), new], axis=1))
    return np.concatenate(found) if found else np.zeros((0, 2), np.int64)


def _by_bm25(
    dataset: TokenisedDataSet, queries: Indices, depth: int, is_usable: NDArray[np.bool_]
) -> Iterator[Indices]:
    """Yield the texts that BM25 ranks first for each query."""
    pairs, directory = dataset.training_pairs.pairs, dataset.folder / INDEX
    if not directory.exists():
        texts = (Document(str(n), {"text": text}) for n, text in enumerate(pairs.texts))
        try:
            build_index((document for document in texts if not document.fault), directory)
        except InputError:
            if not directory.exists():  # else another run has built it meanwhile
                raise
    index = Index(directory)
    for query in queries.tolist():
        ranking = rank_query(index, pairs.queries[query], depth=depth)
        texts_of_query = np.array(ranking.doc_ids, np.int64)
        yield texts_of_query[is_usable[texts_of_query]]


def _nearest(
    learner: Learner,
    inputs: PairInputs,
    queries: Indices,
    depth: int,
    first_pairs: Indices,
) -> list[Indices]:
    """Return the texts whose vectors are nearest to that of each query.

    first_pairs: the first pair with each text (texts,); texts with −1 are left out.
    """
    pairs = inputs.pairs
    first_of_query = _first_pairs(pairs.query, len(pairs.queries))
    of_queries = _vectors(learner, inputs, first_of_query[queries], which=0)  # (queries, H)
    usable = np.flatnonzero(first_pairs >= 0)
    best = np.full((len(queries), depth), np.iinfo(np.uint64).max)
    for start in range(0, len(usable), TEXTS_PER_BLOCK):
        block = usable[start : start + TEXTS_PER_BLOCK]
        vectors = _vectors(learner, inputs, first_pairs[block], which=1)
        for begin in range(0, len(queries), QUERIES_PER_BLOCK):
            some = slice(begin, begin + QUERIES_PER_BLOCK)
            keys = _keys(of_queries[some] @ vectors.T, block)
            best[some] = np.partition(np.hstack([best[some], keys]), depth - 1)[:, :depth]
    best.sort()
    nearest = (best[:, : len(usable)] & np.uint64(0xFFFFFFFF)).astype(np.int64)
    return list(nearest)


def _keys(similarities: Float32s, texts: Indices) -> NDArray[np.uint64]:
    """Return keys (n, texts) whose order is that of falling similarity, then of the texts.

    similarities: (n, texts). texts: the numbers of the texts, ascending, which are the lower halves
    of the keys.
    """
    bits = (similarities + np.float32(0)).view(np.uint32)  # + 0: −0 becomes 0
    falling = np.where(similarities < 0, bits, np.uint32(0x7FFFFFFF) - bits)
    return falling.astype(np.uint64) << np.uint64(32) | texts.astype(np.uint64)


def _vectors(learner: Learner, inputs: PairInputs, pairs: Indices, which: int) -> Float32s:
    """Return the vectors (n, H) of the queries (which = 0) or texts (which = 1) of pairs."""
    encoded = [inputs[pair][which] for pair in pairs.tolist()]
    vectors = np.empty((len(encoded), learner.network.config.hidden), np.float32)
    for batch in similar_lengths([len(ids) for ids, _ in encoded], learner.inference_tokens):
        packed = PackedInputs.of([encoded[n] for n in batch], learner.device)
        with learner.autocast():
            vectors[batch] = learner.network.vectors(packed).cpu().numpy()
    return vectors


def _first_pairs(used: Indices, count: int) -> Indices:
    """Return the first pair of each of `count` queries or texts; −1 for those without a pair.

    used: the query or text of each pair, (pairs,).
    """
    first = np.full(count, -1)
    first[used[::-1]] = np.arange(len(used))[::-1]
    return first
