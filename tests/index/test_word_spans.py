"""Are the words that compiled code finds those of words.py?"""

from __future__ import annotations

import numpy as np
from hypothesis import given
from test_vocabulary import TEXTS

from birchbark.index.word_spans import word_spans
from birchbark.text.words import words


@given(TEXTS)
def test_compiled_and_interpreted_words_are_equal(texts: list[str]) -> None:
    """The words of a text's spans are its words; a span of ASCII is one word."""
    spans = word_spans(texts)
    strings = spans.strings(np.arange(len(spans.begins)))
    assert len(spans.firsts) == len(texts) + 1
    for i, text in enumerate(texts):
        of_text = strings[spans.firsts[i] : spans.firsts[i + 1]]
        assert [word for span in of_text for word in words(span)] == words(text)
        assert all(words(span) == [span] for span in of_text if span.isascii())
