"""Which questions could be asked of an index? Headings, and a few words of sentences.

The words of a drafted question are those of the document that answers it. People ask in other
words, too, so drafted questions show whether models lose what BM25 finds, but not what they gain.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from birchbark import defaults
from birchbark.index.index import Index
from birchbark.index.layout import CONTENTS
from birchbark.pipeline.answers.example_queries import (
    is_prose,
    reads_like_a_query,
    spread_ids,
)
from birchbark.records import Document, Query
from birchbark.segment.section_starts import section_starts
from birchbark.segment.sentences import sentences
from birchbark.text.headings import heading_at, headings
from birchbark.text.stop_words import NLTK

PREFIX = "drafted-"  # of the ids of drafted questions
LOOKED_AT = 20  # documents per question
READ_CHARACTERS = 50_000  # of a document, from a random place
SENTENCE_WORDS = range(8, 41)
ENDS = ".!?…"
ASKED_WORDS = 4  # of a sentence become a question
COMMON = 0.1  # a question has a word that at most this share of the documents has, or two documents
_WORD = re.compile(r"[^\W\d_]{3,}")


@dataclass(frozen=True, slots=True)
class DraftedQuestion:
    """A question, and the id of the document whose words it has."""

    query: Query
    doc_id: str


def draft_questions(
    index: Index,
    count: int,
    seed: int = defaults.SEED,
    on_document: Callable[[], object] = lambda: None,
) -> list[DraftedQuestion]:
    """Return up to `count` questions, of different documents, half of them headings.

    The others are four words of a sentence, in its order, which other documents have, too. Fewer
    are returned if the documents have too few headings and sentences that are of use. on_document:
    called before each document is read.
    """
    rng = random.Random(seed)
    doc_ids = spread_ids(index, LOOKED_AT * count)
    rng.shuffle(doc_ids)
    drafted, asked, of_headings = list[DraftedQuestion](), set[str](), 0
    for doc_id in doc_ids:
        if len(drafted) == count:
            break
        on_document()
        (document,) = index.documents([doc_id])
        kinds = [_from_heading, _from_sentence]
        if 2 * of_headings > len(drafted):
            kinds.reverse()
        for draft in kinds:
            text = draft(index, document, rng)
            if text is not None and text.lower() not in asked:
                asked.add(text.lower())
                of_headings += draft is _from_heading
                query = Query(f"{PREFIX}{len(drafted) + 1}", text)
                drafted.append(DraftedQuestion(query, doc_id))
                break
    return drafted


def _from_heading(index: Index, document: Document, rng: random.Random) -> str | None:
    """Return a heading of the text, or else the title, if it reads like a query and is telling."""
    if document.fields.get("type") == "code":  # its lines with # are comments
        return None
    found = headings(document.text[:READ_CHARACTERS])
    if stated := section_starts(document):
        found = [heading_at(document.contents, start) for start in stated]
    rng.shuffle(found)
    for heading in (" ".join(line.split()) for line in (*found, document.title)):
        reads_well = reads_like_a_query(heading) and not heading.endswith(tuple(ENDS))
        if reads_well and _is_telling(index, _frequencies(index, heading)):
            return heading
    return None


def _from_sentence(index: Index, document: Document, rng: random.Random) -> str | None:
    """Return some words of a random sentence; None if no sentence is telling."""
    start = rng.randrange(max(1, len(document.text) - READ_CHARACTERS))
    text = document.text[start : start + READ_CHARACTERS]
    untitled = Document(document.doc_id, {"text": text})
    spans = [segment.text for segment in sentences(untitled)]
    rng.shuffle(spans)
    for text in spans[:LOOKED_AT]:
        if text[-1] not in ENDS or len(text.split()) not in SENTENCE_WORDS or not is_prose(text):
            continue
        shared = {word: df for word, df in _frequencies(index, text).items() if df > 1}
        if len(shared) >= ASKED_WORDS and _is_telling(index, shared):
            rarest = min(shared, key=shared.__getitem__)
            others = rng.sample([word for word in shared if word != rarest], ASKED_WORDS - 1)
            return " ".join(word for word in shared if word in (rarest, *others))
    return None


def _frequencies(index: Index, text: str) -> dict[str, int]:
    """Return each word of a text, in its order → the number of documents that have it.

    Stop words, and words that the index does not have, are left out.
    """
    field = CONTENTS if CONTENTS in index.fields else index.fields[0]
    words = [word for word in _WORD.findall(text) if word.lower() not in NLTK]
    terms = {word: index.analyzer.terms(word) for word in words}
    known = index.document_frequencies([t for found in terms.values() for t in found], field)
    return {
        word: min(known[term] for term in found)
        for word, found in terms.items()
        if found and known.keys() >= set(found)
    }


def _is_telling(index: Index, frequencies: Mapping[str, int]) -> bool:
    return min(frequencies.values(), default=len(index)) <= max(2, COMMON * len(index))
