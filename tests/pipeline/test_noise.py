"""Does a sentence that answers a question rank above source code, tables and navigation?"""

from __future__ import annotations

import tomllib
from pathlib import Path

from birchbark.pipeline.rank_texts import rank

LEAST = 11  # of 16 questions; measured: 12. See docs/explanation/default-model.md


def test_an_answer_ranks_above_noise() -> None:
    """It does for most questions with the default models; every text is scored."""
    texts = tomllib.loads(Path(__file__).with_name("noise.toml").read_text("utf-8"))
    noise, first = texts["noise"]["texts"], 0
    for question, answer in texts["questions"].items():
        ranked = rank(question, [answer, *noise])
        assert len(ranked) == len(noise) + 1
        first += ranked[0].index == 0
    assert first >= LEAST
