"""Does a model's card say what it is, and from what it was trained?"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from birchbark.artifact import fingerprint
from birchbark.checkpoint.architecture import Architecture
from birchbark.checkpoint.checkpoint import Checkpoint
from birchbark.checkpoint.model_card import (
    LINEAGE,
    card_kind,
    lineage_of,
    render_card,
    write_card,
)
from birchbark.errors import ArtifactError

TRAINING: dict[str, Any] = {
    "title": "Bark",
    "data": [
        {
            "name": "bees",
            "learnt": {"queries": 1200, "pairs": 34000},
            "held": {"queries": 5},
            "licence": "MIT",
        }
    ],
    "seed": 3,
    "steps": 2000,
    "ended": "all steps",
}


@pytest.mark.parametrize(
    ("architecture", "tag", "library", "task"),
    [
        (Architecture(), "cross-encoder", "sentence-transformers", "text-ranking"),
        (
            Architecture(pooling="mean"),
            "bi-encoder",
            "sentence-transformers",
            "sentence-similarity",
        ),
        (Architecture(parade="max"), "parade", "birchbark", "text-ranking"),
        (Architecture(duo=True), "duo", "birchbark", "text-ranking"),
        (Architecture(masked=True), "fill-mask", "transformers", "fill-mask"),
    ],
)
def test_each_kind_names_what_loads_it(
    architecture: Architecture, tag: str, library: str, task: str
) -> None:
    """Other libraries load those that they know."""
    kind = card_kind(architecture)
    assert (kind.tag, kind.library, kind.task) == (tag, library, task)


def test_the_card_tells_the_lineage() -> None:
    """Numbers have separators, and licences are listed once."""
    distilled = {**TRAINING, "title": "Birch", "settings": {"match": {"teacher": "oak"}}}
    distilled["data"] = [{**TRAINING["data"][0], "teacher": {"model": "ash", "pooling": "cls"}}]
    card = render_card(
        {"base": "tree", "trainings": [TRAINING, distilled]}, card_kind(Architecture())
    )
    assert card.startswith('---\nbase_model: "tree"\nlibrary_name: sentence-transformers\n')
    paragraphs = card.split("\n\n")
    for paragraph in (
        "# Birch",
        "Trained from tree → Bark → Birch.",
        "Licences of the data: MIT.",
        "Seed 3; 2,000 steps; all steps.",
        "Distilled from the scores of another model: bees by ash (cls).",
    ):
        assert paragraphs.count(paragraph) == (2 if paragraph.startswith("Seed") else 1)
    assert "| bees | 1,200 | 34,000 | 5 | MIT |" in card
    assert paragraphs[-1] == "Distilled from the hidden states of oak.\n"


def test_measures_have_their_intervals() -> None:
    """Those of a model that compares texts say how often it contradicts itself."""
    measures = {"bees": {"queries": 5, "mean": 0.51, "low": 0.4, "high": 0.6, "agreement": 0.98}}
    training = {**TRAINING, "measures": measures, "measure": "nDCG@10", "best_step": 1500}
    card = render_card({"base": "tree", "trainings": [training]}, card_kind(Architecture(duo=True)))
    assert "Seed 3; 2,000 steps, step 1,500 is kept; all steps." in card
    assert "| data | held-out queries | nDCG@10 [95 % interval] |" in card
    assert "| bees | 5 | 0.5100 [0.4000, 0.6000] |" in card
    assert "bees: 98% of comparisons give the same order when the two texts are swapped." in card


def test_a_lineage_goes_on(bert: Callable[..., Path]) -> None:
    """One that is not stored begins with the hash of the weights; a damaged one is refused."""
    checkpoint = Checkpoint.open(bert(labels=1))
    begun = lineage_of(checkpoint, "tree")
    weights = fingerprint(checkpoint.weights)
    assert begun == {"base": "tree", "sha256": weights, "trainings": []}
    lineage = {**begun, "trainings": [TRAINING]}
    write_card(checkpoint.directory, lineage, card_kind(Architecture()))
    assert (checkpoint.directory / "README.md").read_text().count("# Bark") == 2
    assert lineage_of(checkpoint, "other") == lineage
    (checkpoint.directory / LINEAGE).write_text(json.dumps({"base": "tree"}))
    with pytest.raises(ArtifactError, match="not a lineage"):
        lineage_of(checkpoint, "tree")
