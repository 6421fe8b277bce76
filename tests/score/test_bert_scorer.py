"""Do all scorers keep their bounds, and truncate nothing silently?"""

from __future__ import annotations

import numpy as np
import pytest
from reference import QUERY, SENTENCES, Bert

from birchbark.errors import InputError
from birchbark.score.load_scorer import load_scorer
from birchbark.score.scorer import score_texts


@pytest.mark.parametrize("labels", [None, 1])
def test_equal_texts_have_equal_scores(bert: Bert, labels: int | None) -> None:
    """Equal texts have equal scores within a call, and in calls with other texts."""
    scorer = load_scorer(bert(labels=labels))
    alone = score_texts(scorer, QUERY, SENTENCES[:1])
    together = score_texts(scorer, QUERY, [*SENTENCES, SENTENCES[0]])
    assert together[0] == together[-1] == alone[0] == score_texts(scorer, QUERY, SENTENCES[:1])[0]


@pytest.mark.parametrize("labels", [None, 1])
def test_scores_lie_between_0_and_1(bert: Bert, labels: int | None) -> None:
    """Aggregation and exact top-k rely on it; no texts give no scores."""
    scorer = load_scorer(bert(labels=labels))
    scores = score_texts(scorer, QUERY, SENTENCES)
    assert scores.dtype == np.float32
    assert ((scores >= 0) & (scores <= 1)).all()
    assert score_texts(scorer, QUERY, []).shape == (0,)


def test_nothing_is_truncated_silently(bert: Bert) -> None:
    """Queries and texts that are too long are rejected with the number of tokens."""
    cross, embedding = load_scorer(bert(labels=1)), load_scorer(bert())
    assert (cross.token_budget(QUERY), embedding.token_budget(QUERY)) == (32 - 3 - 5, 30)
    assert cross.token_budget("bee " * 14) == 32 - 3 - 14
    score_texts(cross, QUERY, ["bee " * cross.token_budget(QUERY)])
    with pytest.raises(InputError, match="at most 27 tokens, found 28"):
        score_texts(cross, QUERY, ["bee " * 28])
    with pytest.raises(InputError, match="at most 30 tokens, found 31"):
        score_texts(embedding, QUERY, ["bee " * 31])
    for scorer, max_tokens in ((cross, 14), (embedding, 30)):
        with pytest.raises(
            InputError, match=f"query is too long.*at most {max_tokens} tokens .*found 40"
        ):
            scorer.token_budget("bee " * 40)
