"""How are relevance judgments read?"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Any

from birchbark.arguments import DOCUMENT_COLUMNS, QUERY_COLUMNS
from birchbark.collection.ir_datasets import dataset_id, read_judgments
from birchbark.collection.parquet import is_parquet, parquet_rows
from birchbark.collection.parsing.intake import Intake
from birchbark.collection.parsing.lines import binary_lines, parse_lines, parse_records
from birchbark.errors import InputError
from birchbark.record_values import as_grade, take_id
from birchbark.records import Qrels

BEIR_HEADER = [b"query-id", b"corpus-id", b"score"]
_GRADE = re.compile(r"[+-]?\d{1,4000}", re.ASCII)


def read_qrels(path: Path | str, of_queries: Container[str] | None = None) -> Qrels:
    """Read judgments in the format of TREC, `query_id iteration doc_id grade`, or of BEIR.

    BEIR's files have a header and three columns: `query-id corpus-id score`. So have Parquet files;
    without `score`, as in NanoBEIR, each grade is 1.

    Args:
        path: The file, a folder of Parquet files, or `ir_datasets:ID`.
        of_queries: The ids of the queries whose judgments are kept; None for all.

    Raises:
        InputError: If a line has another form, a grade is not a whole number, a document has two
            different grades for the same query, or there are no judgments.
        MissingPackageError: If `ir_datasets:ID` needs the package ir_datasets.
    """
    path = Path(path)
    grades: dict[str, dict[str, int]] = {}
    for location, (query_id, doc_id, grade) in _read(path):
        if of_queries is not None and query_id not in of_queries:
            continue
        of_query = grades.setdefault(query_id, {})
        if of_query.setdefault(doc_id, grade) != grade:
            raise InputError(
                f"document {doc_id} is judged twice for query {query_id}",
                where=location,
                found=f"grades {of_query[doc_id]} and {grade}",
                remedy="delete one of the two lines",
            )
    if not grades:
        raise InputError("no judgments", where=str(path))
    return Qrels(grades)


def judged_query_ids(path: Path | str) -> Iterator[str]:
    """Yield the query id of each judgment, of which none is held in memory; see `read_qrels`."""
    return (query_id for _, (query_id, _, _) in _read(Path(path)))


def _read(path: Path) -> Iterator[tuple[str, tuple[str, str, int]]]:
    return read_judgments(path) if dataset_id(path) else _read_file(path)


def _read_file(path: Path) -> Iterator[tuple[str, tuple[str, str, int]]]:
    """Yield location and query_id, doc_id and grade of each judgment."""
    if is_parquet(path):
        return parse_records(parquet_rows(path), _of_row, Intake())
    lines = binary_lines(path)
    first = list(islice(lines, 1))
    if first and first[0][1].split() == BEIR_HEADER:
        return parse_lines(lines, path, _parse_beir, Intake())
    return parse_lines(chain(first, lines), path, _parse, Intake())


def _of_row(row: dict[str, Any]) -> tuple[str, str, int]:
    judged = row.get("score", 1)
    return take_id(row, QUERY_COLUMNS), take_id(row, DOCUMENT_COLUMNS), as_grade(judged)


def _parse_beir(line: str) -> tuple[str, str, int]:
    columns = line.split("\t")
    if len(columns) != 3:
        raise InputError("wrong number of columns", wanted="3", found=str(len(columns)))
    query_id, doc_id, grade = (column.strip() for column in columns)
    return query_id, doc_id, parse_grade(grade)


def _parse(line: str) -> tuple[str, str, int]:
    columns = line.split()
    if len(columns) != 4:
        raise InputError("wrong number of columns", wanted="4", found=str(len(columns)))
    query_id, _, doc_id, grade = columns
    return query_id, doc_id, parse_grade(grade)


def parse_grade(grade: str) -> int:
    """Parse a grade; see `as_grade`."""
    if not _GRADE.fullmatch(grade):
        raise InputError("grade is not an integer", found=repr(grade))
    return as_grade(int(grade))
