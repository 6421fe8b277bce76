"""Does the compiled vocabulary give the terms of the analyzer?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from birchbark.index.build_index import build_index
from birchbark.index.layout import Manifest
from birchbark.index.string_ids import LONGEST, StringIds
from birchbark.index.vocabulary import Vocabulary
from birchbark.index.word_spans import token_spans, word_spans
from birchbark.text.analyzer import Analyzer, analyzer, keyword
from birchbark.text.words import words
from conftest import DOCUMENTS

HOSTILE = "aZ1_.,:;'’\"- \t\r\n\x00\x0b\x1c\x7f\x85\xa0\u2028\u0301\u200d\ufe0féЖא日の゛テ한🐝🏽🇩"
ASCII = st.text(st.characters(max_codepoint=127)) | st.text("aBz019_.,:;' -\n")
TEXTS = st.lists(ASCII | st.text(HOSTILE) | st.text(st.characters(codec="utf-8")), max_size=6)
STRINGS = st.text("ab\0é", max_size=12) | st.text("ab", min_size=LONGEST - 2, max_size=LONGEST + 2)
VOCABULARY = ["[UNK]", *"abz019日é", *(f"##{c}" for c in "abz019é")]


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


@given(st.lists(st.lists(STRINGS, max_size=30), max_size=5))
def test_equal_strings_have_the_same_number(batches: list[list[str]]) -> None:
    """Numbers are in the order of first occurrence; very long strings are always new."""
    numbering, known = StringIds(), dict[int, str]()
    for batch in batches:
        spans = token_spans([batch])
        numbers, new = numbering.assign(spans)
        for i, number in zip(new.tolist(), range(len(known), len(numbering)), strict=True):
            known[number] = batch[i]
        assert [known[number] for number in numbers.tolist()] == batch
    short = [string for string in known.values() if len(string.encode()) <= LONGEST]
    assert len(short) == len(set(short))
    assert len(known) == len(numbering)


def test_many_strings_are_numbered() -> None:
    """There are so many that every array must grow, some of them within one call."""
    numbering = StringIds()
    strings = [f"{'long' * (i % 15)}{i}" for i in range(70_000)]
    for end in (300, 3_000, 70_000):
        numbers, _ = numbering.assign(token_spans([strings[:end], strings[:end]]))
        assert numbers.tolist() == 2 * list(range(end))
        assert len(numbering) == end


@pytest.mark.parametrize(
    "field_analyzer",
    [
        *map(analyzer, ("english", "porter", "plain")),
        analyzer("wordpiece", VOCABULARY),
        keyword(),
    ],
    ids=lambda field_analyzer: field_analyzer.name,
)
@given(batches=st.lists(TEXTS, max_size=3))
@settings(max_examples=40)
def test_texts_have_the_terms_of_their_analyzer(
    field_analyzer: Analyzer, batches: list[list[str]]
) -> None:
    """They are in order, with the number of tokens, for any division into batches."""
    vocabulary = Vocabulary(field_analyzer)
    for texts in batches:
        numbers, counts, tokens = vocabulary.read(texts)
        assert tokens == sum(len(field_analyzer.tokens(text)) for text in texts)
        assert counts.tolist() == [len(field_analyzer.terms(text)) for text in texts]
        terms = [vocabulary.terms[number] for number in numbers.tolist()]
        assert terms == [term for text in texts for term in field_analyzer.terms(text)]
    assert len(set(vocabulary.terms)) == len(vocabulary.terms)


def test_spans_cached_between_parts_change_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Clearing a cache that is too large does not change it either."""
    cached = build_index(DOCUMENTS, tmp_path / "cached", part_tokens=10)
    monkeypatch.setattr("birchbark.index.writer.MAX_CACHED_SPANS", 0)
    cleared = build_index(DOCUMENTS, tmp_path / "cleared", part_tokens=10)
    parts = [Manifest.read(index.directory).parts for index in (cached, cleared)]
    assert len(parts[0]) > 1
    assert parts[0] == parts[1]
