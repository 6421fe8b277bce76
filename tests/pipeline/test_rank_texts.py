"""Are the sentences found that are most relevant to a query?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from birchbark import highlight, load_ranker, rank
from birchbark.errors import DeadlineError, InputError
from birchbark.pipeline.settings.ranker import Ranker
from birchbark.pipeline.settings.reading_plan import ReadingPlan
from conftest import WordScorer

TEXTS = ["It is late. The bees dance.\n\nIron rusts. the bees", "", "a birch. a birch."]


def test_sentences_with_offsets() -> None:
    """Each text gives at most three, best first; texts keep their order."""
    found = highlight("bees dance", TEXTS, WordScorer())
    assert [[x.segment.text for x in of_text] for of_text in found][:2] == [
        ["The bees dance.", "the bees", "It is late."],
        [],
    ]
    for text, of_text in zip(TEXTS, found, strict=True):
        assert len(of_text) <= 3
        assert [text[x.segment.start : x.segment.end] for x in of_text] == [
            x.segment.text for x in of_text
        ]
        scores = [x.score for x in of_text]
        assert scores == sorted(scores, reverse=True)


def test_by_both_default_models() -> None:
    """The cross-encoder reads what the embedding chooses."""
    text = "The shop opens at nine. Parcels can be sent back within thirty days. We sell tea."
    (found,) = highlight("how long can I return a parcel", [text])
    assert found[0].segment.text == "Parcels can be sent back within thirty days."
    assert 0 < found[0].score <= 1


def test_a_ranker_keeps_its_models_only() -> None:
    """Its plan, limits and aggregation are for searches."""
    ranker = Ranker(WordScorer(), plan=ReadingPlan(segments=1, pairs=1))
    of_ranker, of_model = (highlight("bees dance", TEXTS, x) for x in (ranker, WordScorer()))
    assert of_ranker == of_model


def test_an_embedding_with_all_the_weight_chooses_alone() -> None:
    """The cross-encoder, whose scores would not count, reads nothing."""
    both = load_ranker()
    text = "The shop opens at nine. Parcels can be sent back within thirty days. We sell tea."
    query = "how long can I return a parcel"
    alone = highlight(query, [text], both.embedding)
    assert highlight(query, [text], replace(both, embedding_weight=1.0)) == alone
    assert len(alone[0]) == 3


def test_too_little_time() -> None:
    with pytest.raises(DeadlineError, match="time does not suffice"):
        highlight("bees dance", TEXTS, WordScorer(), budget=1e-9)


@pytest.mark.parametrize("function", [rank, highlight])
def test_a_text_too_long_for_any_budget(function: Callable[..., object]) -> None:
    """It is refused at once where a model is to read all of it, and read without a budget."""
    texts = ["bees", "A bee dances. " * 15_000]
    with pytest.raises(InputError, match="too long to be read within a budget") as error:
        function("bees dance", texts, WordScorer(), budget=60)
    assert error.value.where == "text 1"
    assert error.value.found == "210,000"
    assert function("bees dance", texts, WordScorer())
