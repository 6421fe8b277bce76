"""Are texts scored by exactly the query's terms that they contain, and these terms marked?"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from birchbark.index.index import Index
from birchbark.records import Document
from birchbark.retrieve import term_overlap as module
from birchbark.retrieve.engine import IndexEngine
from birchbark.retrieve.term_overlap import TermIndex
from birchbark.text.analyzer import Analyzer, analyzer
from birchbark.text.words import words
from conftest import VOCABULARY

KNOWN = (
    "Birch birches bark barked river rivers Canoe tree's the of U.S. 3.14 key keys days naïve "
    "Flüsse Straße ΟΔΟΣ 東京 ひと カヌー ไทย 🛶 __ _tree_ İstanbul don't ﬁre"
).split()
WORD = st.sampled_from(KNOWN) | st.text(max_size=4)
TEXT = st.lists(st.tuples(WORD, st.sampled_from(["", " ", ", ", "\n", "-", "_"])), max_size=12).map(
    lambda parts: "".join(word + mark for word, mark in parts)
)


@dataclass(frozen=True)
class Weighted:
    """A store with an analyzer, in which the idf of a term is one more than its length."""

    analyzer: Analyzer

    def documents(self, doc_ids: Sequence[str]) -> list[Document]:
        raise AssertionError("not needed")

    def idf(self, terms: Collection[str]) -> dict[str, float]:
        return {term: 1.1 + len(term) for term in terms}


STORES = [Weighted(analyzer(name)) for name in ("english", "plain", "porter")]
STORES += [Weighted(analyzer(n, VOCABULARY)) for n in ("wordpiece", "porter+wordpiece")]
STORE = st.sampled_from(STORES)


def naive_scores(store: Weighted, query: str, texts: Sequence[str]) -> list[float]:
    """Analyze every text from scratch."""
    wanted = set(store.analyzer.terms(query))
    found = [wanted & set(store.analyzer.terms(text)) for text in texts]
    return [sum(sorted(store.idf(terms).values())) for terms in found]


def asks(query: str) -> bool:
    """Whether there are words that may not count; they have tests of their own."""
    return any(word.lower() in module.ASKING for word in words(query))


@given(store=STORE, query=TEXT, texts=st.lists(TEXT, max_size=6), earlier=st.lists(TEXT))
def test_scores_are_sums_of_idf(
    store: Weighted, query: str, texts: list[str], earlier: list[str]
) -> None:
    """This holds for any analyzer and text, whatever other texts and queries came before."""
    assume(not asks(query))
    index = TermIndex(store)
    for text in earlier:
        index.overlap(text).scores(earlier)
    assert index.overlap(query).scores(texts).tolist() == naive_scores(store, query, texts)


@given(store=STORE, queries=st.lists(TEXT, max_size=4), texts=st.lists(TEXT, max_size=6))
def test_known_tokens_may_be_dropped(store: Weighted, queries: list[str], texts: list[str]) -> None:
    """Scores stay the same if the index starts anew, because it has seen too many tokens."""
    assume(not any(map(asks, queries)))
    index = TermIndex(store)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "MAX_KNOWN_TOKENS", 3)
        for query in queries:
            assert index.overlap(query).scores(texts).tolist() == naive_scores(store, query, texts)


@given(store=STORE, query=TEXT, text=TEXT)
def test_marks_cover_exactly_the_words_with_terms_of_the_query(
    store: Weighted, query: str, text: str
) -> None:
    """Marks are in order, do not overlap, and are whole words as they stand in the text."""
    marks = TermIndex(store).overlap(query).marks(text)
    wanted = set(store.analyzer.terms(query))
    marked = [word for word in words(text) if wanted & set(store.analyzer.terms(word))]
    assert words(" ".join(text[begin:end] for begin, end in marks)) == marked
    ends = [0, *(end for _, end in marks)]
    assert all(begin >= end for (begin, _), end in zip(marks, ends, strict=False))


def test_marks_of_words_that_the_analyzer_changes() -> None:
    """A word is marked where it stands, not where its lower-case form first occurs."""
    text = "BIRCH bark, and birch bark"
    for store in STORES:
        marks = TermIndex(store).overlap("birch").marks(text)
        assert marks == ((0, 5), (16, 21))


def test_marks_of_pairs_of_characters() -> None:
    """A term of two characters marks both, or the words that they are in."""
    overlap = TermIndex(Weighted(analyzer("cjk"))).overlap
    text = "大きいです、とても大きい"
    marks = overlap("きい").marks(text)
    assert [text[a:b] for a, b in marks] == ["き", "い"] * 2
    assert marks[0] == (1, 2)
    text = "東京タワーは高い"
    marks = overlap("タワー").marks(text)
    assert [text[a:b] for a, b in marks] == ["タワー"]


def test_threads_share_an_index() -> None:
    """Many threads get the scores that one thread gets, while tokens are added and dropped."""
    store = STORES[0]
    texts = [[f"birch{i} river{j} bark trees" for j in range(i % 7)] for i in range(200)]
    queries = [f"birch{i} river{i % 5} tree" for i in range(200)]
    index = TermIndex(store)
    with pytest.MonkeyPatch.context() as patch, ThreadPoolExecutor(8) as threads:
        patch.setattr(module, "MAX_KNOWN_TOKENS", 50)
        found = list(threads.map(lambda q, t: index.overlap(q).scores(t).tolist(), queries, texts))
    assert found == [naive_scores(store, *pair) for pair in zip(queries, texts, strict=True)]


def test_terms_are_weighted_by_the_index(index: Index) -> None:
    """idf is that of the first stage; a store without it has equal weights."""
    engine = IndexEngine(index)
    texts = ["a canoe", "the river", "canoe on a river", ""]
    idf = engine.idf(["cano", "river"])
    assert TermIndex(engine).overlap("canoe river").scores(texts).tolist() == pytest.approx(
        [idf["cano"], idf["river"], idf["cano"] + idf["river"], 0]
    )
    assert idf["cano"] > idf["river"]

    class Plain:
        def documents(self, doc_ids: Sequence[str]) -> list[Document]:
            return index.documents(doc_ids)

    assert TermIndex(Plain()).overlap("canoe river").scores(texts).tolist() == [1, 1, 2, 0]


def test_rough_scores_miss_no_english_word() -> None:
    """Every English word of BERT's vocabulary is found by its term."""
    vocabulary = next(Path(module.__file__).parents[2].rglob("vocab.txt")).read_text().split()
    index = TermIndex(STORES[0])
    for word in vocabulary:
        if word.isascii() and word.isalpha() and index.analyzer.terms(word):
            (score,) = index.overlap(word).rough_scores([f"… {word.upper()} …"])
            assert score > 0, word


@given(store=st.sampled_from(STORES[:3]), query=TEXT, texts=st.lists(TEXT, max_size=4))
def test_rough_scores_are_bounded_by_the_weights(
    store: Weighted, query: str, texts: list[str]
) -> None:
    """They lie between 0 and the sum of the query's weights; without terms they are 0."""
    most = sum(store.idf(set(store.analyzer.terms(query))).values())
    for score in TermIndex(store).overlap(query).rough_scores(texts):
        assert 0 <= score <= most + 1e-9
