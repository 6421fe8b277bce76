"""Which texts are learnt from together? Pairs of one query, drawn into lists anew each epoch.

Everything here is decided by seed and epoch alone, so that a training that was killed goes on with
the lists that it would have had.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from birchbark.errors import InputError
from birchbark.records import Pair

Numbers = NDArray[np.int64]
List = tuple[int, ...]  # numbers of pairs that share a query
Useful = Callable[[NDArray[np.float32]], bool]

KINDS = ("pair", "positive", "query")


@dataclass(frozen=True, slots=True)
class Draw:
    """How pairs become lists, each epoch.

    each: `pair`, each pair a list of its own; `positive`, each relevant text with `texts` - 1 of
    lower grades of the same query; `query`, a query's texts in any order, `texts` a list. take: so
    many lists an epoch, drawn by chance; None for all.
    """

    each: str = "pair"
    texts: int = 1
    take: int | None = None

    def __post_init__(self) -> None:
        if self.each not in KINDS:
            raise InputError(f"unknown lists {self.each!r}", remedy=f"one of {', '.join(KINDS)}")
        if (self.each == "pair") != (self.texts == 1):
            raise InputError(
                f"{self.texts} texts in a list for each {self.each}",
                wanted="1 for each pair, 2 or more else",
            )


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """Pairs as numbers: of distinct queries and texts, which are kept once each.

    query: (n,) places in `queries`. text: places in `texts`, those of pair i from `starts`[i] up to
    `starts`[i + 1]: one, or the passages of a document. grades: (n,) float32. by_query: for each
    query, the numbers of its pairs. doc_ids: (n,) of each pair.
    """

    queries: tuple[str, ...]
    texts: tuple[str, ...]
    query: Numbers
    text: Numbers
    starts: Numbers
    grades: NDArray[np.float32]
    by_query: tuple[Numbers, ...]
    doc_ids: tuple[str, ...]

    @classmethod
    def of(cls, pairs: Iterable[Pair], documents: bool = False) -> Pairs:
        """`pairs` in their order.

        documents: those of one query and document, wherever they stand, are one, with the highest
        of their grades.
        """
        queries: dict[str, int] = {}
        texts: dict[str, int] = {}
        places: dict[object, int] = {}
        rows: list[tuple[int, int]] = []
        doc_ids, passages = [], []
        for number, pair in enumerate(pairs):
            query = queries.setdefault(pair.query, len(queries))
            text = texts.setdefault(pair.text, len(texts))
            key = (query, pair.doc_id) if documents else number
            if (place := places.setdefault(key, len(rows))) == len(rows):
                rows.append((query, pair.relevance))
                doc_ids.append(pair.doc_id)
                passages.append([text])
            else:
                rows[place] = query, max(pair.relevance, rows[place][1])
                passages[place].append(text)
        columns = np.array(rows, np.int64).reshape(-1, 2).T
        query_of, grades = columns[0], columns[1]
        starts = np.cumsum([0, *map(len, passages)])
        text_of = np.array([text for some in passages for text in some], np.int64)
        order = np.argsort(query_of, kind="stable")
        ends = np.cumsum(np.bincount(query_of, minlength=len(queries)))
        return cls(
            tuple(queries),
            tuple(texts),
            query_of,
            text_of,
            starts,
            grades.astype(np.float32),
            tuple(np.split(order, ends[:-1])) if len(queries) else (),
            tuple(doc_ids),
        )

    def __len__(self) -> int:
        return len(self.query)

    def passages(self, number: int) -> Numbers:
        """Places in `texts` of what a pair has, one or several."""
        return self.text[self.starts[number] : self.starts[number + 1]]


def draw(
    pairs: Pairs, how: Draw, seed: Sequence[int], useful: Useful = lambda grades: True
) -> list[List]:
    """The lists of one epoch, in an order by chance. seed: of all that happens here.

    useful: whether something can be learnt from a list with these grades; others are left out, and
    so is a list without two texts where `how` compares.
    """
    chance = np.random.default_rng(seed)
    if how.each == "pair":
        return [(int(number),) for number in chance.permutation(len(pairs))[: how.take]]
    if how.each == "positive":
        lowest = np.array([pairs.grades[numbers].min() for numbers in pairs.by_query])
        above = np.maximum(lowest, 0)[pairs.query] if len(pairs) else pairs.grades
        positives = chance.permutation(np.flatnonzero(pairs.grades > above))[: how.take]
        return [_with_lower(pairs, int(number), how.texts - 1, chance) for number in positives]
    lists = [
        tuple(some.tolist())
        for of_query in pairs.by_query
        for some in _cut(chance.permutation(of_query), how.texts)
    ]
    mixed = (lists[i] for i in chance.permutation(len(lists)))
    return [one for one in mixed if len(one) > 1 and useful(pairs.grades[list(one)])][: how.take]


def _with_lower(pairs: Pairs, number: int, count: int, chance: np.random.Generator) -> List:
    """A pair, and `count` of lower grades of its query; fewer where there are fewer."""
    others = pairs.by_query[pairs.query[number]]
    lower = others[pairs.grades[others] < pairs.grades[number]]
    return (number, *chance.choice(lower, min(count, len(lower)), replace=False).tolist())


def _cut(numbers: Numbers, size: int) -> list[Numbers]:
    return [numbers[start : start + size] for start in range(0, len(numbers), size)]
