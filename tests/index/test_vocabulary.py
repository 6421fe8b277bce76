"""Does the compiled vocabulary give the terms of the analyzer?"""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from birchbark.index.build_index import build_index
from birchbark.index.layout import Manifest
from birchbark.index.vocabulary import Vocabulary
from birchbark.text.analyzer import Analyzer, analyzer, keyword
from conftest import DOCUMENTS

HOSTILE = "aZ1_.,:;'’\"- \t\r\n\x00\x0b\x1c\x7f\x85\xa0\u2028\u0301\u200d\ufe0féЖא日の゛テ한🐝🏽🇩"
ASCII = st.text(st.characters(max_codepoint=127)) | st.text("aBz019_.,:;' -\n")
TEXTS = st.lists(ASCII | st.text(HOSTILE) | st.text(st.characters(codec="utf-8")), max_size=6)
VOCABULARY = ["[UNK]", *"abz019日é", *(f"##{c}" for c in "abz019é")]


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
