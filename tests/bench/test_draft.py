"""Do drafted questions come from the documents, and could somebody ask them?"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from birchbark.bench.draft import ASKED_WORDS, PREFIX, draft_questions
from birchbark.index.build_index import build_index
from birchbark.index.index import Index
from birchbark.records import SECTION_STARTS, Document

SUBJECTS = (
    "parcels gardens bridges orchards kettles lanterns rivers hammers violins beehives".split()
)


def text(subject: str) -> str:
    return (
        f"# About {subject}\n\nAll of this concerns every owner.\n\n"
        f"## How owners repair broken {subject}\n\n"
        f"The owner should wash and dry {subject} before winter brings frost to the village. "
        f"Another owner would rather paint {subject} with oil before the summer comes.\n"
    )


@pytest.fixture
def index(tmp_path: Path) -> Index:
    documents = [Document(f"{s}{n}.md", {"text": text(s)}) for s in SUBJECTS for n in (1, 2)]
    return build_index(documents, tmp_path / "index")


def test_each_question_has_the_words_of_another_document(index: Index) -> None:
    drafted = draft_questions(index, 8)
    assert [d.query.query_id for d in drafted] == [f"{PREFIX}{n}" for n in range(1, 9)]
    assert len({d.doc_id for d in drafted}) == len({d.query.text for d in drafted}) == 8
    for question in drafted:
        contents = index.documents([question.doc_id])[0].contents
        assert set(question.query.text.split()) <= set(contents.replace(".", "").split())


def test_half_of_the_questions_are_headings(index: Index) -> None:
    texts = [d.query.text for d in draft_questions(index, 8)]
    headings = [t for t in texts if t.startswith("How owners repair broken")]
    assert len(headings) == 4
    assert all(set(t.split()) & set(SUBJECTS) for t in texts)
    assert all(len(t.split()) == ASKED_WORDS for t in texts if t not in headings)


def test_the_words_of_a_sentence_are_in_its_order(index: Index) -> None:
    for question in draft_questions(index, 10):
        contents = index.documents([question.doc_id])[0].contents
        assert re.search(r"\b[^.]*\b".join(question.query.text.split()), contents)


def test_questions_depend_on_the_seed_alone(index: Index) -> None:
    assert draft_questions(index, 5, seed=1) == draft_questions(index, 5, seed=1)
    assert draft_questions(index, 5, seed=1) != draft_questions(index, 5, seed=2)


def test_headings_that_many_documents_share_are_not_asked(tmp_path: Path) -> None:
    shared = "# One\n\n## What readers should know\n\nIt is so.\n"
    documents = [Document(f"d{n}", {"text": shared}) for n in range(50)]
    assert draft_questions(build_index(documents, tmp_path / "index"), 5) == []


def test_comments_of_code_are_not_asked(tmp_path: Path) -> None:
    code = "# How owners repair broken kettles\nx = 1\n"
    documents = [Document(f"d{n}.py", {"text": code, "type": "code"}) for n in range(2)]
    index = build_index(documents, tmp_path / "index")
    assert draft_questions(index, 5) == []


def test_stated_sections_are_headings(tmp_path: Path) -> None:
    text = "Before.\n\nHow owners repair kettles\n\nThey do."
    fields = {"text": text, "type": "html", SECTION_STARTS: "9"}
    index = build_index([Document("a.html", fields)], tmp_path / "index")
    (drafted,) = draft_questions(index, 5)
    assert drafted.query.text == "How owners repair kettles"


def test_code_and_lists_are_not_asked(tmp_path: Path) -> None:
    lines = "x1 = f(y2); g[3] += 4 * h5 - (a8, b9) ** c7 / 2.\n" * 20
    documents = [Document(f"d{n}", {"text": lines}) for n in range(3)]
    assert draft_questions(build_index(documents, tmp_path / "index"), 5) == []
