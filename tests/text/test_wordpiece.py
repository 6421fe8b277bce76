"""Are terms BERT's own pieces, and is what it cannot spell counted?"""

from __future__ import annotations

from pathlib import Path

import pytest

from birchbark.checkpoint.named import load_vocabulary
from birchbark.errors import InputError
from birchbark.index.build import Schema, build_index
from birchbark.index.describe import describe
from birchbark.index.reader import Index
from birchbark.index.writer import IndexWriter
from birchbark.records import Document
from birchbark.retrieve.first_stage import rank_query
from birchbark.score.model import load_scorer
from birchbark.text.analyzer import NAMES, analyzer

TEXT = "Orchestrating the U.S. fleet's Überfahrt: re-ranking, 3.5 % (naïve?)"


def test_pieces_are_those_the_model_reads() -> None:
    """All but punctuation, and in the same order."""
    tokens = load_scorer()._pieces._tokenizer.encode(TEXT, add_special_tokens=False).tokens  # type: ignore[attr-defined]
    expected = [t for t in tokens if any(c.isalnum() for c in t)]
    assert analyzer("wordpiece", load_vocabulary()).terms(TEXT) == expected


def test_stems_are_cut_into_pieces() -> None:
    """Porter first, then the vocabulary."""
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
    """Total and distinct, deleted documents left out; the index keeps its vocabulary."""
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


def test_a_vocabulary_goes_with_wordpieces_alone() -> None:
    """Neither forgotten nor ignored."""
    for name in NAMES:
        given = None if "wordpiece" in name else ["[UNK]", "a"]
        with pytest.raises(InputError, match="vocabulary"):
            analyzer(name, given)
