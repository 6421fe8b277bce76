"""How does a masked language model reformulate a query?

Each variant replaces one word of the query by another that the model predicts, as in section 5 of
an NTNU project report on CORD-19 (2021). The first stage adds the BM25 scores of the query and its
variants, weighting each variant by its similarity to the query (equation 5.1).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from birchbark import InputError, Query
from birchbark.errors import require_at_least
from birchbark.records import best_first
from birchbark.retrieve.query_terms import query_terms
from birchbark.score.masked_lm import MaskedLanguageModel
from birchbark.text.analyzer import Analyzer

CONTINUATION = "##"  # prefix of a word piece that does not begin a word

VARIANTS = 3  # of each query
VARIANT_WEIGHT = 1.0

Terms = Callable[[str], Sequence[str]]


@dataclass(frozen=True, slots=True)
class QueryVariant:
    """A reformulation of a query.

    Attributes:
        text: Text of the variant.
        weight: Weight from 0 to 1; the original query has weight 1.
    """

    text: str
    weight: float


def check_queries(model: MaskedLanguageModel, queries: Sequence[Query]) -> None:
    """Raise InputError unless `query_variants` can process these queries with this model.

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


def query_variants(
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
    known, tokens = set(terms(query)), model.tokenizer.id_to_token()
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
            if (word := tokens.get(number, "")).isalpha() and set(terms(word)) - known
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


def terms_with_variants(
    analyzer: Analyzer, text: str, variants: Iterable[QueryVariant], share: float = VARIANT_WEIGHT
) -> dict[str, float]:
    """Return the weighted terms of a query and its variants.

    The terms of variant i are multiplied by its weight w_i and by `share`. Since scores are sums
    over terms, this ranks by BM25(Q) + Σ_i share · w_i · BM25(Q_i), equation 5.1 of the cord paper.
    """
    weights = Counter(query_terms(analyzer, text))
    for variant in variants:
        for term, count in query_terms(analyzer, variant.text).items():
            weights[term] += share * variant.weight * count  # type: ignore[assignment]
    return {term: float(weight) for term, weight in weights.items()}


def _words(wordpieces: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield the positions of the first and last word piece of each word."""
    first = 0
    for number in range(1, len(wordpieces) + 1):
        if number == len(wordpieces) or not wordpieces[number].startswith(CONTINUATION):
            yield first, number - 1
            first = number
