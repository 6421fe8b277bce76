"""Are the segments that fit a query best chosen to be read, once each and in bounded number?"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from birchbark.combine.interpolate import Interpolation
from birchbark.deadline import Deadline
from birchbark.pipeline.reading import choose, stretches
from birchbark.pipeline.reading.candidates import Candidates
from birchbark.pipeline.reading.choose import SegmentChoice, SelectedSegments
from birchbark.pipeline.reading.document_reader import DocumentReader, RankerReaders
from birchbark.pipeline.reading.query_scoring import QueryScoring
from birchbark.pipeline.reading.topk import TopKScoring
from birchbark.pipeline.settings.ranker import Ranker
from birchbark.pipeline.settings.reading_plan import ReadingPlan
from birchbark.records import Document, Ranking, Segment
from birchbark.retrieve.term_overlap import TermIndex
from birchbark.segment.paragraphs import paragraphs
from birchbark.segment.sentences import sentences
from birchbark.segment.truncate import Limit
from conftest import WordScorer

QUERY = "birch canoe river"
FOREVER = Deadline(None)
WORDS = "birch canoe river bees dance iron stone".split()
PARAGRAPH = st.lists(st.sampled_from(WORDS), min_size=1, max_size=14).map(" ".join)
DOCUMENT = st.lists(PARAGRAPH, max_size=6).map("\n\n".join)
SCORES = st.sampled_from([0.0, 0.25, 0.5, 1.0])


class Texts:
    """A document store of these texts, d0, d1, …"""

    def __init__(self, *texts: str) -> None:
        self.texts = {f"d{i}": text for i, text in enumerate(texts)}

    def documents(self, doc_ids: Sequence[str]) -> list[Document]:
        return [Document(doc_id, {"text": self.texts[doc_id]}) for doc_id in doc_ids]


class Choice:
    """A choice among the paragraphs of `texts`, with the table that it is recorded in."""

    def __init__(
        self,
        texts: Sequence[str],
        token_budget: int = 100,
        embedding_budget: int = 100,
        query: str = QUERY,
    ) -> None:
        store = Texts(*texts)
        main, embedding = (
            QueryScoring(DocumentReader(store, WordScorer(n), paragraphs, Limit()), query)
            for n in (token_budget, embedding_budget)
        )
        self.table = table_of(store)
        self.choice = SegmentChoice(query, TermIndex(store), main, embedding)

    def read(self, count: int | None, positions: Sequence[int] = (0,)) -> list[SelectedSegments]:
        ready = self.choice.to_read(self.table, positions, count, FOREVER)
        return [one for _, one in ready]

    def embed(self, segments: int, later: int) -> SelectedSegments:
        (selected,) = self.choice.to_embed(self.table, [0], segments, later, FOREVER)
        return selected


def table_of(store: Texts) -> Candidates:
    """Return the table of all documents of a store, in their order."""
    descending = -np.arange(len(store.texts))
    ranker = Ranker(WordScorer(), interpolation=Interpolation(0.5, "minmax"))
    return Candidates(ranker, Ranking.of(list(store.texts), descending))


def best(selected: SelectedSegments) -> list[str]:
    """Return the texts of the chosen segments, best first."""
    return [selected.segments[i].text for i in selected.order]


def by_terms(text: str) -> list[Segment]:
    """Return the paragraphs with the most different words of the query first, then the shortest."""
    segments = paragraphs(Document("d0", {"text": text}))
    wanted = set(QUERY.split())
    overlaps = [len(wanted & set(segment.text.split())) for segment in segments]
    order = sorted(range(len(segments)), key=lambda i: (-overlaps[i], len(segments[i].text), i))
    return [segments[i] for i in order]


@given(text=DOCUMENT, count=st.none() | st.integers(1, 7))
def test_segments_are_chosen_by_terms(text: str, count: int | None) -> None:
    """Those with most terms come first; of equals the shorter, then the earlier."""
    chosen = Choice([text])
    (selected,) = chosen.read(count)
    assert best(selected) == [segment.text for segment in by_terms(text)[:count]]
    assert chosen.table.totals == (len(by_terms(text)), 0)


@given(text=DOCUMENT, count=st.none() | st.integers(1, 7), data=st.data())
def test_segments_are_chosen_by_the_embedding(
    text: str, count: int | None, data: st.DataObject
) -> None:
    """Where it has scores of all segments the highest come first; of equals the earlier."""
    segments, chosen = paragraphs(Document("d0", {"text": text})), Choice([text])
    scores = np.array([data.draw(SCORES) for _ in segments], np.float32)
    chosen.table.embedded[0] = scores
    (selected,) = chosen.read(count)
    order = sorted(range(len(segments)), key=lambda i: (-scores[i], i))
    assert best(selected) == [segments[i].text for i in order[:count]]
    starts = [segment.start for segment in selected.segments]
    assert starts == sorted(starts)
    assert [len(ids) for ids in selected.token_ids] == [
        len(segment.text.split()) for segment in selected.segments
    ]
    (snippet,) = chosen.choice.snippets(chosen.table, [0])
    assert (snippet.segment if snippet else None) == (segments[order[0]] if segments else None)


@pytest.mark.parametrize(
    ("query", "count", "expected"),
    [
        ("what is iron", 2, ["bees dance", "iron stone"]),  # the last one is replaced
        ("iron", 3, ["bees dance", "stone canoe", "iron stone"]),
        ("stone", 2, ["bees dance", "stone canoe"]),  # which has the word
        ("iron bark", 2, ["bees dance", "stone canoe"]),
        ("bark", 2, ["bees dance", "stone canoe"]),  # nowhere
        ("iron", 4, ["bees dance", "stone canoe", "birch", "iron stone"]),
        ("iron", None, ["bees dance", "stone canoe", "birch", "iron stone"]),
    ],
)
def test_the_only_word_of_a_query_is_read(
    query: str, count: int | None, expected: list[str]
) -> None:
    """Vectors may prefer segments without it."""
    choice = Choice(["birch\n\nstone canoe\n\niron stone\n\nbees dance"], query=query)
    choice.table.add_embedding_of_all(0, np.array([0.2, 0.5, 0.1, 0.9], np.float32))
    (selected,) = choice.read(count)
    assert best(selected) == expected


@pytest.mark.parametrize(("longest", "last"), [(42, "iron stone"), (41, "stone canoe")])
def test_a_word_is_not_looked_for_in_long_documents_under_a_deadline(
    monkeypatch: pytest.MonkeyPatch, longest: int, last: str
) -> None:
    """Of a document of 42 characters here, the time would not suffice to analyze all words."""
    monkeypatch.setattr(choose, "WHOLE_DOCUMENT", longest)
    choice = Choice(["birch\n\nstone canoe\n\niron stone\n\nbees dance"], query="iron")
    choice.table.add_embedding_of_all(0, np.array([0.2, 0.5, 0.1, 0.9], np.float32))
    ((_, selected),) = choice.choice.to_read(choice.table, [0], 2, Deadline(60))
    assert best(selected) == ["bees dance", last]


@given(text=DOCUMENT, embedded=st.integers(1, 4), count=st.integers(1, 5), data=st.data())
def test_embedded_segments_come_before_others(
    text: str, embedded: int, count: int, data: st.DataObject
) -> None:
    """They are in the order of their scores.

    The others follow in the order of terms, each only once.
    """
    chosen = Choice([text])
    selected = chosen.embed(embedded, count)
    expected = [segment.text for segment in by_terms(text)]
    assert best(selected) == expected[:embedded]
    scores = np.array([data.draw(SCORES) for _ in selected.segments], np.float32)
    chosen.table.rank_chosen(0, selected.chosen, scores)
    by_text = [scores[i] for i in selected.order]
    order = sorted(range(len(by_text)), key=lambda i: (-by_text[i], i))
    (read,) = chosen.read(count)
    assert best(read) == [*(expected[i] for i in order), *expected[embedded:]][:count]
    assert chosen.table.totals == (len(expected), 0)


@given(text=DOCUMENT, budget=st.integers(2, 5), count=st.none() | st.integers(1, 9))
def test_long_segments_are_read_in_part(text: str, budget: int, count: int | None) -> None:
    """At most `count` chunks are read, first one of each chosen segment; all if there are fewer."""
    chosen = Choice([text], token_budget=budget)
    (selected,) = chosen.read(count)
    assert all(len(ids) <= budget for ids in selected.token_ids)
    sizes = [-(-len(segment.text.split()) // budget) for segment in by_terms(text)[:count]]
    total = sum(sizes)
    assert len(selected.segments) == (total if count is None else min(count, total))
    ranks = [selected.chosen[i] for i in selected.order]
    of_each = {rank: [i for i, r in enumerate(ranks) if r == rank] for rank in set(ranks)}
    firsts = [where[0] for _, where in sorted(of_each.items())]
    assert firsts == list(range(len(sizes)))
    spans = [(segment.start, segment.end) for segment in selected.segments]
    assert all(one[1] <= other[0] for one, other in pairwise(spans))


@given(
    text=DOCUMENT,
    budgets=st.tuples(st.integers(2, 5), st.integers(2, 5)),
    embedded=st.integers(1, 3),
    count=st.integers(1, 9),
    data=st.data(),
)
def test_no_text_is_read_twice(
    text: str, budgets: tuple[int, int], embedded: int, count: int, data: st.DataObject
) -> None:
    """This holds although the two scorers split long segments at different places."""
    chosen = Choice([text], *budgets)
    selected = chosen.embed(embedded, count)
    assert len(selected.segments) <= embedded
    scores = np.array([data.draw(SCORES) for _ in selected.segments], np.float32)
    chosen.table.rank_chosen(0, selected.chosen, scores)
    (read,) = chosen.read(count)
    assert len(read.segments) <= count
    spans = [(segment.start, segment.end) for segment in read.segments]
    assert all(one[1] <= other[0] for one, other in pairwise(spans))


def test_of_a_long_segment_the_chunks_with_most_terms_are_read() -> None:
    """The others are left out, or read later."""
    text = "bees dance iron stone birch canoe river bees dance birch"
    (selected,) = Choice([text], token_budget=2).read(2)
    assert [text.strip() for text in best(selected)] == ["birch canoe", "river bees"]


@given(texts=st.lists(DOCUMENT, min_size=1, max_size=4), count=st.integers(1, 3))
def test_documents_do_not_affect_each_other(texts: list[str], count: int) -> None:
    """Choosing from several documents at once equals choosing from each alone."""
    together = Choice(texts).read(count, range(len(texts)))
    assert [best(one) for one in together] == [
        best(Choice([text]).read(count)[0]) for text in texts
    ]


class Splitting:
    """A segmenter that takes a second of a simulated clock for each document."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self, document: Document) -> list[Segment]:
        self.now += 1
        return paragraphs(document)


