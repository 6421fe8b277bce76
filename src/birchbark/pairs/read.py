"""How are training pairs read from TSV or JSONL files?"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import astuple, dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from birchbark.collection.jsonl import json_object
from birchbark.collection.parsing.intake import Intake
from birchbark.collection.parsing.lines import binary_lines, decode, parse_lines
from birchbark.collection.qrels import parse_grade
from birchbark.errors import InputError
from birchbark.pairs.checks import checked_pairs
from birchbark.record_values import as_grade, take_id
from birchbark.records import Pair


@dataclass(frozen=True, slots=True)
class Columns:
    """The names of a file's columns (TSV) or fields (JSONL)."""

    query_id: str = "qid"
    query: str = "query"
    doc_id: str = "docid"
    text: str = "text"
    relevance: str = "label"

    @property
    def required(self) -> tuple[str, str, str]:
        """The columns that every file must have; ids are optional, see `text_id`."""
        return self.query, self.text, self.relevance


def read_pairs(
    path: Path,
    intake: Intake,
    columns: Columns = Columns(),
    highest: int = 1,
    unjudged: int | None = None,
) -> Iterator[Pair]:
    """Yield the pairs of a file, in order.

    A file that starts with `{` is read as JSONL, any other as TSV. TSV needs a header line; quotes
    have no special meaning. Additional columns are ignored. A missing id is derived from its text
    (`text_id`). Grades below 0 count as 0, as in TREC.

    highest: the highest valid grade.
    unjudged: the grade of a pair whose relevance is empty; if None, such a pair is a bad record.
    For other bad records see `checked_pairs`. Raises InputError for a header without query, text or
    relevance, and for a file without valid pairs.
    """
    lines = binary_lines(path)
    first = next(((number, raw) for number, raw in lines if raw.strip()), None)
    if first is None:
        raise InputError("no pairs", where=str(path), found="an empty file")
    parse_values: Callable[[str], dict[str, Any]] = json_object
    if first[1].lstrip()[:1] in (b"{", b"["):
        lines = chain([first], lines)
    else:
        parse_values = _row_parser(first, path, columns, intake.encoding)
    grade = partial(_relevance, highest=highest, unjudged=unjudged)

    def parse(line: str) -> Pair:
        return _pair(parse_values(line), columns, grade)

    yield from checked_pairs(parse_lines(lines, path, parse, intake), str(path), intake)


def text_id(text: str) -> str:
    """Return 16 hex digits of the hash of `text`. Equal texts have equal ids."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def _row_parser(
    first: tuple[int, bytes], path: Path, columns: Columns, encoding: str
) -> Callable[[str], dict[str, Any]]:
    """Return a function that parses a line into values by column.

    first: the number of the header line, and the line. Raises InputError for an invalid header.
    """
    try:
        header = [name.strip() for name in decode(first[1], encoding).split("\t")]
        _require(columns, header)
        repeated = [n for n, k in Counter(header).items() if k > 1 and n in astuple(columns)]
        if repeated:
            raise InputError(f"two columns are named {repeated[0]}")
    except InputError as error:
        raise error.at(f"{path}:{first[0]}") from None

    def parse(line: str) -> dict[str, Any]:
        values = line.split("\t")
        if len(values) != len(header):
            raise InputError(
                "wrong number of columns",
                wanted=f"{len(header)} as in the header",
                found=str(len(values)),
            )
        return dict(zip(header, values, strict=True))

    return parse


def _pair(values: dict[str, Any], columns: Columns, grade: Callable[[object], int]) -> Pair:
    _require(columns, list(values))
    query, text, relevance = (values[name] for name in columns.required)
    for name, value in ((columns.query, query), (columns.text, text)):
        if not isinstance(value, str):
            raise InputError(f"{name} is not a string", found=repr(value)[:80])
    query_id, doc_id = (
        text_id(value) if values.get(name) is None else take_id(values, (name,))
        for name, value in ((columns.query_id, query), (columns.doc_id, text))
    )
    return Pair(query_id, query, doc_id, text, grade(relevance))


def _require(columns: Columns, names: list[str]) -> None:
    missing = [name for name in columns.required if name not in names]
    if missing:
        raise InputError(
            f"no column named {' and none named '.join(missing)}",
            found=", ".join(names)[:200] or "none at all",
            remedy="add the header line; a training configuration can name other columns",
        )


def _relevance(value: object, highest: int, unjudged: int | None) -> int:
    if value is None or value == "":
        if unjudged is None:
            raise InputError(
                "relevance is empty", remedy="remove the pair, or set a grade for unjudged pairs"
            )
        return unjudged
    if isinstance(value, bool):
        raise InputError("grade is not an integer", found=repr(value))
    relevance = max(0, parse_grade(value) if isinstance(value, str) else as_grade(value))
    if relevance > highest:
        raise InputError(
            "relevance is too high",
            wanted=f"0 to {highest}",
            found=str(relevance),
            remedy="is this the right column, and the right highest grade?",
        )
    return relevance
