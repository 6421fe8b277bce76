"""Are long texts encoded in short steps, with the tokens of the whole?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from birchbark.checkpoint import tokenizer as module
from birchbark.checkpoint.checkpoint import Checkpoint
from birchbark.checkpoint.known_words import KnownWords
from birchbark.checkpoint.locate import locate
from birchbark.checkpoint.tokenizer import CheckpointTokenizer
from birchbark.records import Ids


@pytest.fixture(scope="module")
def tokenizer() -> CheckpointTokenizer:
    return CheckpointTokenizer(Checkpoint.open(locate("birchbark-minilm-l6")))


@pytest.mark.parametrize("step", [3, 20])
def test_steps_have_the_tokens_of_the_whole(
    tokenizer: CheckpointTokenizer, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    """Places count from the beginning of the text, also where letters have other forms."""
    text = (
        "The ﬁr and the birch 中文 in H₂O  &  old Ⅷ–Ⅸ canoes,\n\nn\u00adot in a\u0301 river. " * 3
    )
    texts = [text, "", "birch", text[7:]]
    whole = [ids.tolist() for ids in tokenizer.encode(texts)], [*map(tokenizer.spans, texts)]
    monkeypatch.setattr(module, "STEP", step)
    monkeypatch.setattr(module, "REACH", 100)
    steps = [ids.tolist() for ids in tokenizer.encode(texts)], [*map(tokenizer.spans, texts)]
    assert steps == whole


@pytest.mark.parametrize("text", ["-," * 40_000, "中" * 80_000, "\ufdfa" * 80_000, "x " * 40_000])
def test_no_step_is_long(
    tokenizer: CheckpointTokenizer, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    """Whatever the text consists of; a character has at most four tokens."""
    longest = 0
    encode = KnownWords.encode

    def watched(self: KnownWords, texts: Sequence[str]) -> list[Ids]:
        nonlocal longest
        longest = max([longest, *map(len, texts)])
        return encode(self, texts)

    monkeypatch.setattr(KnownWords, "encode", watched)
    (ids,) = tokenizer.encode([text])
    assert 0 < len(ids) <= 4 * len(text)
    assert ids.dtype == np.int32
    assert longest <= 2 * 4 * module.STEP
