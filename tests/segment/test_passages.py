"""Are passages whole sentences, up to a number of words?"""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_segments import TEXTS

from birchbark.errors import InputError
from birchbark.records import Document, Segment
from birchbark.segment.passages import Passages
from birchbark.segment.sentences import sentences


@given(text=TEXTS, size=st.integers(1, 12))
def test_passages_are_whole_sentences(text: str, size: int) -> None:
    """A passage ends where its next sentence would exceed the size; sentences are never divided."""
    document = Document("d", {"text": text})

    def count(sentence: str) -> int:  # every character of these texts' Japanese is a word
        return len(re.findall(r"[日本。]|[^\s日本。]+", sentence))

    split, found = sentences(document), Passages(size)(document)
    assert {p.start for p in found} <= {s.start for s in split}
    assert {p.end for p in found} <= {s.end for s in split}
    for passage in found:
        inside = [s for s in split if passage.start <= s.start < passage.end]
        words = sum(count(s.text) for s in inside)
        following = [s for s in split if s.start >= passage.end][:1]
        assert words <= size or len(inside) == 1
        assert all(words + count(s.text) > size for s in following)


def test_a_short_text_is_one_passage_with_its_title() -> None:
    """The title counts towards the size, and is read with each passage of a longer text."""
    fields = {"title": "Bees", "text": "They dance. They fly far. They sting."}
    assert Passages(8)(Document("d", fields)) == [Segment("d", 5, 42, "Bees\n" + fields["text"])]
    assert [(p.text, p.start, p.end) for p in Passages(6)(Document("d", fields))] == [
        ("Bees\nThey dance. They fly far.", 5, 30),
        ("Bees\nThey sting.", 31, 42),
    ]
    long_title = {"title": "one two three four", "text": "They dance."}
    assert [p.text for p in Passages(6)(Document("d", long_title))] == [
        "one two three four\nThey dance."
    ]
    assert [p.text for p in Passages(7)(Document("d", {"title": "Bees"}))] == ["Bees"]
    japanese = Passages(8)(Document("d", {"title": "日本", "text": "日本。" * 4}))
    assert [p.text for p in japanese] == ["日本\n日本。日本。"] * 2
    with pytest.raises(InputError, match="passage size is out of range: expected 1 or more"):
        Passages(0)


def test_a_title_of_blanks_takes_no_sentence() -> None:
    """An ideographic space is a word of the text, but no title."""
    document = Document("d", {"title": "\u3000", "text": "They dance. They fly."})
    assert [p.text for p in Passages(2)(document)] == ["They dance.", "They fly."]


def test_a_title_of_half_a_passage_is_prepended() -> None:
    """A longer one is the beginning of the text."""
    document = Document("d", {"title": "one two", "text": "They dance. They fly."})
    texts = [[p.text for p in Passages(size)(document)] for size in (4, 3)]
    assert texts[0] == ["one two\nThey dance.", "one two\nThey fly."]
    assert texts[1] == ["one two", "They dance.", "They fly."]
