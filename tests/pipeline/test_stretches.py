"""Is a long document split in part, with the right offsets, and told what was not split?"""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator, Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from birchbark.deadline import Deadline
from birchbark.pipeline.reading import stretches as module
from birchbark.pipeline.reading.stretches import SplitStretches, split_for_query
from birchbark.recently_used import RecentlyUsed
from birchbark.records import SECTION_STARTS, Document, Segment
from birchbark.retrieve.term_overlap import TermIndex, TermOverlap
from birchbark.segment.by_name import Segmenter, parse_segmenter
from birchbark.segment.section_starts import section_starts
from birchbark.segment.sentences import sentences
from birchbark.segment.whole import whole

NAMES = ["sentences", "paragraphs", "sections", "whole", "text", "windows:6/0", "windows:3/0"]
WORDS = ["birch", "river", "The", "canoe.", "bees!", "# Head", "Fluß", "x" * 30, "…", "."]
SPACES = [" ", " ", "\n", "\n\n", "", " \n \n", "\r\n"]
TEXT = st.lists(st.tuples(st.sampled_from(WORDS), st.sampled_from(SPACES)), max_size=150).map(
    lambda parts: "".join(word + space for word, space in parts)
)
TITLE = st.lists(st.sampled_from(WORDS[:7]), max_size=12).map(" ".join)


class Empty:
    """A store without documents."""

    def documents(self, doc_ids: Sequence[str]) -> list[Document]:
        return []


def overlap(query: str = "birch canoe") -> TermOverlap:
    return TermIndex(Empty()).overlap(query)


