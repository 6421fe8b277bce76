"""Does a masked language model ignore the masked token, and which tokens does it predict?"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from birchbark.errors import CheckpointError, InputError
from birchbark.score.masked_lm import MaskedLanguageModel
from conftest import VOCABULARY


@pytest.fixture
def model(bert: Callable[..., Path]) -> MaskedLanguageModel:
    """A tiny model with random weights."""
    return MaskedLanguageModel(bert(masked=True))


def test_predictions_ignore_the_masked_token(model: MaskedLanguageModel) -> None:
    """Predictions depend only on the surrounding tokens; their probabilities sum to 1."""
    [ids, other, around] = model.tokenizer.encode(
        ["the bark canoe", "the bee canoe", "a bark canoe"]
    )
    probabilities = model.predict(ids, 1)
    assert probabilities.shape == (len(VOCABULARY),)
    assert probabilities.sum() == pytest.approx(1, abs=1e-5)
    np.testing.assert_array_equal(probabilities, model.predict(other, 1))
    assert not np.allclose(probabilities, model.predict(around, 1))


def test_masks_in_a_text_are_filled(model: MaskedLanguageModel) -> None:
    """Each with the most probable tokens, where all masks are masked at once."""
    first, second = model.fill("the [MASK] canoe, [MASK].", 3)
    ids = np.concatenate([model.tokenizer.encode(["the"])[0], [model.mask]])
    rest = model.tokenizer.encode(["canoe,", "."])
    ids = np.concatenate([ids, rest[0], [model.mask], rest[1]]).astype(np.int32)
    for filled, position in ((first, 1), (second, 4)):
        probabilities = model.predict(ids, position)
        best = np.argsort(-probabilities)[:3]
        assert [token for token, _ in filled] == [VOCABULARY[n] for n in best]
        assert [p for _, p in filled] == pytest.approx(probabilities[best].tolist())
    with pytest.raises(InputError, match=r"no \[MASK\] in the text"):
        model.fill("the canoe", 3)
    with pytest.raises(InputError, match="the text is too long for the model"):
        model.fill("birch " * 40 + "[MASK]", 1)


def test_other_models_are_rejected(bert: Callable[..., Path]) -> None:
    """A model without a masked head is refused, with the command that trains one."""
    with pytest.raises(CheckpointError, match=r"not a masked language model.*birchbark train"):
        MaskedLanguageModel(bert())
