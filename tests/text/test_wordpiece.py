"""Are terms the WordPiece tokens that BERT reads, and are unknown words counted?"""

from __future__ import annotations

from pathlib import Path

import pytest

from birchbark.checkpoint.locate import load_vocabulary
from birchbark.errors import InputError
from birchbark.index.build_index import Schema, build_index
from birchbark.index.describe import describe
from birchbark.index.index import Index
from birchbark.index.writer import IndexWriter
from birchbark.records import Document
from birchbark.retrieve.first_stage import rank_query
from birchbark.score.load_scorer import load_scorer
from birchbark.text.analyzer import NAMES, analyzer

TEXT = "Orchestrating the U.S. fleet's Überfahrt: re-ranking, 3.5 % (naïve?)"


def test_terms_are_the_tokens_of_the_model() -> None:
    """They are the tokens without punctuation, in the same order."""
    tokens = load_scorer()._tokenizer._tokenizer.encode(TEXT, add_special_tokens=False).tokens  # type: ignore[attr-defined]
    expected = [t for t in tokens if any(c.isalnum() for c in t)]
    assert analyzer("wordpiece", load_vocabulary()).terms(TEXT) == expected


def test_stems_are_split_into_tokens() -> None:
    """Porter's stemmer comes first, then the vocabulary."""
    vocabulary = ["[UNK]", "orchestr", "##ation", "orch", "##estr", "ponies", "poni"]
    assert analyzer("porter+wordpiece", vocabulary).terms("Ponies orchestrate") == [
        "poni",
        "orchestr",
    ]
    assert analyzer("wordpiece", vocabulary).terms("Ponies orchestration") == [
        "ponies",
        "orchestr",
        "##ation",
    ]


def test_unknown_words_are_no_terms_and_are_counted(tmp_path: Path) -> None:
    """All and distinct ones, without deleted documents; the index stores its vocabulary."""
    vocabulary = ["[UNK]", "bee", "##s", "dance"]
    documents = [
        Document("a", {"text": "Bees dance, zzz!"}),
        Document("b", {"text": "bee zzz yyy zzz"}),
        Document("c", {"text": "xxx"}),
    ]
    build_index(documents, tmp_path / "i", Schema("wordpiece", vocabulary))
    with IndexWriter(tmp_path / "i") as writer:
        writer.delete("c")
        writer.add(Document("d", {"text": "dances"}))
    index = Index(tmp_path / "i")
    assert rank_query(index, "dance bees").doc_ids == ("a", "d", "b")
    figures = describe(index)
    assert figures["contents: unknown words"] == 4
    assert figures["contents: distinct unknown words"] == 2
    assert figures["contents: tokens"] == 3 + 1 + 2


def test_only_wordpiece_takes_a_vocabulary() -> None:
    """It is an error to omit it there, or to pass it elsewhere."""
    for name in NAMES:
        given = None if "wordpiece" in name else ["[UNK]", "a"]
        with pytest.raises(InputError, match="vocabulary"):
            analyzer(name, given)
