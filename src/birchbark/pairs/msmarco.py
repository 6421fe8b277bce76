"""How do MS MARCO's training triples (query, positive passage, negative passage) become pairs?

For MS MARCO's documents, there are no triples, but qrels and a run in TREC format; see
`add_negatives`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from birchbark.collection.intake import Intake
from birchbark.collection.lines import parse_file
from birchbark.errors import InputError
from birchbark.pairs.read import text_id
from birchbark.records import Document, Pair, Query


def read_triples(path: Path, intake: Intake) -> Iterator[Pair]:
    """Yield two pairs per line `query TAB positive TAB negative`: relevance 1, then 0.

    Ids are derived from the texts (`text_id`). A triple is a bad record if a text is empty, or if
    the positive and the negative text are equal. Repeated pairs are not detected, since many lines
    share a query and a positive. Raises InputError if there is no valid triple.
    """
    triples = 0
    for _, pairs in parse_file(path, _from_texts, intake):
        triples += 1
        yield from pairs
    _require_some(triples, path, intake)


def read_id_triples(
    path: Path, queries: Iterable[Query], documents: Iterable[Document], intake: Intake
) -> Iterator[Pair]:
    """Yield two pairs per line `query_id TAB positive doc_id TAB negative doc_id`.

    `path` is read twice, so it cannot be a pipe. `documents` are read once; only the documents in
    triples are held in memory. A triple with an unknown query or document is a bad record. For
    other bad records and errors see `read_triples`.
    """
    query_ids: set[str] = set()
    doc_ids: set[str] = set()
    for _, (query_id, *of_triple) in parse_file(path, _columns, Intake(True, intake.encoding)):
        query_ids.add(query_id)
        doc_ids.update(of_triple)
    query_texts = {query.query_id: query.text for query in queries if query.query_id in query_ids}
    texts = {doc.doc_id: doc.contents for doc in documents if doc.doc_id in doc_ids}

    def parse(line: str) -> tuple[Pair, Pair]:
        query_id, positive, negative = _columns(line)
        query = _known(query_texts, query_id, "query", "among the queries")
        first, second = (
            _known(texts, doc_id, "document", "in the collection")
            for doc_id in (positive, negative)
        )
        return _checked(
            Pair(query_id, query, positive, first, 1), Pair(query_id, query, negative, second, 0)
        )

    triples = 0
    for _, pairs in parse_file(path, parse, intake):
        triples += 1
        yield from pairs
    _require_some(triples, path, intake)


def _from_texts(line: str) -> tuple[Pair, Pair]:
    query, positive, negative = _columns(line)
    query_id = text_id(query)
    return _checked(
        Pair(query_id, query, text_id(positive), positive, 1),
        Pair(query_id, query, text_id(negative), negative, 0),
    )


def _columns(line: str) -> list[str]:
    columns = line.split("\t")
    if len(columns) != 3:
        raise InputError(
            "wrong number of columns",
            wanted="3: query TAB positive TAB negative",
            found=str(len(columns)),
        )
    return columns


def _checked(positive: Pair, negative: Pair) -> tuple[Pair, Pair]:
    fault = positive.fault or negative.fault
    if positive.text == negative.text:
        fault = fault or "the same text is positive and negative"
    if fault:
        raise InputError(fault)
    return positive, negative


def _known(texts: dict[str, str], record_id: str, kind: str, where: str) -> str:
    if record_id not in texts:
        raise InputError(
            f"{kind} {record_id} is not {where}", remedy="do the files belong together?"
        )
    return texts[record_id]


def _require_some(triples: int, path: Path, intake: Intake) -> None:
    if not triples:
        raise InputError(
            "no triples",
            where=str(path),
            found=f"{len(intake.skipped)} bad records" if intake.skipped else "",
        )
