"""Do hits that no model has read show the passage with the query's terms?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import birchbark.pipeline.answers.snippets as snippets_module
from birchbark.deadline import Deadline
from birchbark.index.build_index import build_index
from birchbark.index.index import Index
from birchbark.pipeline.answers.answer import Answer, Evidence, Hit, Snippet
from birchbark.pipeline.answers.snippets import ALWAYS_SEARCHED, MARKED_SEGMENTS, STRETCH, Snippets
from birchbark.pipeline.search import search
from birchbark.pipeline.searcher import Searcher
from birchbark.pipeline.settings.ranker import Ranker
from birchbark.pipeline.settings.reading_plan import ReadingPlan
from birchbark.records import Document, Segment
from birchbark.retrieve.engine import IndexEngine
from birchbark.retrieve.term_overlap import TermIndex
from birchbark.segment.by_name import Segmenter
from birchbark.segment.passages import Passages
from birchbark.segment.sentences import sentences
from birchbark.segment.whole import whole
from conftest import WordScorer

FILLERS = ("stone", "water", "moss.", "A hill", "fern?\n\n", "lichen\n", "1. heath")


class _Store:
    """A store without term statistics."""

    def documents(self, doc_ids: Sequence[str]) -> list[Document]:
        return []


def find(document: Document, query: str, budget: float | None = None) -> Snippet | None:
    """Return the snippet of a document for a query."""
    snippets = Snippets(TermIndex(_Store()), query, Deadline(budget))
    (hit,) = snippets.complete([Hit(document, 1.0, 1.0, 0.0, ())])
    return hit.snippet


def marked(snippet: Snippet | None) -> list[str]:
    """Return the marked words of a snippet."""
    return [snippet.segment.text[a:b] for a, b in snippet.marks] if snippet else []


@given(
    fillers=st.lists(st.sampled_from(FILLERS), max_size=900),
    title=st.sampled_from(["", "A title"]),
    share=st.floats(0, 1),
)
def test_a_snippet_contains_a_term_of_the_query(
    fillers: list[str], title: str, share: float
) -> None:
    """It does, however long the text is and wherever the term; offsets are of the contents."""
    words = list(fillers)
    words.insert(int(share * len(fillers)), "canoes")
    document = Document("d", {"title": title, "text": " ".join(words)})
    snippet = find(document, "a canoe")
    assert snippet
    assert marked(snippet) == ["canoes"]
    segment = snippet.segment
    assert document.contents[segment.start : segment.end] == segment.text
    assert segment.start >= len(title)


@given(text=st.text(max_size=200), query=st.text(max_size=20))
def test_any_text_has_a_snippet_unless_it_is_empty(text: str, query: str) -> None:
    """Marks are ascending, disjoint and within the snippet."""
    snippet = find(Document("d", {"text": text}), query)
    if snippet is None:
        assert not text.strip()
        return
    offsets = [offset for mark in snippet.marks for offset in mark]
    assert offsets == sorted(offsets)
    assert all(0 <= offset <= len(snippet.segment.text) for offset in offsets)


def test_the_sentence_with_most_terms_is_shown() -> None:
    """It is complete, although only a stretch of the text is split."""
    far = "Moss grows on stone. " * (5 * STRETCH // 20)
    text = f"A canoe. {far}The birch canoe rides the river. {far}A river."
    snippet = find(Document("d", {"text": text}), "birch canoe river")
    assert snippet
    assert snippet.segment.text == "The birch canoe rides the river."
    assert marked(snippet) == ["birch", "canoe", "river"]


def test_a_text_without_terms_shows_its_first_sentence() -> None:
    """The title is no snippet; a document without text has none."""
    document = Document("d", {"title": "Birch", "text": "First. Second."})
    snippet = find(document, "birch")
    assert snippet
    assert (snippet.segment.text, snippet.marks) == ("First.", ())
    assert find(Document("d", {"title": "Birch"}), "birch") is None


def test_a_long_text_delays_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """When time is up, the best passage so far is shown, even after the search's deadline."""
    text = "Birch bark. " + "moss " * (ALWAYS_SEARCHED // 4) + "A birch canoe."
    document = Document("d", {"text": text})
    assert marked(find(document, "birch canoe")) == ["birch", "canoe"]
    monkeypatch.setattr(snippets_module, "SECONDS", 1e-9)
    snippet = find(document, "birch canoe", 1e-9)
    assert snippet
    assert snippet.segment.text == "Birch bark."


def test_existing_snippets_stay_and_evidence_is_marked() -> None:
    """Only the first segments of a hit are marked."""
    segment = Segment("d", 0, 5, "Birch")
    snippets = Snippets(TermIndex(_Store()), "birch", Deadline(None))
    document = Document("d", {"text": "Birch"})
    evidence = (Evidence(segment, 1.0, 1.0),) * (MARKED_SEGMENTS + 1)
    chosen = Snippet(Segment("d", 0, 3, "Bir"))
    read, unread = snippets.complete(
        [
            Hit(document, 1.0, 0.0, 1.0, evidence),
            Hit(document, 1.0, 1.0, 0.0, (), snippet=chosen),
        ]
    )
    assert [e.marks for e in read.segments] == [((0, 5),)] * MARKED_SEGMENTS + [()]
    assert read.snippet is None
    assert unread.snippet is chosen


@pytest.fixture
def long_index(tmp_path: Path) -> Path:
    """An index of documents whose first lines do not tell why they match."""
    documents = [
        Document(f"d{n}", {"text": f"Notes of day {n}. " * 300 + f"A birch canoe {n}. End."})
        for n in range(12)
    ]
    build_index(documents, tmp_path / "index")
    return tmp_path / "index"


def test_every_hit_without_evidence_has_a_snippet(long_index: Path) -> None:
    """It has one at first, without a model, after the deadline, and below the reading plan."""
    answers: list[Answer] = []
    engine = IndexEngine(Index(long_index))
    ranker = Ranker(WordScorer(), plan=ReadingPlan(1, 3), depth=6)
    finals = [
        search(engine, "birch canoe", ()),
        Searcher(long_index, ()).search("birch canoe"),
        search(engine, "birch canoe", ranker, budget=1e-9),
        search(engine, "birch canoe", ranker, on_progress=lambda get: answers.append(get())),
    ]
    for answer in [*answers, *finals]:
        assert len(answer.hits) == 10
        for hit in answer.hits:
            assert bool(hit.segments) != bool(hit.snippet)
            shown = hit.snippet.marks if hit.snippet else hit.segments[0].marks
            assert len(shown) == 2
    assert sum(bool(hit.segments) for hit in finals[-1].hits) == 3
    assert not any(hit.segments for hit in answers[0].hits)


def test_snippets_change_no_ranking(long_index: Path) -> None:
    """They are only added to the hits."""
    engine = IndexEngine(Index(long_index))
    answer = search(engine, "birch canoe", ())
    first = engine.rank("birch canoe", 10)
    assert [hit.document.doc_id for hit in answer.hits] == list(first.doc_ids)
    plain = [replace(hit, snippet=None) for hit in answer.hits]
    assert [hit.score for hit in plain] == first.scores.tolist()


def sentence_of(title: str, text: str, query: str, segmenter: Segmenter) -> list[str | None]:
    """Return the sentence that is marked in each segment of a document, if one is."""
    document = Document("d", {"title": title, "text": text})
    evidence = tuple(Evidence(segment, 0.5, 0.1) for segment in segmenter(document))
    snippets = Snippets(TermIndex(_Store()), query, Deadline(None))
    marked = snippets.mark(Hit(document, 1.0, 0.0, 1.0, evidence))
    return [e.segment.text[slice(*e.sentence)] if e.sentence else None for e in marked.segments]


def test_the_sentence_with_most_terms_is_marked() -> None:
    """Passages with several sentences have one marked, the first of equal ones, not the title."""
    text = "They dance. Bees fly far. They sting."
    assert sentence_of("", text, "bees fly", Passages()) == ["Bees fly far."]
    assert sentence_of("Bees fly", text, "bees fly", Passages()) == ["Bees fly far."]
    assert sentence_of("Bees", text, "sting", Passages(6)) == ["They dance.", "They sting."]
    assert sentence_of("", text, "nothing of it", whole) == ["They dance."]
    assert sentence_of("", text, "bees", sentences) == [None] * 3
    assert sentence_of("Bees", "They dance.", "dance", Passages()) == ["They dance."]
    assert sentence_of("Bees", "", "bees", Passages()) == [None]


def shown(text: str, query: str) -> str:
    """Return what is shown of the passage of an untitled document."""
    document = Document("d", {"title": "", "text": text})
    (segment,) = whole(document)
    hit = Hit(document, 1.0, 0.0, 1.0, (Evidence(segment, 1.0, 1.0),))
    (evidence,) = Snippets(TermIndex(_Store()), query, Deadline(None)).mark(hit).segments
    return evidence.text


@pytest.mark.parametrize(
    ("text", "query", "expected"),
    [
        (
            "We open at nine. How do I return a parcel? Keep the receipt. Bring it to us.",
            "return a parcel",
            "How do I return a parcel? Keep the receipt.",
        ),
        (
            "Hours are below.\n\n## Returning parcels\n\nKeep the receipt. Bring it to us.",
            "returning parcels",
            "Returning parcels\n\nKeep the receipt.",
        ),
        ("One.\n\n- A parcel can be returned.\n\nTwo.", "parcel", "A parcel can be returned."),
        ("One.\n\n| parcel | returned. |\n\nTwo.", "parcel", "parcel | returned."),
        ("One.\n\n#include the parcel.\n\nTwo.", "parcel", "#include the parcel."),
        ("One.\n\nIt is -5 for a parcel.\n\nTwo.", "parcel", "It is -5 for a parcel."),
    ],
)
def test_what_is_shown_answers(text: str, query: str, expected: str) -> None:
    """A question or a heading comes with the next sentence, and marks of Markdown are left out."""
    assert shown(text, query) == expected


def test_words_that_ask_are_not_marked() -> None:
    """They do not choose a sentence either, unless the query has no others."""
    text = "Which of them do you need? None, which is good. A parcel was lost."
    assert shown(text, "which parcel do I need") == "A parcel was lost."
    overlap = TermIndex(_Store()).overlap("which parcel do I need")
    assert [text[a:b] for a, b in overlap.marks(text)] == ["parcel"]
    assert TermIndex(_Store()).overlap("which").marks("Which one?")


def test_markup_takes_time_in_proportion_to_its_length() -> None:
    """Marks without an end are no trap."""
    assert shown("One.\n\n" + "#|" * 50_000 + "parcel.\n\nTwo.", "parcel").endswith("parcel.")
