"""How are relevance judgments read?"""

from __future__ import annotations

import re
from pathlib import Path

from birchbark.collection import irds
from birchbark.collection.intake import Intake
from birchbark.collection.lines import parsed_lines
from birchbark.errors import InputError
from birchbark.records import Qrels

_GRADE = re.compile(r"[+-]?\d{1,9}", re.ASCII)


def read_qrels(path: Path) -> Qrels:
    """Judgments in TREC form: `query_id iteration doc_id grade`, separated by white space.

    `ir_datasets:ID` asks that package.

    Raises InputError for a line of another form, a grade that is no whole number, a document judged
    twice for one query with different grades, or a file without judgments.
    """
    grades: dict[str, dict[str, int]] = {}
    found = irds.read_judgments(path) if irds.named(path) else parsed_lines(path, _parse, Intake())
    for place, (query_id, doc_id, grade) in found:
        of_query = grades.setdefault(query_id, {})
        if of_query.setdefault(doc_id, grade) != grade:
            raise InputError(
                f"document {doc_id} is judged twice for query {query_id}",
                where=place,
                found=f"grades {of_query[doc_id]} and {grade}",
                remedy="keep one of the two lines",
            )
    if not grades:
        raise InputError("no judgments", where=str(path))
    return Qrels(grades)


def _parse(line: str) -> tuple[str, str, int]:
    columns = line.split()
    if len(columns) != 4:
        raise InputError("wrong number of columns", wanted="4", found=str(len(columns)))
    query_id, _, doc_id, grade = columns
    return query_id, doc_id, whole_grade(grade)


def whole_grade(grade: str) -> int:
    """The number that `grade` writes; InputError if it is not a whole one."""
    if not _GRADE.fullmatch(grade):
        raise InputError("grade is no whole number", found=repr(grade))
    return int(grade)