@pytest.fixture(autouse=True)
def small() -> Iterator[None]:
    """Documents over 200 characters are long; 3 stretches of 60 characters are split."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "LONG_DOCUMENT", 200)
        patch.setattr(module, "STRETCH", 60)
        patch.setattr(module, "STRETCHES", 3)
        yield


class Counting:
    """A segmenter that records the documents that it splits, and takes a second for each."""

    def __init__(self, segmenter: Segmenter = sentences) -> None:
        self.segmenter, self.texts = segmenter, list[str]()

    def __call__(self, document: Document) -> list[Segment]:
        self.texts.append(document.text)
        return self.segmenter(document)

    def now(self) -> float:
        return float(len(self.texts))


def visible(text: str) -> int:
    return sum(not character.isspace() for character in text)


@given(title=TITLE, text=TEXT, name=st.sampled_from(NAMES))
def test_segments_have_the_right_offsets(title: str, text: str, name: str) -> None:
    """A segment is the text from start to end, after the title or the end of it; none overlap."""
    document = Document("d", {"title": title, "text": text})
    contents, segmenter = document.contents, parse_segmenter(name)
    split = split_for_query(document, segmenter, overlap(), Deadline(None))
    if len(contents) <= 200:
        assert (split.segments, split.unsplit) == (tuple(segmenter(document)), 0)
    assert split.in_time
    for segment in split.segments:
        own = segment.end - segment.start
        assert contents[segment.start : segment.end] == segment.text[len(segment.text) - own :]
        prefix = segment.text[: len(segment.text) - own]
        assert prefix == "" or f"{title}\n".endswith(prefix) or f"{title}\n" == prefix
        assert segment.doc_id == "d"
        assert segment.text.strip()
    assert all(one.end <= other.start for one, other in pairwise(split.segments))


@given(title=TITLE, text=TEXT, name=st.sampled_from(NAMES[:3] + NAMES[5:]))
def test_every_character_is_split_or_counted(title: str, text: str, name: str) -> None:
    """What no segment covers, apart from white space, is in `unsplit`; nothing is counted twice."""
    document = Document("d", {"title": title, "text": text})
    counting = Counting(parse_segmenter(name))
    split = split_for_query(document, counting, overlap(), Deadline(None))
    contents = document.contents
    covered = [contents[segment.start : segment.end] for segment in split.segments]
    ends = [(segment.start, segment.end) for segment in split.segments]
    prefixed = 0 if ends and ends[0][0] == 0 else visible(title)  # the title need be no segment
    left = visible(contents) - sum(map(visible, covered))
    assert left - prefixed <= split.unsplit <= len(contents) - sum(map(len, covered))
    if len(contents) > 200:
        assert len(counting.texts) <= 3
        read = len(contents) - split.unsplit
        assert (
            sum(map(len, counting.texts)) <= read <= sum(map(len, counting.texts)) + len(title) + 1
        )


@pytest.mark.parametrize("title", ["", "Bees"])
def test_stretches_have_the_sections_of_the_document(title: str) -> None:
    """Each line is a section here, and the sentences are lines, not lines joined."""
    line = "bees dance over the birch\n"
    starts = " ".join(str(len(line) * number) for number in range(20))
    document = Document("d", {"title": title, "text": line * 20, SECTION_STARTS: starts})
    split = split_for_query(document, sentences, overlap(), Deadline(None))
    assert {segment.text for segment in split.segments if segment.start >= len(title)} == {
        line.strip()
    }
    assert {s.start for s in split.segments} <= {0, *section_starts(document)}


@given(title=TITLE, text=TEXT, name=st.sampled_from(["sentences", "windows:1/0"]))
def test_stretches_together_are_the_document(title: str, text: str, name: str) -> None:
    """With enough stretches, nothing is lost, whatever the length of the title."""
    document = Document("d", {"title": title, "text": text})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "STRETCHES", 1000)
        split = split_for_query(document, parse_segmenter(name), overlap(), Deadline(None))
    assert split.unsplit == 0
    covered = "".join(document.contents[s.start : s.end] for s in split.segments)
    title_of_windows = visible(title) if name != "sentences" else 0
    assert visible(document.contents) - title_of_windows <= visible(covered)


def test_the_stretches_with_most_terms_are_split() -> None:
    """They are returned in document order; of equal ones the earlier are split."""
    dull = "Bees dance over the meadow in a very long summer.\n\n"
    birch, both, canoe = (
        dull.replace("over the", what) for what in ("birch", "birch canoe", "canoe")
    )
    text = dull * 2 + birch + dull * 3 + both + dull + canoe + dull * 2 + birch
    split = split_for_query(Document("d", {"text": text}), sentences, overlap(), Deadline(None))
    assert [segment.text + "\n\n" for segment in split.segments] == [birch, both, canoe]
    split = split_for_query(Document("d", {"text": dull * 9}), sentences, overlap(), Deadline(None))
    assert [segment.start for segment in split.segments] == [0, len(dull), 2 * len(dull)]


def test_the_title_counts_for_the_first_stretch() -> None:
    """A query for the title finds it although the text does not repeat it."""
    dull = "Bees dance over the meadow of the old canoe. "
    document = Document("d", {"title": "Birch canoe", "text": "Bees. " * 20 + dull * 20})
    split = split_for_query(document, sentences, overlap(), Deadline(None))
    assert split.segments[0].text == "Birch canoe"


@pytest.mark.parametrize("segmenter", [whole, parse_segmenter("windows:9/0")])
def test_segments_that_span_title_and_text(segmenter: Segmenter) -> None:
    """In later stretches they keep the title before the text that they are of."""
    title = "A birch canoe and all its long history"
    document = Document("d", {"title": title, "text": "bees " * 60 + "birch canoe " * 9})
    split = split_for_query(document, segmenter, overlap(), Deadline(None))
    last = split.segments[-1]
    assert document.contents[last.start : last.end].rstrip().endswith("canoe")
    assert len([s for s in split.segments if s.start > 300]) > 0


def test_a_long_title_is_split_like_text() -> None:
    """A document that is all title is read, too, and its characters are counted once."""
    for fields in ({"title": "birch canoe. " * 40}, {"title": "bees. " * 40, "text": "x birch"}):
        document = Document("d", fields)
        split = split_for_query(document, sentences, overlap(), Deadline(None))
        assert split.segments
        assert "birch" in " ".join(segment.text for segment in split.segments)
        assert 0 < split.unsplit < len(document.contents)


def test_a_blank_document_has_no_segments() -> None:
    """It is split in time, although there is nothing in it."""
    for text in ("", " " * 50, "\n " * 500):
        split = split_for_query(Document("d", {"text": text}), sentences, overlap(), Deadline(None))
        assert split.in_time
        assert split.segments == ()
        assert (split.unsplit > 0) == (len(text) > 200)


@given(text=TEXT, seconds=st.integers(0, 4))
def test_nothing_is_split_after_the_deadline(text: str, seconds: int) -> None:
    """As many stretches are split as time allows; what was left is counted and told."""
    document, counting = Document("d", {"text": text}), Counting()
    deadline = Deadline(seconds / 0.95, counting.now)
    split = split_for_query(document, counting, overlap(), deadline)
    wanted = 1 if len(text) <= 200 else 3
    assert len(counting.texts) == min(seconds, wanted)
    assert split.in_time == (seconds >= wanted)
    assert split.unsplit >= len(text) - sum(map(len, counting.texts))
    if not seconds:
        assert (split.segments, split.unsplit) == ((), len(text))


@given(title=TITLE, text=TEXT, queries=st.lists(st.sampled_from(WORDS), max_size=4))
def test_known_stretches_are_not_split_again(title: str, text: str, queries: list[str]) -> None:
    """They give the same segments, for any number of queries."""
    document, counting = Document("d", {"title": title, "text": text}), Counting()
    known: SplitStretches = RecentlyUsed(10_000)
    for query in queries:
        found = split_for_query(document, counting, overlap(query), Deadline(None), known)
        assert found == split_for_query(document, sentences, overlap(query), Deadline(None))
        calls = len(counting.texts)
        again = split_for_query(document, counting, overlap(query), Deadline(None), known)
        assert again == found
        assert len(counting.texts) == calls + (len(document.contents) <= 200)


def test_a_huge_document_takes_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 20 MB, 100,000 characters become segments, and no copy of the text is made."""
    monkeypatch.undo()
    monkeypatch.setattr(module, "STRETCH", 10_000)
    monkeypatch.setattr(module, "STRETCHES", 10)
    line = "Bees dance over the meadow. The birch canoe rides a river; so it goes.\n"
    document = Document("d", {"text": line * (20_000_000 // len(line))})
    counting = Counting()
    query = overlap()
    tracemalloc.start()
    split = split_for_query(document, counting, query, Deadline(None))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(counting.texts) == 10
    assert sum(len(segment.text) for segment in split.segments) <= 100_000
    assert split.unsplit >= 19_800_000
    assert peak < 10_000_000
