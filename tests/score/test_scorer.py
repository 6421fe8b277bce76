"""Is every text scored, even if it has more tokens than characters?

SentencePiece puts ▁ before a text, so "ab" can be three tokens (XLM-R, CamemBERT).
"""

from __future__ import annotations

from pathlib import Path

import pytest
from zoo import write_family

from birchbark.checkpoint.heads import Pooling
from birchbark.records import Segment
from birchbark.score.load_scorer import load_scorer
from birchbark.score.scorer import Scorer
from birchbark.segment.split_long import split_long
from conftest import VOCABULARY

LETTERS = "▁abcdefghijklmnop"
TEXTS = ["a", "ab", "abc", "abcd", "a b", "ab cd", "a.b", "abcdefgh", "abc def ghi", "a b c d e f"]


def write_sentencepiece(directory: Path) -> None:
    """Write a tokeniser like XLM-R's whose tokens are letters, for the models of the zoo."""
    from tokenizers import Tokenizer
    from tokenizers.models import Unigram
    from tokenizers.pre_tokenizers import Metaspace
    from tokenizers.processors import TemplateProcessing

    special = ["<s>", "<pad>", "</s>", "<unk>"]
    vocabulary = [*((t, 0.0) for t in special), *((letter, -2.0) for letter in LETTERS)]
    assert len(vocabulary) <= len(VOCABULARY)
    tokenizer = Tokenizer(Unigram(vocabulary, unk_id=3))
    tokenizer.pre_tokenizer = Metaspace()
    tokenizer.post_processor = TemplateProcessing(
        single="<s> $A </s>",
        pair="<s> $A </s> </s> $B </s>",
        special_tokens=[("<s>", 0), ("</s>", 2)],
    )
    tokenizer.save(str(directory / "tokenizer.json"))


@pytest.fixture(params=["cross-encoder", "embedding"])
def scorer(request: pytest.FixtureRequest, tmp_path: Path) -> Scorer:
    """The scorer of a model that reads 32 tokens."""
    directory = write_family(tmp_path / "roberta", "roberta", 1)
    write_sentencepiece(directory)
    pooling = Pooling("mean") if request.param == "embedding" else None
    return load_scorer(directory, threads=1, pooling=pooling)


def test_there_are_more_tokens_than_characters(scorer: Scorer) -> None:
    """The premise of this file's tests."""
    assert [len(ids) for ids in scorer.encode(["a", "ab", "ab cd"])] == [2, 3, 6]


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("token_budget", [1, 2, 3, 4, 5])
def test_chunks_of_short_texts_fit(scorer: Scorer, text: str, token_budget: int) -> None:
    """Together they are the text, and none exceeds the token budget.

    One character can be two tokens, ▁ and itself; such a chunk cannot be split.
    """
    (chunks,) = split_long(
        [Segment("d", 0, len(text), text)], token_budget, scorer.encode, scorer.spans
    )
    assert "".join(chunk.text for chunk, _ in chunks) == text
    assert [len(ids) for _, ids in chunks] == [
        len(i) for i in scorer.encode([c.text for c, _ in chunks])
    ]
    for chunk, ids in chunks:
        assert len(ids) <= max(token_budget, 2), chunk.text


@pytest.mark.parametrize("text", [*TEXTS, *(9 * text for text in TEXTS)])
def test_every_text_is_scored(scorer: Scorer, text: str) -> None:
    """Every text is scored, even if a long query leaves a small token budget."""
    for query in ("a", "abcdefghij"):
        token_budget = scorer.token_budget(query)
        (chunks,) = split_long(
            [Segment("d", 0, len(text), text)], token_budget, scorer.encode, scorer.spans
        )
        assert "".join(chunk.text for chunk, _ in chunks) == text
        scores = scorer.score(query, [ids for _, ids in chunks])
        assert ((scores >= 0) & (scores <= 1)).all()
