"""How does a masked language model reformulate a query?

Each variant replaces one word of the query by another that the model predicts, as in section 5 of
an NTNU project report on CORD-19 (2021). The first stage adds the BM25 scores of the query and its
variants, weighting each variant by its similarity to the query (equation 5.1).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice

import numpy as np

from birchbark.errors import InputError, require_at_least
from birchbark.records import Query, QueryVariant, best_first
from birchbark.score.masked_lm import MaskedLanguageModel

CONTINUATION = "##"  # prefix of a word piece that does not begin a word

Terms = Callable[[str], Sequence[str]]


def check_queries(model: MaskedLanguageModel, queries: Sequence[Query]) -> None:
    """Raise InputError unless `reformulate` can process these queries with this model.

    The tokeniser must be WordPiece, which marks where words begin, and each query must fit into one
    input.
    """
    if model.tokenizer.algorithm != "WordPiece":
        raise InputError(
            "this tokeniser does not mark where words begin",
            wanted="WordPiece",
            found=model.tokenizer.algorithm,
        )
    for query, ids in zip(queries, model.tokenizer.encode([q.text for q in queries]), strict=True):
        if len(ids) > model.token_budget:
            raise InputError(
                "the query does not fit into one input",
                where=f"query {query.query_id}",
                wanted=f"at most {model.token_budget} tokens",
                found=str(len(ids)),
            )


def reformulate(
    model: MaskedLanguageModel, query: str, terms: Terms, count: int
) -> list[QueryVariant]:
    """Return the `count` most probable variants in which one word is replaced, best first.

    terms: returns the terms that the first stage extracts from a text. Words without terms (stop
    words) are not replaced, and words whose terms all occur in the query are not inserted, so a
    query may have fewer variants, or none. A variant's weight is the cosine of the model's vectors
    for the query and the variant; negative values become 0. Call `check_queries` first. Raises
    InputError for a count below 1.
    """
    require_at_least("count", count, 1)
    [ids] = model.tokenizer.encode([query])
    query_terms, tokens = set(terms(query)), model.tokenizer.id_to_token()
    candidates: list[tuple[float, str]] = []  # probability, text
    spans = model.tokenizer.spans(query)
    for first, last in _words([tokens[int(number)] for number in ids]):
        start, end = spans[first][0], spans[last][1]
        if not terms(query[start:end]):
            continue
        one_piece = np.concatenate([ids[: first + 1], ids[last + 1 :]])
        probabilities = model.predict(one_piece, first)  # (vocabulary,)
        replaced = (
            (float(probabilities[number]), query[:start] + word + query[end:])
            for number in best_first(probabilities)
            if (word := tokens.get(number, "")).isalpha() and set(terms(word)) - query_terms
        )
        candidates += islice(replaced, count)
    unique = dict.fromkeys(candidates)
    best = sorted(unique, key=lambda candidate: (-candidate[0], candidate[1]))[:count]
    texts = [text for _, text in best]
    query_vector = model.embed(ids)  # (hidden,)
    vectors = [model.embed(text_ids) for text_ids in model.tokenizer.encode(texts)]
    return [
        QueryVariant(text, float(np.clip(vector @ query_vector, 0, 1)))
        for text, vector in zip(texts, vectors, strict=True)
    ]


def _words(wordpieces: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield the positions of the first and last word piece of each word."""
    first = 0
    for number in range(1, len(wordpieces) + 1):
        if number == len(wordpieces) or not wordpieces[number].startswith(CONTINUATION):
            yield first, number - 1
            first = number
