"""How are queries read from TSV, JSONL, Parquet, topics in SGML or XML, or TREC CAR's judgments?"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from birchbark import defaults
from birchbark.arguments import names_of
from birchbark.collection import ir_datasets
from birchbark.collection.ir_datasets import dataset_id
from birchbark.collection.jsonl import json_object
from birchbark.collection.parquet import is_parquet, parquet_rows
from birchbark.collection.parsing.intake import Intake
from birchbark.collection.parsing.lines import (
    decode_lines,
    lines_in_memory,
    parse_lines,
    parse_records,
)
from birchbark.collection.qrels import read_qrels
from birchbark.collection.topics import RECORDS, read_topics
from birchbark.collection.trec_car import has_sections, section_text
from birchbark.errors import InputError
from birchbark.record_values import is_missing, take_id, weighted_terms
from birchbark.records import Query

ID_NAMES = ("id", "_id", "query_id", "qid")
TEXT_NAMES = ("text", "query", "title", "question")
WEIGHTS_NAME = "vector"
TITLE = ("title",)  # of a topic, the part that is searched for by default


def read_queries(
    path: Path | str,
    topic_fields: Iterable[str] = defaults.TOPIC_FIELDS,
    encoding: str = defaults.ENCODING,
    query_ids: Container[str] | None = None,
) -> list[Query]:
    """Read queries from TSV (`id TAB text`), JSONL, Parquet or topics, in the file's order.

    Topics are in SGML or XML. In JSONL and Parquet, `vector` may hold weighted terms of the index,
    `{"bee": 1.5}`. Parquet is known by its name, the others by the first character of the file. The
    number of a TREC Microblog topic (MB001) is written as in the qrels (1). Of a file named
    `*hierarchical.qrels`, TREC CAR's judgments, each section is a query: the title of its page and
    its headings.

    Args:
        path: The file, a folder of Parquet files, or `ir_datasets:ID`.
        topic_fields: The parts of a topic that form the query, joined by a space: `title`,
            `description`, `narrative`, or a tag of the file (TREC-COVID: `query`, `question`), with
            its language in front if it has one (`en-title`). Of JSON objects and rows, fields.
            Default `()`: the title of a topic; the first of `text`, `query`, `title` and `question`
            of an object or row.
        encoding: The encoding of the file. Default `utf-8`.
        query_ids: The ids of the queries that are kept, maybe none. Default None: all.

    Raises:
        InputError: If a line or topic cannot be read, an id is invalid or repeated, a text or topic
            field is missing, or there are no queries.
        MissingPackageError: If `ir_datasets:ID` needs the package ir_datasets.
    """
    path = Path(path)
    located = _located(path, names_of(topic_fields, "topic field"), encoding)
    if query_ids is not None:
        return _checked(item for item in located if item[1].query_id in query_ids)
    queries = _checked(located)
    if not queries:
        wanted = f"lines of id TAB text, JSON objects, or the elements {', '.join(RECORDS)}"
        raise InputError("no queries", where=str(path), wanted=wanted)
    return queries


def _located(path: Path, fields: tuple[str, ...], encoding: str) -> Iterable[tuple[str, Query]]:
    """Return location and query of each record; see `read_queries`."""
    if dataset_id(path):
        return ir_datasets.read_queries(path, fields)
    if has_sections(path):
        sections = read_qrels(path).grades
        return ((str(path), Query(name, section_text(name))) for name in sections)
    if is_parquet(path):
        return parse_records(parquet_rows(path), partial(_from_values, fields=fields), Intake())
    intake = Intake(encoding=encoding)
    lines = lines_in_memory(path)  # the file may be a pipe, so it is read only once
    first = next((raw.lstrip()[:1] for _, raw in lines if raw.strip()), b"")
    if first == b"<":
        return _topics(lines, path, fields or TITLE, encoding)
    if fields and first not in (b"{", b"["):
        raise InputError("TSV has no topic fields", where=str(path), found=", ".join(fields))
    parse = partial(_from_json, fields=fields) if first in (b"{", b"[") else _from_tsv
    return parse_lines(_without_header(lines), path, parse, intake)


def _checked(located: Iterable[tuple[str, Query]]) -> list[Query]:
    queries: dict[str, Query] = {}
    for location, query in located:
        if query.query_id in queries:
            raise InputError(f"a second query with the id {query.query_id}", where=location)
        if any("\ud800" <= character <= "\udfff" for character in query.text):
            raise InputError(f"query {query.query_id} contains a lone surrogate", where=location)
        if not query.text.strip():
            raise InputError(f"query {query.query_id} has no text", where=location)
        if not query.query_id or re.search(r"\s", query.query_id):
            raise InputError("query id is empty or contains white space", where=location)
        queries[query.query_id] = query
    return list(queries.values())


def _from_tsv(line: str) -> Query:
    columns = line.split("\t")
    if len(columns) != 2:
        raise InputError(
            "wrong number of columns", wanted="2: id TAB text", found=str(len(columns))
        )
    return Query(columns[0].strip(), columns[1].strip())


def _without_header(lines: list[tuple[int, bytes]]) -> list[tuple[int, bytes]]:
    """Return lines without a first one that names the columns, such as qid TAB query."""
    words = lines[0][1].lower().split(b"\t") if lines else []
    names = [word.strip().decode("ascii", "replace") for word in words]
    if len(names) == 2 and names[0] in ID_NAMES and names[1] in TEXT_NAMES:
        return lines[1:]
    return lines


def _from_json(line: str, fields: tuple[str, ...]) -> Query:
    return _from_values(json_object(line), fields)


def _from_values(values: dict[str, Any], fields: tuple[str, ...]) -> Query:
    """Return a query. fields: those that form its text; () for the first that is there."""
    query_id = take_id(values, ID_NAMES)
    if fields:
        if absent := [name for name in fields if not isinstance(values.get(name), str)]:
            raise InputError(
                f"query {query_id} has no {absent[0]}", found=", ".join(sorted(values))
            )
        return Query(query_id, " ".join(values[name].strip() for name in fields))
    known = [name for name in TEXT_NAMES if not is_missing(values.get(name))]
    text = values[known[0]] if known and isinstance(values[known[0]], str) else None
    if not is_missing(values.get(WEIGHTS_NAME)):
        weights = weighted_terms(values[WEIGHTS_NAME], f"{WEIGHTS_NAME} of query {query_id}")
        return Query(query_id, (text or "").strip() or " ".join(weights), weights)
    if text is None:
        raise InputError(
            f"query {query_id} has no text",
            wanted=f"a string named {' or '.join(TEXT_NAMES)}",
            found=", ".join(sorted(values)) or "no further field",
        )
    return Query(query_id, text.strip())


def _topics(
    lines: list[tuple[int, bytes]], path: Path, fields: tuple[str, ...], encoding: str
) -> Iterator[tuple[str, Query]]:
    try:
        topics = list(read_topics("\n".join(decode_lines(lines, path, encoding))))
    except InputError as error:
        raise error.at(str(path)) from None
    located = ((f"{path}, topic {topic.number or '?'}", topic) for topic in topics)
    return parse_records(located, lambda topic: Query(topic.number, topic.text(fields)), Intake())
