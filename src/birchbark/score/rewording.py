"""How else could a query be put? One word in the place of another, as a masked model expects it.

After section 5 of an NTNU project report of 2021 on CORD-19: BM25 of a query and of what a model
makes of it, weighted by how near that is (its equation 5.1).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice

import numpy as np

from birchbark.errors import InputError
from birchbark.records import Query, Rewording
from birchbark.score.masked import MaskedModel

INSIDE = "##"  # begins a piece that does not begin a word

Terms = Callable[[str], Sequence[str]]


def check_rewording(model: MaskedModel, queries: Sequence[Query]) -> None:
    """Raise InputError for what `reword` cannot do, before any of it is done.

    That is a tokeniser whose pieces do not tell where words begin, and a query that does not fit
    into one input.
    """
    if model.pieces.kind != "WordPiece":
        raise InputError(
            "pieces do not tell where words begin", wanted="WordPiece", found=model.pieces.kind
        )
    for query, ids in zip(queries, model.pieces.encode([q.text for q in queries]), strict=True):
        if len(ids) > model.room:
            raise InputError(
                "the query does not fit into one input",
                where=f"query {query.query_id}",
                wanted=f"{model.room} tokens at most",
                found=str(len(ids)),
            )


def reword(model: MaskedModel, query: str, terms: Terms, count: int) -> list[Rewording]:
    """The `count` likeliest texts in which one other word stands, the likeliest first.

    terms: what the first stage would search a text for. Places whose word it does not search for
    keep theirs, and a word that is searched for already is no other word; a query without a place
    has none. The weight is the cosine of the model's vectors of both texts, 0 at least. Raises
    InputError for a count below 1; see `check_rewording`.
    """
    if count < 1:
        raise InputError("count is out of range", wanted="1 or more", found=str(count))
    [ids] = model.pieces.encode([query])
    known, names = set(terms(query)), model.pieces.names()
    found: list[tuple[float, str]] = []
    spans = model.pieces.spans(query)
    for first, last in _words([names[int(number)] for number in ids]):
        start, end = spans[first][0], spans[last][1]
        if not terms(query[start:end]):
            continue
        joined = np.concatenate([ids[: first + 1], ids[last + 1 :]])
        expected = model.expected(joined, first)
        others = (
            (float(expected[number]), query[:start] + word + query[end:])
            for number in np.argsort(-expected, kind="stable").tolist()
            if (word := names.get(number, "")).isalpha() and set(terms(word)) - known
        )
        found += islice(others, count)
    best = sorted(dict.fromkeys(found), key=lambda one: (-one[0], one[1]))[:count]
    texts = [text for _, text in best]
    own = model.embed(ids)
    vectors = [model.embed(other) for other in model.pieces.encode(texts)]
    return [
        Rewording(text, float(np.clip(vector @ own, 0, 1)))
        for text, vector in zip(texts, vectors, strict=True)
    ]


def _words(pieces: Sequence[str]) -> Iterator[tuple[int, int]]:
    """First and last piece of each word."""
    first = 0
    for number in range(1, len(pieces) + 1):
        if number == len(pieces) or not pieces[number].startswith(INSIDE):
            yield first, number - 1
            first = number
