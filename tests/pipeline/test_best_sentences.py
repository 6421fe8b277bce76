"""Does the model choose the sentence that is shown, of those with most terms of the query?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from birchbark.deadline import NO_TIME, Deadline
from birchbark.index.index import Index
from birchbark.pipeline.answers.answer import Answer, Evidence, Hit, SearchStats
from birchbark.pipeline.answers.best_sentences import HITS, SENTENCES, with_best_sentences
from birchbark.pipeline.answers.snippets import Snippets
from birchbark.pipeline.search import search
from birchbark.pipeline.settings.ranker import Ranker
from birchbark.records import Document, Float32s, Ids
from birchbark.retrieve.engine import IndexEngine
from birchbark.retrieve.term_overlap import TermIndex
from birchbark.segment.passages import Passages
from conftest import WordScorer

QUERY = "when do bees dance"
TEXT = "Bees dance. When it is warm the swarm performs. Bees sting."


class _Answers(WordScorer):
    """Scores a text by its longest word, and remembers what it has read."""

    def __init__(self) -> None:
        super().__init__(token_budget=100)
        self.read: list[str] = []

    def score(self, query: str, token_ids: Sequence[Ids]) -> Float32s:
        texts = [self.text(ids) for ids in token_ids]
        self.read += texts
        return np.array([max(map(len, t.split()), default=0) / 20 for t in texts], np.float32)


class _Store:
    def documents(self, doc_ids: Sequence[str]) -> list[Document]:
        return []


def answer_of(*texts: str) -> tuple[Answer, Snippets]:
    """An answer whose hits have each text as a passage, marked by terms, and its snippets."""
    snippets = Snippets(TermIndex(_Store()), QUERY, Deadline(None))
    hits = []
    for number, text in enumerate(texts):
        document = Document(f"d{number}", {"text": text})
        (segment,) = Passages()(document)
        hits.append(Hit(document, 1.0, 0.0, 1.0, (Evidence(segment, 0.5, 0.5),)))
    return Answer(snippets.complete(hits), SearchStats()), snippets


def shown(answer: Answer) -> list[str]:
    return [hit.segments[0].text for hit in answer.hits]


def test_the_model_chooses_the_sentence() -> None:
    answer, snippets = answer_of(TEXT)
    assert shown(answer) == ["Bees dance."]
    scorer = _Answers()
    better = with_best_sentences(answer, QUERY, scorer, snippets, Deadline(None))
    assert shown(better) == ["When it is warm the swarm performs."]
    before, after = answer.hits[0], better.hits[0]
    assert replace(after, segments=before.segments) == before  # nothing else changes
    assert replace(after.segments[0], sentence=None) == replace(before.segments[0], sentence=None)


def test_only_sentences_with_most_terms_are_read() -> None:
    """Three, whatever the others are; the first of equal ones."""
    answer, snippets = answer_of(f"Extraordinarily long. {TEXT} Bees dance when dancing.")
    scorer = _Answers()
    better = with_best_sentences(answer, QUERY, scorer, snippets, Deadline(None))
    assert len(scorer.read) == SENTENCES
    assert "extraordinarily long." not in scorer.read
    assert shown(better)[0].lower() == max(scorer.read, key=lambda t: max(map(len, t.split())))


def test_equal_scores_keep_the_sentence_with_most_terms() -> None:
    answer, snippets = answer_of("Bees dance. Bees sting.")
    scorer = WordScorer(token_budget=100)
    better = with_best_sentences(answer, "bees", scorer, snippets, Deadline(None))
    assert shown(better) == ["Bees dance."]


def test_only_the_first_hits_are_read() -> None:
    answer, snippets = answer_of(*(TEXT.replace("sting", f"sting{n}") for n in range(HITS + 2)))
    scorer = _Answers()
    better = with_best_sentences(answer, QUERY, scorer, snippets, Deadline(None))
    assert shown(better)[HITS:] == ["Bees dance."] * 2
    assert set(shown(better)[:HITS]) == {"When it is warm the swarm performs."}
    assert sum("swarm" in text for text in scorer.read) == 1  # equal sentences, once


def test_a_passage_of_one_sentence_is_not_read() -> None:
    answer, snippets = answer_of("Bees dance.")
    scorer = _Answers()
    assert with_best_sentences(answer, QUERY, scorer, snippets, Deadline(None)) == answer
    assert scorer.read == []


def test_without_time_the_terms_choose() -> None:
    answer, snippets = answer_of(TEXT)
    scorer = _Answers()
    assert with_best_sentences(answer, QUERY, scorer, snippets, Deadline(NO_TIME)) == answer
    assert scorer.read == []


def test_a_sentence_that_is_too_long_is_left_out() -> None:
    answer, snippets = answer_of(TEXT)
    scorer = _Answers()
    scorer._token_budget = 2
    better = with_best_sentences(answer, QUERY, scorer, snippets, Deadline(None))
    assert shown(better) == ["Bees dance."]
    assert sorted(scorer.read) == ["bees dance.", "bees sting."]


def test_only_the_best_passage_of_a_hit_is_read() -> None:
    answer, snippets = answer_of(TEXT)
    (hit,) = answer.hits
    twice = replace(answer, hits=(replace(hit, segments=hit.segments * 2),))
    better = with_best_sentences(twice, QUERY, _Answers(), snippets, Deadline(None))
    sentences = [evidence.text for evidence in better.hits[0].segments]
    assert sentences == ["When it is warm the swarm performs.", "Bees dance."]


def test_a_model_of_whole_documents_does_not_choose() -> None:
    answer, snippets = answer_of(TEXT)
    scorer = _Answers()
    scorer.width = 4
    assert with_best_sentences(answer, QUERY, scorer, snippets, Deadline(None)) == answer


def test_a_search_shows_what_its_model_chose(index: Index) -> None:
    """The sentence of the best passage of each hit is one that the model has read."""
    scorer = _Answers()
    answer = search(IndexEngine(index), "river bark", Ranker(scorer), 3)
    chosen = [hit.segments[0] for hit in answer.hits if hit.segments[0].sentence]
    assert chosen
    assert all(evidence.text.lower() in scorer.read for evidence in chosen)