@given(texts=st.lists(DOCUMENT, min_size=1, max_size=6), seconds=st.integers(0, 7))
def test_as_many_documents_as_time_allows(texts: list[str], seconds: int) -> None:
    """Splitting takes half of the time, so that what was split can be read."""
    store, segmenter = Texts(*texts), Splitting()
    main = QueryScoring(DocumentReader(store, WordScorer(99), segmenter, Limit()), QUERY)
    table, chosen = table_of(store), SegmentChoice(QUERY, TermIndex(store), main, None)
    deadline = Deadline((seconds + 0.5) / 0.95, lambda: segmenter.now)
    ready = list(chosen.to_read(table, range(len(texts)), 2, deadline))
    split = min(len(texts), int((seconds + 0.5) / 2) + 1)
    assert segmenter.now == split
    assert [position for position, _ in ready] == list(range(split if split <= seconds else 0))
    segments = [paragraphs(Document("", {"text": text})) for text in texts[:split]]
    assert table.totals == (sum(map(len, segments)), 0)


def test_a_long_blank_document_is_no_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has no segments; the documents after it are read all the same."""
    monkeypatch.setattr(stretches, "LONG_DOCUMENT", 50)
    shelf = Texts(" \n" * 99, "birch canoe", " ")
    for plan in (ReadingPlan(segments=2), ReadingPlan(segments=2, pairs=2)):
        for embedding in (None, WordScorer()):
            ranker = Ranker(WordScorer(), sentences, embedding=embedding, plan=plan)
            first = Ranking.of(["d0", "d1", "d2"], [3.0, 2.0, 1.0])
            scoring = TopKScoring(RankerReaders(shelf, ranker), QUERY, first, 3)
            scoring.run()
            assert scoring.stats.exact
            assert [h.document.doc_id for h in scoring.hits() if h.segments] == ["d1"]


def test_of_several_scores_of_a_segment_the_highest_counts() -> None:
    """Segments without a score follow, in the order in which they were chosen."""
    chosen = [Segment("d0", n, n + 1, "x") for n in range(5)]
    table = table_of(Texts("birch"))
    table.chosen[0] = chosen
    table.rank_chosen(0, [2, 0, 1, 2], np.array([0.75, 0.25, 0.5, 0.125], np.float32))
    assert [segment.start for segment in table.chosen[0]] == [2, 1, 0, 3, 4]
