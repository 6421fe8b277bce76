"""Which faults of inputs are refused, corrected or counted? Each with a small input that has it.

tests/test_input_checks.py tries each of them. The tables of docs/explanation/checks.md are made
from this list by docs/update_tables.py.
"""

from __future__ import annotations

import bz2
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from birchbark.collection.documents import read_collection
from birchbark.collection.folds import read_folds
from birchbark.collection.parsing.intake import Intake
from birchbark.collection.qrels import read_qrels
from birchbark.collection.queries import read_queries
from birchbark.collection.runs import read_run
from birchbark.combine.fusion import score_fusion
from birchbark.evaluate.measures import measure
from birchbark.index.build_index import Schema, build_index
from birchbark.pairs.read import read_pairs
from birchbark.pipeline.answers.sort_hits import sorted_by_field
from birchbark.pipeline.load_rankers import load_ranker
from birchbark.pipeline.pair_scorer import PairScorer
from birchbark.pipeline.rank_texts import rank
from birchbark.pipeline.rerank import rerank
from birchbark.pipeline.searcher import Searcher
from birchbark.records import Document, Qrels, Query, Ranking, Run
from birchbark.retrieve.filters import parse_filters
from birchbark.retrieve.first_stage import FirstStage

REFUSED, CORRECTED, COUNTED, READ = "refused", "corrected", "counted", "read"
NAN = float("nan")
Try = Callable[[Path], object]  # given an empty folder, returns what comes of the input


@dataclass(frozen=True)
class Check:
    """A fault, or a form that is no fault, and what comes of it.

    given: what is given, as the table says it. outcome: REFUSED, CORRECTED, COUNTED or READ.
    result: what happens, as the table says it; of a refusal, a part of the message. attempt: gives
    the input. value: what `attempt` returns; None for a refusal.
    """

    given: str
    outcome: str
    result: str
    attempt: Try
    value: object = None


def file(read: Callable[[Path], object], content: str | bytes, name: str = "file") -> Try:
    """Have a file with this content read."""

    def attempt(folder: Path) -> object:
        raw = content if isinstance(content, bytes) else content.encode()
        (folder / name).write_bytes(raw)
        return read(folder / name)

    return attempt


def queries(content: str | bytes) -> Try:
    """Return the queries of a file: id → text."""
    return file(lambda path: {q.query_id: q.text for q in read_queries(path)}, content)


def topics(content: str) -> Try:
    """Return the queries in topics."""
    return queries(f"<topics>{content}</topics>")


def judgments(content: str) -> Try:
    """Return the grades in a file."""
    return file(lambda path: read_qrels(path).grades, content)


def run(content: str | bytes) -> Try:
    """Return the order of each query in a run file."""
    return file(lambda path: {q: r.doc_ids for q, r in read_run(path).rankings.items()}, content)


def documents(content: str | bytes, name: str = "c.jsonl", *, skip: bool = False) -> Try:
    """Return the fields of the documents of a file, and how many records were skipped."""

    def read(path: Path) -> object:
        intake = Intake(skip_bad=skip)
        found = {d.doc_id: dict(d.fields) for d in read_collection(path, intake=intake)}
        return (found, len(intake.skipped)) if skip else found

    return file(read, content, name)


def record(**values: Any) -> Try:
    """Return the fields of a document made from a record."""
    return lambda _: dict(Document.from_dict({"id": 1, "text": "a", **values}).fields)


def evaluated(qrels: Any, rankings: Any, name: str = "AP") -> Try:
    """Return the values of a measure: query → value."""

    def attempt(_: Path) -> object:
        made = Run({q: Ranking.of(d, -np.arange(len(d))) for q, d in rankings.items()})
        return measure(Qrels(qrels), made, [name]).values[name]

    return attempt


def ranked(query: Any, texts: Iterable[Any]) -> Try:
    """Return the ranked texts, best first."""
    return lambda _: [text.text for text in rank(query, texts)]


