"""Which variants of a query does a masked language model propose, and how are they weighted?"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tokenizers import Tokenizer
from tokenizers.models import BPE
from tokenizers.processors import BertProcessing

from birchbark.checkpoint.checkpoint import Checkpoint
from birchbark.checkpoint.tokenizer import CheckpointTokenizer
from birchbark.errors import InputError
from birchbark.index.index import Index
from birchbark.records import Query
from birchbark.retrieve.first_stage import rank_query
from birchbark.retrieve.query_terms import query_terms
from birchbark.score.masked_lm import MaskedLanguageModel
from birchbark.text.analyzer import analyzer
from birchbark_studies.query_variants import (
    QueryVariant,
    check_queries,
    query_variants,
    terms_with_variants,
)
from conftest import VOCABULARY, WORDS

ENGLISH = analyzer("english")


@pytest.fixture
def model(bert: Callable[..., Path]) -> MaskedLanguageModel:
    """A tiny model with random weights."""
    return MaskedLanguageModel(bert(masked=True))


def test_variants_are_the_most_probable(model: MaskedLanguageModel) -> None:
    """Each replaces one word that the first stage searches for; compared with brute force."""
    query = "The birch trees, iron"  # trees is tree ##s: one word
    words = ["the", "birch", "trees", ",", "iron"]
    candidates: list[tuple[float, str]] = []
    for position, (start, end) in ((1, (4, 9)), (2, (10, 15)), (4, (17, 21))):
        masked = [word if n != position else "iron" for n, word in enumerate(words)]
        [ids] = model.tokenizer.encode([" ".join(masked)])
        before = len(model.tokenizer.encode([" ".join(words[:position])])[0])
        probabilities = model.predict(ids, before)
        for word in WORDS:
            if word.isalpha() and word not in ("birch", "tree", "iron") and ENGLISH.terms(word):
                number = VOCABULARY.index(word)
                text = query[:start] + word + query[end:]
                candidates.append((float(probabilities[number]), text))
    candidates.sort(key=lambda candidate: (-candidate[0], candidate[1]))
    variants = query_variants(model, query, ENGLISH.terms, 25)
    assert [variant.text for variant in variants] == [text for _, text in candidates[:25]]
    assert query_variants(model, query, ENGLISH.terms, 4) == variants[:4]
    [own] = model.tokenizer.encode([query])
    for variant in variants:
        [other] = model.tokenizer.encode([variant.text])
        cosine = float(model.embed(own) @ model.embed(other))
        assert variant.weight == pytest.approx(max(0.0, cosine), abs=1e-6)


def test_a_query_of_stop_words_has_no_variants(model: MaskedLanguageModel) -> None:
    """Stop words and punctuation are not replaced."""
    assert query_variants(model, "the, a!", ENGLISH.terms, 3) == []


def test_scores_are_those_of_the_equation(index: Index) -> None:
    """Each document has BM25(Q) + Σ w_i · BM25(Q_i)."""
    query = "birch river"
    variants = [QueryVariant("birch bridge", 0.5), QueryVariant("river iron river", 0.25)]
    weights = terms_with_variants(index.analyzer, query, variants, 0.8)
    expected: dict[str, float] = {}
    weighted = [(1.0, query), *((0.8 * v.weight, v.text) for v in variants)]
    for weight, text in weighted:
        for doc_id, score in rank_query(index, text):
            expected[doc_id] = expected.get(doc_id, 0) + weight * score
    scores = dict(rank_query(index, weights))
    assert scores.keys() == expected.keys()
    for doc_id, score in scores.items():
        assert score == pytest.approx(expected[doc_id], rel=1e-5)
    assert terms_with_variants(index.analyzer, query, []) == query_terms(index.analyzer, query)


def test_terms_of_variants_are_weighted() -> None:
    """By the weight of the variant and the share of all variants, which is 1 by default."""
    variants = [QueryVariant("river bees", 0.5), QueryVariant("bees bees", 0.25)]
    found = terms_with_variants(ENGLISH, "birch river", variants)
    assert found == {"birch": 1, "river": 1.5, "bee": 1}
    found = terms_with_variants(ENGLISH, "birch river", variants, 0.5)
    assert found == {"birch": 1, "river": 1.25, "bee": 0.5}


def test_invalid_inputs_are_rejected(model: MaskedLanguageModel, bert: Callable[..., Path]) -> None:
    """Long queries, tokenisers other than WordPiece and bad counts are rejected."""
    with pytest.raises(InputError, match="query long: the query does not fit"):
        check_queries(model, [Query("short", "birch"), Query("long", "birch " * 40)])
    other = bert(masked=True)
    ids = {token: number for number, token in enumerate(VOCABULARY)}
    tokenizer = Tokenizer(BPE(vocab=ids, merges=[], unk_token="[UNK]"))
    tokenizer.post_processor = BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    tokenizer.save(str(other / "tokenizer.json"))
    model.tokenizer = CheckpointTokenizer(Checkpoint.open(other))
    with pytest.raises(InputError, match=r"where words begin.*expected WordPiece, found BPE"):
        check_queries(model, [Query("1", "birch")])
    with pytest.raises(InputError, match="count is out of range"):
        query_variants(model, "birch", ENGLISH.terms, 0)
