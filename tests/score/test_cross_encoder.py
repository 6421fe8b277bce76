"""Are scores the probabilities of BERT's classifier?"""

from __future__ import annotations

import numpy as np
import pytest
from reference import QUERY, SENTENCES, Bert, Reference, ids

from birchbark.checkpoint.checkpoint import Checkpoint
from birchbark.score.cross_encoder import CrossEncoderScorer
from birchbark.score.load_scorer import load_scorer
from birchbark.score.scorer import score_texts


def test_logits_agree_with_the_reference(bert: Bert) -> None:
    """Computing the last layer for [CLS] alone changes nothing."""
    directory = bert(labels=1, layers=3)
    scorer, reference = CrossEncoderScorer(Checkpoint.open(directory)), Reference(directory)
    head = [2, *ids(QUERY), 3]
    expected = [
        reference.logits([*head, *ids(s), 3], [0] * len(head) + [1] * (len(ids(s)) + 1))[0]
        for s in SENTENCES
    ]
    np.testing.assert_allclose(scorer.outputs(QUERY, scorer.encode(SENTENCES)), expected, atol=1e-5)
    probabilities = 1 / (1 + np.exp(-np.array(expected)))
    np.testing.assert_allclose(score_texts(scorer, QUERY, SENTENCES), probabilities, atol=1e-5)


def test_two_logits_are_a_softmax(bert: Bert) -> None:
    """The score is the probability of the second class."""
    directory = bert(labels=2)
    scorer, reference = load_scorer(directory), Reference(directory)
    head = [2, *ids(QUERY), 3]
    for sentence in SENTENCES[:12]:
        tail = [*ids(sentence), 3]
        logits = np.exp(reference.logits([*head, *tail], [0] * len(head) + [1] * len(tail)))
        score = score_texts(scorer, QUERY, [sentence])[0]
        assert score == pytest.approx(logits[1] / logits.sum(), abs=1e-5)


def test_several_queries_score_as_each_alone(bert: Bert) -> None:
    """Scores are equal bit for bit; a query without texts has none."""
    scorer = CrossEncoderScorer(Checkpoint.open(bert(labels=1)))
    encoded = scorer.encode(SENTENCES)
    requests = [("birch", encoded[:7]), ("canoe river", []), (QUERY, encoded[7:])]
    found = scorer.score_queries(requests)
    for scores, (query, texts) in zip(found, requests, strict=True):
        np.testing.assert_array_equal(scores, scorer.score(query, texts))
    assert scorer.score_queries([]) == []
