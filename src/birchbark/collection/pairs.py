"""How are training pairs read: TSV with a header line, or JSONL?"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import astuple, dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from birchbark.collection.intake import Intake
from birchbark.collection.jsonl import json_object, take_id
from birchbark.collection.lines import binary_lines, decode, parsed
from birchbark.collection.pair_checks import checked_pairs
from birchbark.collection.qrels import whole_grade
from birchbark.errors import InputError
from birchbark.records import Pair


@dataclass(frozen=True, slots=True)
class Columns:
    """What a file calls the parts of a pair, as columns of its header or names in its objects."""

    query_id: str = "qid"
    query: str = "query"
    doc_id: str = "docid"
    text: str = "text"
    relevance: str = "label"

    @property
    def needed(self) -> tuple[str, str, str]:
        """Those that nothing can stand in for."""
        return self.query, self.text, self.relevance


def read_pairs(
    path: Path,
    intake: Intake,
    columns: Columns = Columns(),
    highest: int = 1,
    unjudged: int | None = None,
) -> Iterator[Pair]:
    """Pairs in the order of the file, which is JSONL if it starts with `{`, and else TSV.

    TSV has a header line, and quotes have no meaning. Further columns are not read. An id that the
    file does not have is made from its text (`text_id`). Grades below 0 count as 0, as in TREC.

    highest: the highest grade there may be. unjudged: what an empty grade counts as; with None it
    is a bad record. What else is one: `checked_pairs`. Raises InputError for a header without the
    query, text or relevance, and for a file without any pair.
    """
    lines = binary_lines(path)
    first = next(((number, raw) for number, raw in lines if raw.strip()), None)
    if first is None:
        raise InputError("no pairs", where=str(path), found="an empty file")
    values_of: Callable[[str], dict[str, Any]] = json_object
    if first[1].lstrip()[:1] in (b"{", b"["):
        lines = chain([first], lines)
    else:
        values_of = _row_parser(first, path, columns, intake.encoding)
    grade = partial(_relevance, highest=highest, unjudged=unjudged)

    def parse(line: str) -> Pair:
        return _pair(values_of(line), columns, grade)

    yield from checked_pairs(parsed(lines, path, parse, intake), str(path), intake)


def text_id(text: str) -> str:
    """An id for a text that has none: 16 hex digits, the same wherever the text is the same."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def _row_parser(
    first: tuple[int, bytes], path: Path, columns: Columns, encoding: str
) -> Callable[[str], dict[str, Any]]:
    """What turns a line into its values by name, for the header line `first`."""
    try:
        header = [name.strip() for name in decode(first[1], encoding).split("\t")]
        _require(columns, header)
        twice = [n for n, times in Counter(header).items() if times > 1 and n in astuple(columns)]
        if twice:
            raise InputError(f"two columns are named {twice[0]}")
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
    query, text, relevance = (values[name] for name in columns.needed)
    for name, value in ((columns.query, query), (columns.text, text)):
        if not isinstance(value, str):
            raise InputError(f"{name} is no string", found=repr(value)[:80])
    query_id, doc_id = (
        text_id(whole) if values.get(name) is None else take_id(values, (name,))
        for name, whole in ((columns.query_id, query), (columns.doc_id, text))
    )
    return Pair(query_id, query, doc_id, text, grade(relevance))


def _require(columns: Columns, found: list[str]) -> None:
    missing = [name for name in columns.needed if name not in found]
    if missing:
        raise InputError(
            f"no column named {' and none named '.join(missing)}",
            found=", ".join(found)[:200] or "none at all",
            remedy="add the header line, or say what the columns are called",
        )


def _relevance(value: object, highest: int, unjudged: int | None) -> int:
    if value is None or value == "":
        if unjudged is None:
            raise InputError(
                "relevance is empty", remedy="leave the pair out, or say what unjudged counts as"
            )
        return unjudged
    whole = isinstance(value, int) and not isinstance(value, bool)
    if not whole and not isinstance(value, str):
        raise InputError("grade is no whole number", found=repr(value)[:80])
    relevance = max(0, whole_grade(str(value)))
    if relevance > highest:
        raise InputError(
            "relevance is too high",
            wanted=f"0 to {highest}",
            found=str(relevance),
            remedy="is this the right column, and the right highest grade?",
        )
    return relevance
