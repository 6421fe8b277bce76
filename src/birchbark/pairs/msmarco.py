"""How do MS MARCO's training triples (query, positive passage, negative passage) become pairs?

For MS MARCO's documents, there are no triples, but qrels and a run in TREC format; see
`add_negatives`.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import IO

import numpy as np

from birchbark.collection.parsing.intake import Intake
from birchbark.collection.parsing.lines import parse_file
from birchbark.errors import InputError
from birchbark.pairs.blocks import in_blocks
from birchbark.pairs.hash_table import EMPTY, Hashes, HashTable, hashes_of
from birchbark.pairs.read import text_id
from birchbark.records import Document, Pair, Query


def read_triples(path: Path, intake: Intake, limit: int | None = None) -> Iterator[Pair]:
    """Yield two pairs per line `query TAB positive TAB negative`: relevance 1, then 0.

    Ids are derived from the texts (`text_id`). A triple is a bad record if a text is empty, or if
    the positive and the negative text are equal. Repeated pairs are not detected, since many lines
    share a query and a positive. limit: the number of valid triples to read; None for all. Raises
    InputError if there is no valid triple.
    """
    triples = 0
    for _, pairs in islice(parse_file(path, _from_texts, intake), limit):
        triples += 1
        yield from pairs
    _require_some(triples, path, intake)


def read_id_triples(
    path: Path,
    queries: Iterable[Query],
    documents: Iterable[Document],
    intake: Intake,
    limit: int | None = None,
) -> Iterator[Pair]:
    """Yield two pairs per line `query_id TAB positive doc_id TAB negative doc_id`.

    `path` is read twice, so it cannot be a pipe. `documents` are read once; the texts of those in
    triples are kept in a temporary file, so memory holds about 70 bytes for each of them. A triple
    with an unknown query or document is a bad record. For limit, other bad records and errors see
    `read_triples`.
    """
    query_ids: set[str] = set()
    doc_ids = HashTable(width=2)
    lines = parse_file(path, _columns, Intake(True, intake.encoding))
    for block in in_blocks(islice(lines, None if intake.skip_bad else limit)):
        query_ids.update(query_id for _, (query_id, *_) in block)
        doc_ids.numbers(_hashes_of_documents(block))
    query_texts = {query.query_id: query.text for query in queries if query.query_id in query_ids}
    triples = 0
    with tempfile.TemporaryFile() as file:
        texts = _StoredTexts(file, documents, doc_ids)
        for block in in_blocks(parse_file(path, _columns, intake)):
            numbers = doc_ids.find(_hashes_of_documents(block)).reshape(-1, 2).tolist()
            for (location, columns), found in zip(block, numbers, strict=True):
                try:
                    pairs = _from_ids(columns, query_texts, [texts[n] for n in found])
                except InputError as error:
                    intake.bad(error.at(location))
                    continue
                triples += 1
                yield from pairs
                if triples == limit:
                    return
    _require_some(triples, path, intake)


class _StoredTexts:
    """The texts of documents, in a temporary file."""

    def __init__(self, file: IO[bytes], documents: Iterable[Document], numbers: HashTable) -> None:
        """numbers: the numbers of the documents whose texts are kept, by hash (width 2)."""
        self._ranges = np.full((len(numbers), 2), -1, np.int64)  # start and end in the file
        end = 0
        for block in in_blocks(documents):
            found = numbers.find(hashes_of((d.doc_id for d in block), width=2))
            for document, number in zip(block, found, strict=True):
                if number != EMPTY:
                    text = document.contents.encode("utf-8", "surrogatepass")
                    file.write(text)
                    self._ranges[number] = end, end + len(text)
                    end += len(text)
        file.flush()
        self._file = file

    def __getitem__(self, number: int) -> str | None:
        """Return the text of a document; None if it is not among the documents."""
        start, end = self._ranges[number].tolist()
        if start < 0:
            return None
        return os.pread(self._file.fileno(), end - start, start).decode("utf-8", "surrogatepass")


def _hashes_of_documents(block: Iterable[tuple[str, list[str]]]) -> Hashes:
    """Return the hashes of both documents of each triple of ids: (2 · triples, 2)."""
    return hashes_of(chain.from_iterable(columns[1:] for _, columns in block), width=2)


def _from_ids(
    columns: Sequence[str], query_texts: Mapping[str, str], texts: Sequence[str | None]
) -> tuple[Pair, Pair]:
    query_id, *doc_ids = columns
    if (query := query_texts.get(query_id)) is None:
        raise _unknown("query", query_id, "among the queries")
    pairs = []
    for doc_id, text, relevance in zip(doc_ids, texts, (1, 0), strict=True):
        if text is None:
            raise _unknown("document", doc_id, "in the collection")
        pairs.append(Pair(query_id, query, doc_id, text, relevance))
    return _checked(*pairs)


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


def _unknown(kind: str, record_id: str, where: str) -> InputError:
    return InputError(
        f"{kind} {record_id} is not {where}", remedy="check that these files have the same ids"
    )


def _require_some(triples: int, path: Path, intake: Intake) -> None:
    if not triples:
        raise InputError(
            "no triples",
            where=str(path),
            found=f"{len(intake.skipped)} bad records" if intake.skipped else "",
        )
