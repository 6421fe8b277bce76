"""Does a masked model see all but what is hidden, and what does it put in a query's place?"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tokenizers import Tokenizer
from tokenizers.models import BPE
from tokenizers.processors import BertProcessing

from birchbark.checkpoint.reader import Checkpoint
from birchbark.checkpoint.tokenizer import Pieces
from birchbark.errors import CheckpointError, InputError
from birchbark.index.reader import Index
from birchbark.records import Query, Rewording
from birchbark.retrieve.first_stage import rank_query
from birchbark.retrieve.query import query_terms, reworded_terms
from birchbark.score.masked import MaskedModel
from birchbark.score.rewording import check_rewording, reword
from birchbark.text.analyzer import analyzer
from conftest import VOCABULARY, WORDS

ENGLISH = analyzer("english")


@pytest.fixture
def model(bert: Callable[..., Path]) -> MaskedModel:
    """A tiny one of random weights."""
    return MaskedModel(bert(masked=True))


def test_what_is_hidden_is_not_seen(model: MaskedModel) -> None:
    """Probabilities of all tokens, the same whatever stands at the place, but not around it."""
    [ids, other, around] = model.pieces.encode(["the bark canoe", "the bee canoe", "a bark canoe"])
    found = model.expected(ids, 1)
    assert found.shape == (len(VOCABULARY),)
    assert found.sum() == pytest.approx(1, abs=1e-5)
    np.testing.assert_array_equal(found, model.expected(other, 1))
    assert not np.allclose(found, model.expected(around, 1))


def test_rewordings_are_the_likeliest(model: MaskedModel) -> None:
    """One new word each, in the place of one that is searched for; by brute force."""
    query = "The birch trees, iron"  # trees is tree ##s: one word
    spelt = ["the", "birch", "trees", ",", "iron"]
    likely: list[tuple[float, str]] = []
    for place, (start, end) in ((1, (4, 9)), (2, (10, 15)), (4, (17, 21))):
        hidden = [word if n != place else "iron" for n, word in enumerate(spelt)]
        [ids] = model.pieces.encode([" ".join(hidden)])
        before = len(model.pieces.encode([" ".join(spelt[:place])])[0])
        expected = model.expected(ids, before)
        for word in WORDS:
            if word.isalpha() and word not in ("birch", "tree", "iron") and ENGLISH.terms(word):
                number = VOCABULARY.index(word)
                likely.append((float(expected[number]), query[:start] + word + query[end:]))
    likely.sort(key=lambda one: (-one[0], one[1]))
    found = reword(model, query, ENGLISH.terms, 25)
    assert [one.text for one in found] == [text for _, text in likely[:25]]
    assert reword(model, query, ENGLISH.terms, 4) == found[:4]
    [own] = model.pieces.encode([query])
    for one in found:
        [other] = model.pieces.encode([one.text])
        cosine = float(model.embed(own) @ model.embed(other))
        assert one.weight == pytest.approx(max(0.0, cosine), abs=1e-6)


def test_a_query_without_words_has_no_other(model: MaskedModel) -> None:
    """Stop words and signs are not replaced."""
    assert reword(model, "the, a!", ENGLISH.terms, 3) == []


def test_scores_are_those_of_the_equation(index: Index) -> None:
    """BM25(Q) + Σ w_i · BM25(Q_i), of every document."""
    query, others = "birch river", [Rewording("birch bridge", 0.5), Rewording("iron river", 0.25)]
    weights = reworded_terms(index.analyzer, query, others, 0.8)
    expected: dict[str, float] = {}
    for weight, text in ((1.0, query), *((0.8 * one.weight, one.text) for one in others)):
        for doc_id, score in rank_query(index, text):
            expected[doc_id] = expected.get(doc_id, 0) + weight * score
    found = dict(rank_query(index, weights))
    assert found.keys() == expected.keys()
    for doc_id, score in found.items():
        assert score == pytest.approx(expected[doc_id], rel=1e-5)
    assert reworded_terms(index.analyzer, query, []) == query_terms(index.analyzer, query)


def test_faults(model: MaskedModel, bert: Callable[..., Path]) -> None:
    """Told as what they are."""
    with pytest.raises(InputError, match="query long: the query does not fit"):
        check_rewording(model, [Query("short", "birch"), Query("long", "birch " * 40)])
    other = bert(masked=True)
    numbers = {piece: number for number, piece in enumerate(VOCABULARY)}
    tokenizer = Tokenizer(BPE(vocab=numbers, merges=[], unk_token="[UNK]"))
    tokenizer.post_processor = BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    tokenizer.save(str(other / "tokenizer.json"))
    model.pieces = Pieces(Checkpoint.open(other))
    with pytest.raises(InputError, match=r"where words begin.*expected WordPiece, found BPE"):
        check_rewording(model, [Query("1", "birch")])
    with pytest.raises(InputError, match="count is out of range"):
        reword(model, "birch", ENGLISH.terms, 0)
    with pytest.raises(CheckpointError, match=r"no masked language model.*adapt"):
        MaskedModel(bert())
