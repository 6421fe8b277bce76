"""Is nothing refused or cut off where a tokeniser makes more tokens than a text has characters?

SentencePiece puts ▁ before a text, so that "ab" can be three tokens (XLM-R, CamemBERT).
"""

from __future__ import annotations

from pathlib import Path

import pytest
from zoo import write_family

from birchbark.checkpoint.heads import Pooling
from birchbark.records import Segment
from birchbark.score.model import load_scorer
from birchbark.score.scorer import Scorer
from birchbark.segment.fit import fit
from conftest import VOCABULARY

LETTERS = "▁abcdefghijklmnop"
TEXTS = ["a", "ab", "abc", "abcd", "a b", "ab cd", "a.b", "abcdefgh", "abc def ghi", "a b c d e f"]


def write_sentencepiece(directory: Path) -> None:
    """An XLM-R-like tokeniser that knows letters alone, and fits the embeddings of the zoo."""
    from tokenizers import Tokenizer
    from tokenizers.models import Unigram
    from tokenizers.pre_tokenizers import Metaspace
    from tokenizers.processors import TemplateProcessing

    special = ["<s>", "<pad>", "</s>", "<unk>"]
    pieces = [*((t, 0.0) for t in special), *((letter, -2.0) for letter in LETTERS)]
    assert len(pieces) <= len(VOCABULARY)
    tokenizer = Tokenizer(Unigram(pieces, unk_id=3))
    tokenizer.pre_tokenizer = Metaspace()
    tokenizer.post_processor = TemplateProcessing(
        single="<s> $A </s>",
        pair="<s> $A </s> </s> $B </s>",
        special_tokens=[("<s>", 0), ("</s>", 2)],
    )
    tokenizer.save(str(directory / "tokenizer.json"))


@pytest.fixture(params=["cross-encoder", "embedding"])
def scorer(request: pytest.FixtureRequest, tmp_path: Path) -> Scorer:
    """Of a model that reads 32 tokens."""
    directory = write_family(tmp_path / "roberta", "roberta", 1)
    write_sentencepiece(directory)
    pooling = Pooling("mean") if request.param == "embedding" else None
    return load_scorer(directory, threads=1, pooling=pooling)


def test_there_are_more_tokens_than_characters(scorer: Scorer) -> None:
    """Else this file would show nothing."""
    assert [len(ids) for ids in scorer.encode(["a", "ab", "ab cd"])] == [2, 3, 6]


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("room", [1, 2, 3, 4, 5])
def test_chunks_of_short_texts_fit(scorer: Scorer, text: str, room: int) -> None:
    """Together they are the text, and none has more tokens than there is room for.

    One character can be two tokens, ▁ and itself; then a chunk cannot be made smaller.
    """
    (chunks,) = fit([Segment("d", 0, len(text), text)], room, scorer.encode, scorer.spans)
    assert "".join(chunk.text for chunk, _ in chunks) == text
    assert [len(ids) for _, ids in chunks] == [
        len(i) for i in scorer.encode([c.text for c, _ in chunks])
    ]
    for chunk, ids in chunks:
        assert len(ids) <= max(room, 2), chunk.text


@pytest.mark.parametrize("text", [*TEXTS, *(9 * text for text in TEXTS)])
def test_nothing_is_refused(scorer: Scorer, text: str) -> None:
    """As long a query as the model takes leaves all the less room, but scores come."""
    for query in ("a", "abcdefghij"):
        room = scorer.room(query)
        (chunks,) = fit([Segment("d", 0, len(text), text)], room, scorer.encode, scorer.spans)
        assert "".join(chunk.text for chunk, _ in chunks) == text
        scores = scorer.score(query, [ids for _, ids in chunks])
        assert ((scores >= 0) & (scores <= 1)).all()
