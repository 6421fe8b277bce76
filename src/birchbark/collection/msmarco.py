"""How do MS MARCO's training triples (query, relevant passage, another passage) become pairs?

Its document set has judgments and a run in TREC form instead: `judged.py`, `with_negatives`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from birchbark.collection.intake import Intake
from birchbark.collection.lines import parsed_lines
from birchbark.collection.pairs import text_id
from birchbark.errors import InputError
from birchbark.records import Document, Pair, Query


def read_triples(path: Path, intake: Intake) -> Iterator[Pair]:
    """Two pairs a line of `query TAB positive TAB negative`: relevance 1, then 0.

    Ids are made from the texts (`text_id`). A triple with an empty text, or with one text in both
    roles, is a bad record. Lines are not compared with each other: one query and positive stand in
    many. Raises InputError if there is no triple.
    """
    triples = 0
    for _, pairs in parsed_lines(path, _from_texts, intake):
        triples += 1
        yield from pairs
    _require_some(triples, path, intake)


def read_id_triples(
    path: Path, queries: Iterable[Query], documents: Iterable[Document], intake: Intake
) -> Iterator[Pair]:
    """As `read_triples`, for lines of `query_id TAB doc_id TAB doc_id` (positive, negative).

    `path` is read twice, so it cannot be a pipe; `documents` once, and only those that the triples
    name are kept. A triple that names an unknown query or document is a bad record.
    """
    wanted_queries: set[str] = set()
    wanted: set[str] = set()
    for _, (query_id, *doc_ids) in parsed_lines(path, _columns, Intake(True, intake.encoding)):
        wanted_queries.add(query_id)
        wanted.update(doc_ids)
    asked = {query.query_id: query.text for query in queries if query.query_id in wanted_queries}
    texts = {doc.doc_id: doc.contents for doc in documents if doc.doc_id in wanted}

    def parse(line: str) -> tuple[Pair, Pair]:
        query_id, positive, negative = _columns(line)
        query = _known(asked, query_id, "query", "among the queries")
        first, second = (
            _known(texts, doc_id, "document", "in the collection")
            for doc_id in (positive, negative)
        )
        return _checked(
            Pair(query_id, query, positive, first, 1), Pair(query_id, query, negative, second, 0)
        )

    triples = 0
    for _, pairs in parsed_lines(path, parse, intake):
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
        fault = fault or "one text is positive and negative"
    if fault:
        raise InputError(fault)
    return positive, negative


def _known(texts: dict[str, str], some_id: str, noun: str, place: str) -> str:
    if some_id not in texts:
        raise InputError(f"{noun} {some_id} is not {place}", remedy="do the files belong together?")
    return texts[some_id]


def _require_some(triples: int, path: Path, intake: Intake) -> None:
    if not triples:
        raise InputError(
            "no triples",
            where=str(path),
            found=f"{len(intake.skipped)} bad records" if intake.skipped else "",
        )
