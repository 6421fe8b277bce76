"""Are lists read as they were packed, and are the best documents those of exhaustive scoring?"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from birchbark.index.compress_postings import BLOCK, pack
from birchbark.index.postings import WINDOW, best_documents


def random_lists(
    rng: np.random.Generator, sizes: list[int], documents: int
) -> tuple[NDArray[np.int64], NDArray[np.uint32], NDArray[np.uint32]]:
    """Return starts, documents and frequencies of random lists of these sizes."""
    lists = [np.sort(rng.choice(documents, size, replace=False)) for size in sizes]
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    docs = np.concatenate([*lists, []]).astype(np.uint32)
    return starts, docs, rng.geometric(0.5, len(docs)).astype(np.uint32)


class Collection:
    """Random lists over two fields, with the norms of BM25."""

    def __init__(self, seed: int, sizes: list[int], documents: int) -> None:
        """Lists alternate between the fields; two lists share a group."""
        rng = np.random.default_rng(seed)
        self.documents = documents
        lengths = rng.lognormal(4, 1, (2, documents)).astype(np.uint32)
        sizes = [min(size, documents) for size in sizes]
        self.fields = np.arange(len(sizes)) % 2
        self.groups = np.arange(len(sizes)) // 2
        packed = [random_lists(rng, [size], documents) for size in sizes]
        self.lists = [(docs, tfs) for _, docs, tfs in packed]
        words, offsets, end = [], [], 0
        for field, (starts, docs, tfs) in zip(self.fields.tolist(), packed, strict=True):
            list_words, _ = pack(starts, docs, tfs, lengths[field])
            words.append(list_words)
            offsets.append(end)
            end += len(list_words)
        self.words = np.concatenate([*words, [0]]).astype(np.uint32)
        self.offsets = np.array(offsets, np.int64)
        k1, b = float(rng.choice([0.0, 0.9, 3.0])), float(rng.choice([0.0, 0.4, 1.0]))
        self.floor, self.slope = k1 * (1 - b), k1 * b / 80
        self.norms = self.floor + self.slope * lengths
        self.weights = rng.choice([0.01, 0.5, 1.0, 7.0], len(sizes)) * rng.random(len(sizes))
        self.excluded = rng.random(documents) < 0.3
        self.grid = math.ldexp(1.5, math.frexp(math.fsum(self.weights))[1] + 1)
        self.min_addend = math.ulp(self.grid)

    def best(self, depth: int, minimum: int, excluded: bool) -> Any:
        """What `best_documents` returns."""
        ones = np.ones_like(self.weights)
        columns = [self.weights, ones, self.floor * ones, self.slope * ones]
        terms = np.stack([*columns, self.weights, self.min_addend * ones], axis=1)
        groups = self.groups if minimum >= 0 else np.full_like(self.groups, -1)
        lists = (self.words, self.offsets, self.fields, groups, terms)
        out = self.excluded if excluded else np.zeros(0, bool)
        return best_documents(lists, self.norms, out, depth, -math.inf, self.grid, minimum)

    def all(self, minimum: int, excluded: bool) -> dict[int, float]:
        """Return document → score of all matching documents, computed naively."""
        scores = np.zeros(self.documents)
        matched: list[set[int]] = [set() for _ in range(self.documents)]
        for field, group, weight, (docs, tfs) in zip(
            self.fields.tolist(), self.groups.tolist(), self.weights, self.lists, strict=True
        ):
            norms = self.norms[field, docs]
            addends = (weight * tfs / (1.0 * tfs + norms) + self.grid) - self.grid
            scores[docs] += np.maximum(addends, self.min_addend)
            for doc in docs.tolist():
                matched[doc].add(group)
        return {
            doc: float(scores[doc])
            for doc in range(self.documents)
            if len(matched[doc]) >= abs(minimum) and not (excluded and self.excluded[doc])
        }


@pytest.mark.parametrize("documents", [1, 300, WINDOW, 2 * WINDOW + 77])
@given(
    seed=st.integers(0, 10**6),
    sizes=st.lists(st.sampled_from([1, 5, 100, 129, 600, 5000, 10**6]), min_size=1, max_size=6),
    depth=st.sampled_from([1, 3, 10, 1000]),
    minimum=st.sampled_from([-1, -1, -1, 0, 1, 2]),
    excluded=st.booleans(),
)
def test_the_best_documents_are_those_of_exhaustive_scoring(
    documents: int, seed: int, sizes: list[int], depth: int, minimum: int, excluded: bool
) -> None:
    """They agree to the last bit, with ties at the cut, whichever lists are skipped."""
    collection = Collection(seed, sizes, documents)
    docs, scores, _ = collection.best(depth, minimum, excluded)
    everything = collection.all(minimum, excluded)
    rounded = {doc: np.float32(score) for doc, score in everything.items()}
    cut = sorted(rounded.values(), reverse=True)[:depth]
    wanted = {doc: everything[doc] for doc in everything if rounded[doc] >= cut[-1]}
    assert dict(zip(docs.tolist(), scores.tolist(), strict=True)) == wanted


def test_light_lists_are_skipped() -> None:
    """Overwriting blocks of a long, light list that have no candidate changes nothing."""
    documents = 50 * WINDOW
    collection = Collection(3, [documents, 40], documents)
    collection.weights[:] = [0.01, 7.0]
    docs, scores, _ = collection.best(5, -1, False)
    table = int(collection.offsets[0]) + 1
    blocks = documents // BLOCK
    base = table + 4 * blocks
    candidates = set((collection.lists[1][0] // BLOCK).tolist())
    skipped = [block for block in range(blocks // 2, blocks - 1) if block not in candidates]
    for block in skipped:
        begin, end = (int(collection.words[table + 4 * b + 1]) for b in (block, block + 1))
        collection.words[base + begin : base + end] = 0xFFFFFFFF
    again, scores_again, _ = collection.best(5, -1, False)
    assert len(skipped) > 0.45 * blocks
    assert (again.tolist(), scores_again.tolist()) == (docs.tolist(), scores.tolist())
