"""Do texts become the terms that their analyzer finds, when many are read at once?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from birchbark.index.build import build_index
from birchbark.index.cutting import cut
from birchbark.index.cutting import given as given_tokens
from birchbark.index.layout import Manifest
from birchbark.index.numbering import LONGEST, Numbering
from birchbark.index.vocabulary import Vocabulary
from birchbark.text.analyzer import Analyzer, analyzer, keyword
from birchbark.text.words import words
from conftest import DOCUMENTS

HOSTILE = "aZ1_.,:;'’\"- \t\r\n\x00\x0b\x1c\x7f\x85\xa0\u2028\u0301\u200d\ufe0féЖא日の゛テ한🐝🏽🇩"
ASCII = st.text(st.characters(max_codepoint=127)) | st.text("aBz019_.,:;' -\n")
TEXTS = st.lists(ASCII | st.text(HOSTILE) | st.text(st.characters(codec="utf-8")), max_size=6)
STRINGS = st.text("ab\0é", max_size=12) | st.text("ab", min_size=LONGEST - 2, max_size=LONGEST + 2)
VOCABULARY = ["[UNK]", *"abz019日é", *(f"##{c}" for c in "abz019é")]


@given(TEXTS)
def test_compiled_and_interpreted_words_are_the_same(texts: list[str]) -> None:
    """The words of a text's pieces are its words; a piece of ASCII is one word."""
    pieces = cut(texts)
    found = pieces.take(np.arange(len(pieces.begins)))
    assert len(pieces.firsts) == len(texts) + 1
    for i, text in enumerate(texts):
        here = found[pieces.firsts[i] : pieces.firsts[i + 1]]
        assert [word for piece in here for word in words(piece)] == words(text)
        assert all(words(piece) == [piece] for piece in here if piece.isascii())


@given(st.lists(st.lists(STRINGS, max_size=30), max_size=5))
def test_the_same_string_has_the_same_number(batches: list[list[str]]) -> None:
    """Numbers count up in the order of first occurrence; the longest strings are always new."""
    numbering, known = Numbering(), dict[int, str]()
    for batch in batches:
        pieces = given_tokens([batch])
        numbers, fresh = numbering.of(pieces)
        for i, number in zip(fresh.tolist(), range(len(known), len(numbering)), strict=True):
            known[number] = batch[i]
        assert [known[number] for number in numbers.tolist()] == batch
    short = [string for string in known.values() if len(string.encode()) <= LONGEST]
    assert len(short) == len(set(short))
    assert len(known) == len(numbering)


def test_many_strings_are_numbered() -> None:
    """Every table has to grow, some within one call."""
    numbering = Numbering()
    strings = [f"{'long' * (i % 15)}{i}" for i in range(70_000)]
    for end in (300, 3_000, 70_000):
        numbers, _ = numbering.of(given_tokens([strings[:end], strings[:end]]))
        assert numbers.tolist() == 2 * list(range(end))
        assert len(numbering) == end


@pytest.mark.parametrize(
    "chosen",
    [
        *map(analyzer, ("english", "porter", "plain")),
        analyzer("wordpiece", VOCABULARY),
        keyword(),
    ],
    ids=lambda chosen: chosen.name,
)
@given(batches=st.lists(TEXTS, max_size=3))
@settings(max_examples=40)
def test_texts_become_the_terms_of_their_analyzer(
    chosen: Analyzer, batches: list[list[str]]
) -> None:
    """In order, with the number of tokens, however texts are divided into batches."""
    vocabulary = Vocabulary(chosen)
    for texts in batches:
        numbers, counts, tokens = vocabulary.read(texts)
        assert tokens == sum(len(chosen.tokens(text)) for text in texts)
        assert counts.tolist() == [len(chosen.terms(text)) for text in texts]
        terms = [vocabulary.terms[number] for number in numbers.tolist()]
        assert terms == [term for text in texts for term in chosen.terms(text)]
    assert len(set(vocabulary.terms)) == len(vocabulary.terms)


def test_what_is_remembered_between_parts_does_not_show(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor that it is forgotten when it is too much."""
    kept = build_index(DOCUMENTS, tmp_path / "kept", part_tokens=10)
    monkeypatch.setattr("birchbark.index.writer.MOST_KEPT", 0)
    forgot = build_index(DOCUMENTS, tmp_path / "forgot", part_tokens=10)
    parts = [Manifest.read(index.directory).parts for index in (kept, forgot)]
    assert len(parts[0]) > 1
    assert parts[0] == parts[1]
