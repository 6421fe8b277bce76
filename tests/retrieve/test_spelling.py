"""Are likely misspellings corrected by the words of the documents, and other words left alone?"""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest

from birchbark.index.build_index import Schema, build_index
from birchbark.index.index import Index
from birchbark.index.writer import IndexWriter
from birchbark.records import Document
from birchbark.retrieve.spelling import correct_query

TEXTS = [
    "The libraries receive signals.",
    "Signals cross the river, and the libraries answer.",
    "A library keeps packages in 2024.",
    *(f"Package number {n} is installed here." for n in range(60)),
    "One numbre.",
    "Letters from Jouni.",
]


@pytest.fixture
def words(tmp_path: Path) -> Index:
    documents = [Document(str(n), {"text": text}) for n, text in enumerate(TEXTS)]
    return build_index(documents, tmp_path / "index")


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("libary", "library"),  # an omitted letter
        ("what are libararies?", "what are libraries?"),  # an added one; the rest stays
        ("Recieve signals", "receive signals"),  # transposed
        ("pakkages", "packages"),  # the spelling that is nearest, of the same stem
        ("a numbre", "a number"),  # occurs, but in a fiftieth of the documents
        ("receive signals", None),
        ("rivet", "river"),
        ("journey", None),  # whose stem resembles jouni, as the word does not
        ("rivtx", None),  # two letters wrong of five
        ("2023 xyzzy", None),  # numbers, and what resembles nothing
        ("", None),
    ],
)
def test_corrections(words: Index, query: str, expected: str | None) -> None:
    """Numbers, words that occur often enough and words that resemble none stay as they are."""
    assert correct_query(words, query) == expected


def test_words_of_deleted_documents_are_not_suggested(words: Index) -> None:
    """An index that was opened before still suggests them."""
    with IndexWriter(words.directory) as writer:
        writer.delete("2")
    changed = Index(words.directory)
    assert correct_query(changed, "kepes packages") is None
    assert correct_query(words, "kepes packages") == "keeps packages"


def test_an_analyzer_without_stems(tmp_path: Path) -> None:
    """Words are corrected as they stand."""
    documents = [Document(str(n), {"text": text}) for n, text in enumerate(TEXTS)]
    index = build_index(documents, tmp_path / "plain", Schema(analyzer="plain"))
    assert correct_query(index, "libary") == "library"


def test_many_words_of_a_large_vocabulary(tmp_path: Path) -> None:
    """The time does not grow with the vocabulary: no term is looked at whose beginning differs."""
    chance = random.Random(5)
    invented = ["".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=8)) for _ in range(40_000)]
    documents = [
        Document(str(n), {"text": " ".join(invented[n : n + 1000])}) for n in range(0, 40_000, 1000)
    ]
    index = build_index(documents, tmp_path / "index", Schema(analyzer="plain"))
    correct_query(index, "abcdefgh")  # compiles
    query = " ".join("".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=7)) for _ in range(248))
    start = time.thread_time()
    correct_query(index, query)
    assert time.thread_time() - start < 5


def test_it_is_asked_before_each_step_whether_to_go_on(words: Index) -> None:
    """A step compares the terms of a word, or reads a document."""
    steps = 0

    def check() -> None:
        nonlocal steps
        steps += 1

    correct_query(words, "libary recieve xyzzyx", check)
    assert steps > 5

    def late() -> None:
        raise TimeoutError

    with pytest.raises(TimeoutError):
        correct_query(words, "libary", late)


def test_a_word_that_is_rare_in_one_field_alone_stays(tmp_path: Path) -> None:
    """A document frequency is that of the field in which a word is most frequent."""
    documents = [
        Document(
            str(n), {"text": "causal" if n % 5 else "birch", "name": "x" if n % 50 else "casual"}
        )
        for n in range(200)
    ]
    schema = Schema("plain", fields={"contents": ("text",), "names": ("name",)})
    index = build_index(documents, tmp_path / "index", schema)
    assert correct_query(index, "causal inference") is None
    assert correct_query(index, "causel") == "causal"
    assert correct_query(index, "casuel") == "casual"


def test_how_frequent_a_similar_word_is(tmp_path: Path) -> None:
    """It is in two documents at least, and in fifty times as many as a word that occurs."""
    counts = {"canoe": 1, "birch": 2, "stone": 50, "stonr": 1, "paddle": 49, "paddel": 1}
    counts |= {"bark": 50, "house": 3, "mouse": 4}
    texts = [" ".join(word for word, n in counts.items() if i < n) for i in range(300)]
    documents = [Document(str(i), {"text": text}) for i, text in enumerate(texts)]
    index = build_index(documents, tmp_path / "index", Schema("plain"))
    corrected = {"birsh": "birch", "stonr": "stone", "youse": "mouse"}
    for query in (*corrected, "canoa", "paddel", "barn"):
        assert correct_query(index, query) == corrected.get(query)
