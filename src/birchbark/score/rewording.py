"""How else could a query be put? One word in the place of another, as a masked model expects it.

After section 5 of an NTNU project report of 2021 on CORD-19: BM25 of a query and of what a model
makes of it, weighted by how near that is (its equation 5.1).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from birchbark.errors import InputError
from birchbark.records import Rewording
from birchbark.score.masked import MaskedModel

INSIDE = "##"  # begins a piece that does not begin a word
LIKELY = 20  # words that are looked at for each place

Terms = Callable[[str], Sequence[str]]


def reword(model: MaskedModel, query: str, terms: Terms, count: int) -> list[Rewording]:
    """The `count` likeliest texts in which one other word stands, the likeliest first.

    terms: what the first stage would search a text for. Places whose word it does not search for
    keep theirs, and a word that is searched for already is no other word. The weight is the cosine
    of the model's vectors of both texts, 0 at least. Raises InputError for a query that does not
    fit into one input, and for pieces that do not tell where words begin.
    """
    if count < 1:
        raise InputError("count is out of range", wanted="1 or more", found=str(count))
    [ids] = model.pieces.encode([query])
    if len(ids) > model.room:
        wanted = f"{model.room} tokens at most"
        raise InputError("the query does not fit", wanted=wanted, found=str(len(ids)))
    known, names, found = set(terms(query)), model.pieces.names(), []
    if not any(name.startswith(INSIDE) for name in names.values()):
        raise InputError("pieces do not tell where words begin", wanted="WordPiece")
    spans = model.pieces.spans(query)
    for first, last in _words([names[int(number)] for number in ids]):
        start, end = spans[first][0], spans[last][1]
        if not terms(query[start:end]):
            continue
        joined = np.concatenate([ids[: first + 1], ids[last + 1 :]])
        expected = model.expected(joined, first)
        for number in np.argsort(-expected)[:LIKELY]:
            word = names.get(int(number), "")
            if word.isalpha() and set(terms(word)) - known:
                found.append((float(expected[number]), query[:start] + word + query[end:]))
    best = sorted(dict.fromkeys(found), key=lambda one: (-one[0], one[1]))[:count]
    texts = [text for _, text in best]
    own = model.embed(ids)
    weights = [
        float(np.clip(model.embed(other) @ own, 0, 1)) for other in model.pieces.encode(texts)
    ]
    return [Rewording(text, weight) for text, weight in zip(texts, weights, strict=True)]


def _words(pieces: Sequence[str]) -> Iterator[tuple[int, int]]:
    """First and last piece of each word."""
    first = 0
    for number in range(1, len(pieces) + 1):
        if number == len(pieces) or not pieces[number].startswith(INSIDE):
            yield first, number - 1
            first = number