def searched(attempt: Callable[[Searcher], object]) -> Try:
    """Use a searcher without models over two documents with a keyword field."""

    def with_index(folder: Path) -> object:
        records = [{"id": "a", "text": "bark", "kind": "x"}, {"id": "b", "text": "bark tea"}]
        index = build_index(records, folder / "index", Schema(keywords=("kind",)))
        return attempt(Searcher(index.directory, ()))

    return with_index


def fused(*scores: dict[str, float]) -> Try:
    """Return the order by the sum of scaled scores."""
    runs = [Run({"1": Ranking.from_pairs(of)}) for of in scores]
    return lambda _: score_fusion(runs).rankings["1"].doc_ids


class Frame(list[Any]):
    """What iterates over the names of its columns, as frames do."""

    columns = ("text",)


CHECKS: dict[str, list[Check]] = {
    "Queries": [
        Check(
            "a first line that names the columns, in TSV",
            CORRECTED,
            "left out",
            queries("qid\tquery\n1\ta\n"),
            {"1": "a"},
        ),
        Check("a JSON array", REFUSED, "one complete object per line", queries("[]\n")),
        Check(
            "topic fields of TSV",
            REFUSED,
            "TSV has no topic fields",
            file(lambda path: read_queries(path, ["desc"]), "1\ta\n"),
        ),
        Check("UTF-16", REFUSED, "is UTF-16", queries("\ufeff1\ta\n".encode("utf-16-le"))),
        Check(
            "a damaged or truncated compressed file, or text after it",
            REFUSED,
            "broken bzip2 stream",
            queries(bz2.compress(b"1\ta\n") + b"2\tb\n"),
        ),
        Check("a duplicate id", REFUSED, "a second query with the id 1", queries("1\ta\n1\tb\n")),
        Check("an id with white space, or none", REFUSED, "query id", queries("1 2\ta\n")),
        Check("a query without text", REFUSED, "query 1 has no text", queries("1\t \n")),
        Check("a line without a tab", REFUSED, "wrong number of columns", queries("1 a\n")),
        Check("no query at all", REFUSED, "no queries", queries("\n")),
        Check("bytes of another encoding", REFUSED, "wrong encoding", queries(b"1\t\xe9\n")),
        Check(
            "a byte order mark, CR LF",
            CORRECTED,
            "removed",
            queries(b"\xef\xbb\xbf1\ta\r\n"),
            {"1": "a"},
        ),
        Check(
            "an id that is a number, in JSON",
            CORRECTED,
            "becomes text",
            queries('{"id": 7, "text": "a"}\n'),
            {"7": "a"},
        ),
        Check(
            "bzip2, gzip, xz, Zstandard, .Z",
            READ,
            "decompressed",
            queries(bz2.compress(b"1\ta\n")),
            {"1": "a"},
        ),
        Check("a zip archive", REFUSED, "is a zip archive", queries(b"PK\x03\x04")),
    ],
    "Topics": [
        Check(
            "attributes without quotation marks, tags in capitals, numbers in elements",
            READ,
            "as others",
            topics("<topic number=4>a</topic><Topic><Number>5</Number><Title>b</Title></Topic>"),
            {"4": "a", "5": "b"},
        ),
        Check(
            "a topic in a comment",
            CORRECTED,
            "left out",
            topics("<topic id=1>a</topic><!-- <topic id=2>b</topic> -->"),
            {"1": "a"},
        ),
        Check(
            "parts that are not asked for, closed or not",
            CORRECTED,
            "left out",
            queries("<top><num> Number: 1<title> Topic: a<con> Concept(s): b<audio>c</top>"),
            {"1": "a"},
        ),
        Check(
            "an unknown tag that is not closed",
            REFUSED,
            "is not closed",
            topics("<topic id=1><title>a</title><x>b</topic>"),
        ),
        Check(
            "text outside a topic",
            REFUSED,
            "text outside any topic",
            topics("<topic id=1>a</topic>b"),
        ),
        Check(
            "text beside the parts of a topic",
            REFUSED,
            "text of a topic outside its parts",
            topics("<topic id=1>b<title>a</title></topic>"),
        ),
        Check(
            "several parts of one name",
            REFUSED,
            "has several parts called title",
            topics("<topic id=1><title>a</title><title>b</title></topic>"),
        ),
        Check("no number", REFUSED, "topic has no number", topics("<topic>a</topic>")),
        Check(
            "Indri's query language",
            REFUSED,
            "Indri's query language",
            queries("<query><number>1</number><text>#combine(a b)</text></query>"),
        ),
    ],
    "Judgments": [
        Check(
            "an empty id",
            REFUSED,
            "an id of a judgment is empty",
            judgments("query-id\tcorpus-id\tscore\n1\t\t1\n"),
        ),
        Check(
            "a grade that is not whole",
            REFUSED,
            "grade is not an integer",
            judgments("1 0 a 1.5\n"),
        ),
        Check("a grade above 10,000", REFUSED, "grade is out of range", judgments("1 0 a 10001\n")),
        Check(
            "two grades of a document", REFUSED, "is judged twice", judgments("1 0 a 1\n1 0 a 2\n")
        ),
        Check(
            "the same grade twice",
            CORRECTED,
            "counts once",
            judgments("1 0 a 1\n1 0 a 1\n"),
            {"1": {"a": 1}},
        ),
        Check("a negative grade", READ, "not relevant", judgments("1 0 a -2\n"), {"1": {"a": -2}}),
        Check(
            "another number of columns", REFUSED, "wrong number of columns", judgments("1 a 1\n")
        ),
        Check(
            "in Python, ids that are integers, a grade of 1.0",
            CORRECTED,
            "become text and 1",
            lambda _: Qrels({1: {2: 1.0}}).grades,
            {"1": {"2": 1}},
        ),  # type: ignore[dict-item]
        Check(
            "in Python, a grade of NaN",
            REFUSED,
            "grade is not an integer",
            lambda _: Qrels({"1": {"a": NAN}}),
        ),  # type: ignore[dict-item]
    ],
    "Runs": [
        Check(
            "a document twice for a query",
            REFUSED,
            "is ranked twice",
            run("1 Q0 a 1 2 t\n1 Q0 a 2 1 t\n"),
        ),
        Check("a score that is not finite", REFUSED, "score is not", run("1 Q0 a 1 nan t\n")),
        Check(
            "ranks that contradict the scores",
            CORRECTED,
            "the scores decide, as in trec_eval",
            run("1 Q0 a 1 1 t\n1 Q0 b 2 2 t\n"),
            {"1": ("b", "a")},
        ),
        Check(
            "equal scores",
            READ,
            "the higher id first, as in trec_eval",
            run("1 Q0 a 1 1 t\n1 Q0 b 2 1 t\n"),
            {"1": ("b", "a")},
        ),
        Check(
            "scores that differ beyond single precision",
            READ,
            "are ties, as in trec_eval",
            run("1 Q0 a 1 0.999999992 t\n1 Q0 b 2 0.999999991 t\n"),
            {"1": ("b", "a")},
        ),
        Check("another number of columns", REFUSED, "wrong number of columns", run("1 Q0 a 1 2\n")),
        Check(
            "scores below 0 in `fuse`, divided by the highest or unchanged",
            REFUSED,
            "a score is below 0",
            fused({"a": 0.01, "b": -1.5}),
        ),
    ],
    "Evaluation": [
        Check(
            "a judged query that is not ranked",
            COUNTED,
            "its value is 0",
            evaluated({"1": {"a": 1}, "2": {"a": 1}}, {"1": ["a"]}),
            {"1": 1.0, "2": 0.0},
        ),
        Check(
            "a ranked query that is not judged",
            COUNTED,
            "left out",
            evaluated({"1": {"a": 1}}, {"1": ["a"], "2": ["a"]}),
            {"1": 1.0},
        ),
        Check(
            "no query in common",
            REFUSED,
            "no query in the run is judged",
            evaluated({"1": {"a": 1}}, {"2": ["a"]}),
        ),
        Check(
            "ids that a tool would change",
            CORRECTED,
            "tools get numbers",
            evaluated({"x-1": {"a": 4}, "y-1": {"b": 4}}, {"x-1": ["a"], "y-1": ["a"]}, "ERR@1"),
            {"x-1": 0.9375, "y-1": 0.0},
        ),
        Check(
            "an unknown measure",
            REFUSED,
            "unknown measure",
            evaluated({"1": {"a": 1}}, {"1": ["a"]}, "MAPP"),
        ),
        Check(
            "folds that share a query",
            REFUSED,
            "is in two folds",
            file(lambda path: read_folds(path, ["1"]), '[["1"], ["1"]]', "folds.json"),
        ),
    ],
    "Documents": [
        Check(
            "a list of texts as text",
            CORRECTED,
            "becomes paragraphs",
            record(text=["a", "b"]),
            {"text": "a\n\nb"},
        ),
        Check(
            "an empty text beside another",
            CORRECTED,
            "the other is read",
            record(text="", body="b"),
            {"text": "b"},
        ),
        Check("broken JSON", REFUSED, "broken JSON", documents("{\n")),
        Check(
            "a bad record with `--skip-bad`",
            COUNTED,
            "skipped and shown",
            documents('{"id": "a", "text": "b"}\n{\n', skip=True),
            ({"a": {"text": "b"}}, 1),
        ),
        Check(
            "a duplicate key in an object",
            REFUSED,
            "the key 'text' occurs twice in one object",
            documents('{"id": "a", "text": "b", "text": "c"}\n'),
        ),
        Check(
            "a list in a field to filter by",
            REFUSED,
            "a field to filter by has a list",
            lambda folder: build_index(
                [{"id": "a", "text": "b", "tag": ["x", "y"]}],
                folder / "i",
                Schema(keywords=["tag"]),
            ),
        ),
        Check("no id", REFUSED, "no id", documents('{"text": "b"}\n')),
        Check("neither text nor title", REFUSED, "has no text", documents('{"id": "a"}\n')),
        Check(
            "an id that is neither text nor an integer",
            REFUSED,
            "field id is not an id",
            documents('{"id": 1.5, "text": "b"}\n'),
        ),
        Check(
            "a value of null or NaN",
            CORRECTED,
            "the field is left out",
            documents('{"id": "a", "text": "b", "year": NaN, "url": null}\n'),
            {"a": {"text": "b"}},
        ),
        Check(
            "a value that is not text",
            CORRECTED,
            "becomes JSON",
            documents('{"id": "a", "text": "b", "tags": ["x"]}\n'),
            {"a": {"text": "b", "tags": '["x"]'}},
        ),
        Check("an infinite number", REFUSED, "cannot be stored as text", record(size=float("inf"))),
        Check(
            "a duplicate id",
            REFUSED,
            "a second document with the id a",
            lambda folder: build_index([{"id": "a", "text": "b"}] * 2, folder / "i"),
        ),
        Check(
            "lines with different numbers of columns, in TSV",
            REFUSED,
            "wrong number of columns",
            documents("1\ta\n2\ta\tb\n", "c.tsv"),
        ),
        Check("no documents", REFUSED, "no documents", documents("\n")),
    ],
    "Arguments in Python": [
        Check(
            "a value of another type: a filter, a weight, a budget",
            REFUSED,
            "is not a text",
            lambda _: FirstStage(filters={"year": 2020}),
        ),  # type: ignore[dict-item]
        Check(
            "a string in place of a tuple of names",
            REFUSED,
            "are not a list",
            lambda _: Schema(read_fields="body"),
        ),
        Check(
            "a pair of texts as dict or set",
            REFUSED,
            "not a pair of query and text",
            lambda _: PairScorer().predict([{"query": "a", "text": "b"}]),
        ),  # type: ignore[list-item]
        Check(
            "counts that are not whole or below 0",
            REFUSED,
            "is out of range",
            lambda _: Ranking.of(["a"], [1]).head(-1),
        ),
        Check(
            "two queries with one id",
            REFUSED,
            "a second query with the id 1",
            lambda folder: rerank(
                build_index([{"id": "a", "text": "b"}], folder / "i"),
                Run({}),
                [Query("1", "a"), Query("1", "b")],
                load_ranker(),
            ),
        ),
        Check(
            "texts as list, tuple, generator, array or column",
            READ,
            "in the order of their items",
            ranked("bees", (text for text in ["bees", "tea"])),
            ["bees", "tea"],
        ),
        Check(
            "a string, dict, set or frame in place of a list",
            REFUSED,
            "are not a list",
            ranked("bees", Frame()),
        ),
        Check(
            "None, NaN or a number in place of a text",
            REFUSED,
            "text 1 is not a text",
            ranked("bees", ["bees", None]),
        ),
        Check(
            "None, NaN or a number in place of a query",
            REFUSED,
            "query is not a text",
            ranked(None, ["bees"]),
        ),
        Check(
            "cells of a frame without value (NaN, NA, NaT)",
            CORRECTED,
            "the field is left out",
            record(year=NAN, seen=None),
            {"text": "a"},
        ),
        Check(
            "numbers and arrays of numpy",
            CORRECTED,
            "become JSON",
            record(year=np.int64(3), tags=np.array([1, 2])),
            {"text": "a", "year": "3", "tags": "[1, 2]"},
        ),
        Check(
            "ids that are integers",
            CORRECTED,
            "become text",
            lambda _: Ranking.of([7, np.int64(8)], [2, 1]).doc_ids,
            ("7", "8"),
        ),  # type: ignore[list-item]
        Check(
            "ids that are floats, None or NaN", REFUSED, "is not an id", lambda _: Query(NAN, "a")
        ),  # type: ignore[arg-type]
        Check(
            "scores that are not finite",
            REFUSED,
            "is not a finite number",
            lambda _: Ranking.of(["a"], [NAN]),
        ),
    ],
    "Searches": [
        Check(
            "a filter by a field that is not a keyword field",
            REFUSED,
            "no field 'kinds' to filter by",
            searched(lambda s: s.search("bark", filters={"kinds": "x"})),
        ),
        Check(
            "two filters of one field",
            REFUSED,
            "two filters of the field",
            lambda _: parse_filters(["a=1", "a=2"]),
        ),
        Check(
            "sorting by a field that no hit has",
            REFUSED,
            "no hit has the field",
            searched(lambda s: sorted_by_field(s.search("bark"), "kinds")),
        ),
        Check(
            "a query without terms",
            READ,
            "finds nothing without vectors, and with them what is nearest in meaning",
            searched(lambda s: s.search("?!").hits),
            (),
        ),
        Check(
            "a document that is not in the index",
            REFUSED,
            "no document",
            searched(lambda s: s.documents(["z"])),
        ),
    ],
    "Training pairs": [
        Check(
            "a label that is not a grade",
            REFUSED,
            "grade is not an integer",
            file(
                lambda path: list(read_pairs(path, Intake())),
                "qid\tquery\tdocid\ttext\tlabel\n1\ta\td\tb\tx\n",
                "p.tsv",
            ),
        ),
        Check(
            "an empty text",
            REFUSED,
            "text is empty",
            file(
                lambda path: list(read_pairs(path, Intake())),
                "qid\tquery\tdocid\ttext\tlabel\n1\ta\td\t \t1\n",
                "p.tsv",
            ),
        ),
    ],
}


def tables() -> str:
    """Return the checks as tables in Markdown, one for each kind of input."""
    lines = []
    for kind, checks in CHECKS.items():
        lines += [f"## {kind}", "", "| given | outcome |", "| --- | --- |"]
        for check in checks:
            result = f"“{check.result}”" if check.outcome == REFUSED else check.result
            lines.append(f"| {check.given} | {check.outcome}: {result} |")
        lines.append("")
    return "\n".join(lines)
