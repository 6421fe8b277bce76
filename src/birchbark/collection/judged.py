"""How do queries, judgments and documents become training pairs?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from birchbark.collection.intake import Intake
from birchbark.errors import InputError
from birchbark.records import Document, Pair, Qrels, Query, Segment

Segmenter = Callable[[Document], Sequence[Segment]]
Texts = Callable[[str, Document], Sequence[str]]  # what a query is paired with of a document


def whole(query_id: str, document: Document) -> list[str]:
    """The document, all of it."""
    return [document.contents]


def by_segments(segmenter: Segmenter) -> Texts:
    """Each of its segments; an empty text, which is a fault, where it has none."""
    return lambda _, document: [segment.text for segment in segmenter(document)] or [""]


def judged_pairs(
    queries: Iterable[Query],
    qrels: Qrels,
    documents: Iterable[Document],
    intake: Intake,
    texts: Texts = whole,
) -> Iterator[Pair]:
    """A pair for each judgment, in the order of the documents, which are read once and not kept.

    texts: of a document, for the query of this id; there is a pair for each of them, all with the
    grade of the document. A grade below 0 counts as 0, as in TREC. A document without text is a
    bad record. Judgments whose query or document is not there are noted. Raises InputError if there
    is no pair at all.
    """
    asked = {query.query_id: query.text for query in queries}
    waiting = _by_document(of_queries(qrels, asked, intake))
    kept = 0
    for document in documents:
        judgments = waiting.pop(document.doc_id, ())
        for query_id, relevance, text in (
            (*j, t) for j in judgments for t in texts(j[0], document)
        ):
            pair = Pair(query_id, asked[query_id], document.doc_id, text, relevance)
            if pair.fault:
                intake.bad(InputError(pair.fault, where=f"document {document.doc_id}"))
            else:
                kept += 1
                yield pair
    for _ in (judgment for judgments in waiting.values() for judgment in judgments):
        intake.note("wanted document not in the collection")
    if not kept:
        raise InputError(
            "no judged document is in the collection",
            wanted=f"documents like {next(iter(waiting))}" if waiting else "documents with text",
            remedy="do judgments and collection belong together?",
        )


def of_queries(qrels: Qrels, queries: Iterable[str], intake: Intake) -> Qrels:
    """The judgments of these queries; those of others are noted.

    Raises InputError if none is left.
    """
    known = set(queries)
    kept = {query_id: grades for query_id, grades in qrels.grades.items() if query_id in known}
    for _ in range(len(qrels.grades) - len(kept)):
        intake.note("judged query not among the queries")
    if not any(kept.values()):
        raise InputError("no judgment is of one of these queries", remedy="are they of one set?")
    return Qrels(kept)


def _by_document(qrels: Qrels) -> dict[str, list[tuple[str, int]]]:
    """Query and relevance of the judgments of each document."""
    waiting: dict[str, list[tuple[str, int]]] = {}
    for query_id, grades in qrels.grades.items():
        for doc_id, grade in grades.items():
            waiting.setdefault(doc_id, []).append((query_id, max(0, grade)))
    return waiting


def with_negatives(qrels: Qrels, negatives: Mapping[str, Iterable[str]]) -> Qrels:
    """`qrels`, and grade 0 for those `negatives` of a judged query that nobody judged for it.

    That is how MS MARCO's document set is trained on, whose judgments name the relevant alone: what
    a run ranks is taken for not relevant. Some of it is relevant in truth.
    """
    return Qrels(
        {
            query_id: {**dict.fromkeys(negatives.get(query_id, ()), 0), **grades}
            for query_id, grades in qrels.grades.items()
        }
    )
