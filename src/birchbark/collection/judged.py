"""How do queries, judgments and documents become training pairs?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from birchbark.collection.intake import Intake
from birchbark.errors import InputError
from birchbark.records import Document, Pair, Qrels, Query, Run


def judged_pairs(
    queries: Iterable[Query], qrels: Qrels, documents: Iterable[Document], intake: Intake
) -> Iterator[Pair]:
    """A pair for each judgment, in the order of the documents, which are read once and not kept.

    The text is `Document.contents`; a grade below 0 counts as 0, as in TREC. A document without
    text is a bad record. Judgments whose query or document is not there are noted. Raises
    InputError if there is no pair at all.
    """
    texts = {query.query_id: query.text for query in queries}
    waiting = _by_document(texts, qrels, intake)
    if not waiting:
        raise InputError("no judgment is of one of these queries", remedy="are they of one set?")
    kept = 0
    for document in documents:
        for query_id, relevance in waiting.pop(document.doc_id, ()):
            text = document.contents
            pair = Pair(query_id, texts[query_id], document.doc_id, text, relevance)
            if pair.fault:
                intake.bad(InputError(pair.fault, where=f"document {document.doc_id}"))
            else:
                kept += 1
                yield pair
    for _ in (judgment for judgments in waiting.values() for judgment in judgments):
        intake.note("judged document not in the collection")
    if not kept:
        raise InputError(
            "no judged document is in the collection",
            wanted=f"documents like {next(iter(waiting))}" if waiting else "documents with text",
            remedy="do judgments and collection belong together?",
        )


def _by_document(
    queries: Iterable[str], qrels: Qrels, intake: Intake
) -> dict[str, list[tuple[str, int]]]:
    """Query and relevance of the judgments of each document."""
    known = set(queries)
    waiting: dict[str, list[tuple[str, int]]] = {}
    for query_id, grades in qrels.grades.items():
        if query_id not in known:
            intake.note("judged query not among the queries")
            continue
        for doc_id, grade in grades.items():
            waiting.setdefault(doc_id, []).append((query_id, max(0, grade)))
    return waiting


def with_negatives(qrels: Qrels, run: Run) -> Qrels:
    """`qrels`, and grade 0 for what `run` ranks for a judged query and nobody judged.

    That is how MS MARCO's document set is trained on, whose judgments name the relevant alone; some
    of these negatives are relevant in truth. Cut the run (`Run.head`) to have fewer of them.
    """
    ranked = {query_id: ranking.doc_ids for query_id, ranking in run.rankings.items()}
    return Qrels(
        {
            query_id: {**dict.fromkeys(ranked.get(query_id, ()), 0), **grades}
            for query_id, grades in qrels.grades.items()
        }
    )
