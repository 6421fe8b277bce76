"""How do queries, judgments and documents become training pairs?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from birchbark.collection.parsing.intake import Intake
from birchbark.errors import InputError
from birchbark.records import Document, Pair, Qrels, Query, Segment

Segmenter = Callable[[Document], Sequence[Segment]]
TextsOf = Callable[[str, Document], Sequence[str]]  # (query_id, document) → texts to pair


def whole_document(query_id: str, document: Document) -> list[str]:
    """Return the text of the whole document."""
    return [document.contents]


def segment_texts(segmenter: Segmenter) -> TextsOf:
    """Return a function that pairs the query with each segment of a document.

    A document without segments yields one empty text, which is a bad record.
    """
    return lambda _, document: [segment.text for segment in segmenter(document)] or [""]


def judged_pairs(
    queries: Iterable[Query],
    qrels: Qrels,
    documents: Iterable[Document],
    intake: Intake,
    texts_of: TextsOf = whole_document,
) -> Iterator[Pair]:
    """Yield a pair for each judgment and text, in the order of the documents.

    Each text of a document has the document's grade. Grades below 0 count as 0, as in TREC. A
    document with an empty text is a bad record. Judgments whose query or document is missing are
    noted in `intake`. The documents are read once, and not held in memory.
    Raises InputError if no judgment belongs to one of the queries, or if there is no pair.
    """
    query_texts = {query.query_id: query.text for query in queries}
    pending = _by_document(qrels_of_queries(qrels, query_texts, intake))
    count = 0
    for document in documents:
        judgments = pending.pop(document.doc_id, ())
        for query_id, relevance, text in (
            (*j, t) for j in judgments for t in texts_of(j[0], document)
        ):
            pair = Pair(query_id, query_texts[query_id], document.doc_id, text, relevance)
            if pair.fault:
                intake.bad(InputError(pair.fault, where=f"document {document.doc_id}"))
            else:
                count += 1
                yield pair
    for _ in (judgment for judgments in pending.values() for judgment in judgments):
        intake.note("judged document not in the collection")
    if not count:
        raise InputError(
            "no judged document is in the collection",
            wanted=f"documents like {next(iter(pending))}" if pending else "documents with text",
            remedy="check that judgments and collection have the same document ids",
        )


def qrels_of_queries(qrels: Qrels, query_ids: Iterable[str], intake: Intake) -> Qrels:
    """Return the judgments of these queries, and note the queries that are left out.

    Raises InputError if no judgment belongs to one of these queries.
    """
    known = set(query_ids)
    kept = {query_id: grades for query_id, grades in qrels.grades.items() if query_id in known}
    for _ in range(len(qrels.grades) - len(kept)):
        intake.note("judged query not among the queries")
    if not any(kept.values()):
        raise InputError(
            "no judgment belongs to one of these queries",
            remedy="check that queries and judgments have the same query ids",
        )
    return Qrels(kept)


def _by_document(qrels: Qrels) -> dict[str, list[tuple[str, int]]]:
    """Return the judgments (query_id, relevance) of each document, by doc_id."""
    judgments: dict[str, list[tuple[str, int]]] = {}
    for query_id, grades in qrels.grades.items():
        for doc_id, grade in grades.items():
            judgments.setdefault(doc_id, []).append((query_id, max(0, grade)))
    return judgments


def add_negatives(qrels: Qrels, negatives: Mapping[str, Iterable[str]]) -> Qrels:
    """Return the qrels with grade 0 added for all unjudged `negatives` of each judged query.

    MS MARCO's document judgments, for example, list only relevant documents. Other documents that a
    run ranks are assumed not to be relevant, although some are.
    """
    return Qrels(
        {
            query_id: {**dict.fromkeys(negatives.get(query_id, ()), 0), **grades}
            for query_id, grades in qrels.grades.items()
        }
    )
