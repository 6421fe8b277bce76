"""Is each token of a long segment in a chunk that fits?"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_segments import TEXTS

from birchbark.records import Document, Ids, Segment
from birchbark.score.load_scorer import load_scorer
from birchbark.segment import split_long as split_long_module
from birchbark.segment.sentences import sentences
from birchbark.segment.split_long import split_long
from birchbark.segment.windows import Windows


def word_spans(text: str) -> list[tuple[int, int]]:
    return [m.span() for m in re.finditer(r"\S+", text)]


def word_ids(texts: Sequence[str]) -> list[Ids]:
    return [np.array([len(word) for word in text.split()], np.int32) for text in texts]


@given(text=TEXTS, token_budget=st.integers(1, 6))
def test_chunks_cover_every_token(text: str, token_budget: int) -> None:
    """Each token of a long sentence is in a chunk of at most `token_budget` tokens."""
    document = Document("d", {"text": text})
    segments = sentences(document)
    fitted = split_long(segments, token_budget, word_ids, word_spans)
    chunks = [chunk for of_segment in fitted for chunk, _ in of_segment]
    assert all(len(word_spans(p.text)) <= token_budget for p in chunks)
    words = [word for segment in segments for word in segment.text.split()]
    assert [word for chunk in chunks for word in chunk.text.split()] == words
    assert all(p.text == document.contents[p.start : p.end] for p in chunks)


def test_many_segments_are_encoded_in_several_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is being encoded needs much memory; the chunks are the same."""
    segments = sentences(Document("d", {"text": "Bees dance. " * 40 + "one two three four five."}))
    whole = split_long(segments, 3, word_ids, word_spans)
    calls = []

    def encode(texts: Sequence[str]) -> list[Ids]:
        calls.append(sum(map(len, texts)))
        return word_ids(texts)

    monkeypatch.setattr(split_long_module, "AT_ONCE", 100)
    fitted = split_long(segments, 3, encode, word_spans)
    assert [[chunk for chunk, _ in some] for some in fitted] == [
        [chunk for chunk, _ in some] for some in whole
    ]
    assert 4 < len(calls) < len(segments)
    assert max(calls) < 130


def test_a_prepended_title_is_split_but_not_lost() -> None:
    """The offsets of chunks are those of the text after the title."""
    document = Document("d", {"title": "one two", "text": "three four five"})
    (window,) = Windows()(document)
    chunks = [s for s, _ in split_long([window], 2, word_ids, word_spans)[0]]
    assert [p.text.split() for p in chunks] == [["one", "two"], ["three", "four"], ["five"]]
    assert document.contents[chunks[1].start : chunks[1].end].split() == ["three", "four"]


@given(st.lists(st.text("abcé-日", min_size=1, max_size=40), min_size=1, max_size=30).map(" ".join))
def test_chunks_fit_by_the_models_own_tokens(text: str) -> None:
    """Splitting a word can add word pieces; each chunk is counted by itself."""
    scorer = load_scorer()
    segment = Segment("d", 0, len(text), text)
    for token_budget in (3, 7, 20):
        (chunks,) = split_long([segment], token_budget, scorer.encode, scorer.spans)
        assert "".join(chunk.text for chunk, _ in chunks) == text
        assert all(len(scorer.spans(chunk.text)) <= token_budget for chunk, _ in chunks)
