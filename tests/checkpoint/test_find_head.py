"""Which of two labels means relevant?"""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import numpy as np
import pytest
from zoo import IDS, TYPES, FamilyReference, write_family

from birchbark.checkpoint.checkpoint import Checkpoint
from birchbark.errors import CheckpointError
from birchbark.score.load_scorer import load_scorer
from birchbark.score.session import OnnxSession


def test_next_sentence_is_label_0(tmp_path: Path) -> None:
    """BERT's next-sentence head serves as a relevance classifier."""
    name = "cls.seq_relationship"
    directory = write_family(tmp_path / "nsp", "bert", 2, name)
    reference = FamilyReference(directory, "bert")
    both = [reference.logits(i, t, name) for i, t in zip(IDS, TYPES, strict=True)]
    logits = OnnxSession(Checkpoint.open(directory)).run(IDS, TYPES)
    np.testing.assert_allclose(logits, [x[0] - x[1] for x in both], rtol=0, atol=1e-5)


@pytest.mark.parametrize("head", ["cls.seq_relationship", None])
def test_a_model_says_which_label_means_relevant(head: str | None, tmp_path: Path) -> None:
    """Birch's checkpoints are next-sentence models whose label 1 means relevant."""
    directory = write_family(tmp_path / "bert", "bert", 2, *([head] if head else []))
    config = json.loads((directory / "config.json").read_text())
    logits = {}
    for label in (None, 0, 1):
        said = {} if label is None else {"birchbark": {"relevant_label": label}}
        (directory / "config.json").write_text(json.dumps(config | said))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            load_scorer(directory)
        assert bool(caught) == (label is None and head is not None)
        logits[label] = OnnxSession(Checkpoint.open(directory)).run(IDS, TYPES)
    np.testing.assert_allclose(logits[1], -logits[0], rtol=0, atol=1e-6)
    assert (logits[None] == logits[0 if head else 1]).all()
    for wrong in (2, True, "relevant"):
        (directory / "config.json").write_text(
            json.dumps(config | {"birchbark": {"relevant_label": wrong}})
        )
        with pytest.raises(CheckpointError, match="wrong relevant_label: expected 0 or 1"):
            Checkpoint.open(directory)
