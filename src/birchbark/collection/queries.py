"""How are queries read: TSV, JSONL, or TREC topics?"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from birchbark.collection import irds
from birchbark.collection.intake import Intake
from birchbark.collection.irds import named
from birchbark.collection.jsonl import json_object, take_id
from birchbark.collection.lines import binary_lines, decoded, parsed
from birchbark.collection.markup import plain_text
from birchbark.errors import InputError
from birchbark.records import Query

ID_NAMES = ("id", "_id", "query_id", "qid")
TEXT_NAMES = ("text", "query", "title", "question")

_TAGS = {"query": "title", "title": "title", "desc": "description", "narr": "narrative"}
_CLASSIC = re.compile(r"<(num|title|query|desc|narr|querytime|querytweettime)>", re.I)
_LABEL = re.compile(r"^\s*(?:number|topic|description|narrative)\s*:", re.I)
_XML_TOPIC = re.compile(r"<topic\s[^>]*number\s*=\s*[\"']([^\"']+)[\"'][^>]*>(.*?)</topic>", re.S)
_XML_FIELD = re.compile(r"<(\w+)>(.*?)</\1>", re.S)


def read_queries(
    path: Path, topic_fields: Iterable[str] = ("title",), encoding: str = "utf-8"
) -> list[Query]:
    """Queries in the order of the file, which may be TSV, JSONL or TREC topics; seen by its start.

    topic_fields: for TREC topics, which parts make the query, joined by a space: `title`,
    `description`, `narrative`, or a tag of the file itself (TREC-COVID: `query`, `question`).
    Numbers of TREC Microblog topics (MB001) are written as their qrels write them (1).

    `ir_datasets:ID` asks that package.

    Raises InputError for a bad line, a second query with one id, an empty text, or no query at all.
    """
    if named(path):
        return _checked(irds.read_queries(path, tuple(topic_fields)), path)
    intake = Intake(encoding=encoding)
    lines = list(binary_lines(path))  # read once: it may be a pipe
    first = next((raw.lstrip()[:1] for _, raw in lines if raw.strip()), b"")
    if first == b"<":
        located = _topics(lines, path, tuple(topic_fields), encoding)
    else:
        located = list(parsed(lines, path, _from_json if first == b"{" else _from_tsv, intake))
    return _checked(located, path)


def _checked(located: Iterable[tuple[str, Query]], path: Path) -> list[Query]:
    queries: dict[str, Query] = {}
    for place, query in located:
        if query.query_id in queries:
            raise InputError(f"a second query with the id {query.query_id}", where=place)
        if any("\ud800" <= character <= "\udfff" for character in query.text):
            raise InputError(f"query {query.query_id} holds half a character", where=place)
        if not query.text.strip():
            raise InputError(f"query {query.query_id} has no text", where=place)
        if not query.query_id or re.search(r"\s", query.query_id):
            raise InputError("query id is empty or holds white space", where=place)
        queries[query.query_id] = query
    if not queries:
        raise InputError("no queries", where=str(path))
    return list(queries.values())


def _from_tsv(line: str) -> Query:
    columns = line.split("\t")
    if len(columns) != 2:
        raise InputError(
            "wrong number of columns", wanted="2: id TAB text", found=str(len(columns))
        )
    return Query(columns[0].strip(), columns[1].strip())


def _from_json(line: str) -> Query:
    values = json_object(line)
    query_id = take_id(values, ID_NAMES)
    text = next((values[name] for name in TEXT_NAMES if isinstance(values.get(name), str)), None)
    if text is None:
        raise InputError(
            f"query {query_id} has no text",
            wanted=f"a string named {' or '.join(TEXT_NAMES)}",
            found=", ".join(sorted(values)) or "no further field",
        )
    return Query(query_id, text.strip())


def _topics(
    lines: list[tuple[int, bytes]], path: Path, fields: tuple[str, ...], encoding: str
) -> list[tuple[str, Query]]:
    text = "\n".join(decoded(lines, path, encoding))
    parts = [(m[1], _xml_parts(m[2])) for m in _XML_TOPIC.finditer(text)] or _classic_parts(text)
    located = []
    for number, found in parts:
        place = f"{path}, topic {number or '?'}"
        missing = [f for f in fields if not found.get(f)]
        if missing or not number:
            raise InputError(
                f"topic has no {' and no '.join(missing or ['number'])}",
                where=place,
                found=", ".join(k for k, v in found.items() if v) or "nothing",
                remedy="name the parts to use with --topic-field",
            )
        located.append((place, Query(number, " ".join(found[f] for f in fields))))
    return located


def _xml_parts(body: str) -> dict[str, str]:
    parts = {tag.lower(): _clean(text) for tag, text in _XML_FIELD.findall(body)}
    return parts if "title" in parts else {"title": parts.get("query", ""), **parts}


def _classic_parts(text: str) -> list[tuple[str, dict[str, str]]]:
    """Number and parts of topics whose tags are not closed, as TREC's ad hoc tracks wrote them."""
    topics = []
    for block in re.split(r"<top>", text, flags=re.I)[1:]:
        pieces = _CLASSIC.split(re.split(r"</top>", block, flags=re.I)[0])
        found = {
            tag.lower(): _clean(body) for tag, body in zip(pieces[1::2], pieces[2::2], strict=True)
        }
        number = re.sub(r"^MB0*(?=\d)", "", found.pop("num", ""))
        topics.append((number, {_TAGS.get(tag, tag): body for tag, body in found.items()}))
    return topics


def _clean(body: str) -> str:
    return " ".join(_LABEL.sub("", plain_text(body)[1]).split())
