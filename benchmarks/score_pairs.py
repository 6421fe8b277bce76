"""Which texts are scored? Real queries with real sentences (A) and passages of 150 words (B).

From the collections in a data folder where it is, else from this Python's documentation and the
questions about it that birchbark brings.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from birchbark.collection.documents import read_collection
from birchbark.collection.intake import Intake
from birchbark.collection.pydocs import pydocs_queries
from birchbark.collection.queries import read_queries
from birchbark.records import Document, Query, Segment
from birchbark.segment.sentences import sentences
from birchbark.segment.windows import Windows

QUERIES, SHORT, LONG, WORDS = 10, 200, 20, 150
LETTERS = 8  # of a word and its blank, at most, on average
SHORT_FROM, LONG_FROM = "trec-dl19-passage", "cmuqa-long"
Requests = list[tuple[str, list[str]]]  # a query with its texts


@dataclass(frozen=True, slots=True)
class Workloads:
    """Name → requests, and where their texts are from."""

    requests: dict[str, Requests]
    source: str


def load_workloads(data: Path, share: float, seed: int) -> Workloads:
    """A and B; share: of the texts, for a quick look."""
    here = all((data / name / "corpus.jsonl").exists() for name in (SHORT_FROM, LONG_FROM))
    if here:
        asked = read_queries(data / SHORT_FROM / "queries.tsv")
        short, long = (_documents(str(data / n / "corpus.jsonl")) for n in (SHORT_FROM, LONG_FROM))
    else:
        asked, short, long = pydocs_queries(), _documents("pydocs"), _documents("pydocs")
    chance = random.Random(seed)
    windows = Windows(WORDS, 0)
    requests = {
        "A": _requests(asked, short, sentences, max(1, int(SHORT * share)), chance),
        "B": _requests(
            asked, long, lambda d: _whole(windows(d)), max(1, int(LONG * share)), chance
        ),
    }
    return Workloads(requests, f"{SHORT_FROM}, {LONG_FROM}" if here else "this Python's manuals")


def _documents(name: str) -> list[Document]:
    return [found for found, _ in zip(read_collection(name, Intake()), range(6000), strict=False)]


def _whole(windows: Iterable[Segment]) -> Iterator[Segment]:
    """Those of full length, but for formulas and foreign names, which no model reads whole."""
    for window in windows:
        if len(window.text.split()) == WORDS and len(window.text.encode()) <= LETTERS * WORDS:
            yield window


def _requests(
    asked: list[Query],
    documents: list[Document],
    cut: Callable[[Document], Iterable[Segment]],
    count: int,
    chance: random.Random,
) -> Requests:
    """`QUERIES` queries with `count` texts each, drawn from all documents."""
    queries = chance.sample([query.text for query in asked], QUERIES)
    drawn: list[str] = []
    for document in chance.sample(documents, len(documents)):
        drawn += [segment.text.strip() for segment in cut(document)]
        if len(drawn) >= 4 * count * QUERIES:
            break
    texts = chance.sample(list(dict.fromkeys(drawn)), count * QUERIES)
    return [(query, texts[i * count : (i + 1) * count]) for i, query in enumerate(queries)]
