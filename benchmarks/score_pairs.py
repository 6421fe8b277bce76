"""Which queries and texts are scored: sentences (A) and passages of 150 words (B)?

They come from collections in the data folder if it exists, otherwise from the docstrings of this
Python and the questions about them that are part of birchbark.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from birchbark.collection.documents import read_collection
from birchbark.collection.parsing.intake import Intake
from birchbark.collection.pydocs import pydocs_queries
from birchbark.collection.queries import read_queries
from birchbark.records import Document, Query, Segment
from birchbark.segment.sentences import sentences
from birchbark.segment.windows import Windows

QUERIES, SHORT, LONG, WORDS = 10, 200, 20, 150
LETTERS = 8  # maximum of the mean number of bytes per word, including the blank
SHORT_FROM, LONG_FROM = "trec-dl19-passage", "cmuqa-long"
Requests = list[tuple[str, list[str]]]  # a query with its texts


@dataclass(frozen=True, slots=True)
class Workloads:
    """The workloads. requests: name → queries with their texts. source: where they come from."""

    requests: dict[str, Requests]
    source: str


def load_workloads(data: Path, share: float, seed: int) -> Workloads:
    """Draw the workloads A and B. share: the share of the texts to use."""
    available = all((data / name / "corpus.jsonl").exists() for name in (SHORT_FROM, LONG_FROM))
    if available:
        queries = read_queries(data / SHORT_FROM / "queries.tsv")
        short, long = (_documents(str(data / n / "corpus.jsonl")) for n in (SHORT_FROM, LONG_FROM))
    else:
        queries = pydocs_queries()
        short = long = _documents("pydocs")
    rng = random.Random(seed)
    windows = Windows(WORDS, 0)
    requests = {
        "A": _requests(queries, short, sentences, max(1, int(SHORT * share)), rng),
        "B": _requests(
            queries, long, lambda d: _full_windows(windows(d)), max(1, int(LONG * share)), rng
        ),
    }
    return Workloads(
        requests, f"{SHORT_FROM}, {LONG_FROM}" if available else "this Python's manuals"
    )


def _documents(name: str) -> list[Document]:
    return [
        document for document, _ in zip(read_collection(name, Intake()), range(6000), strict=False)
    ]


def _full_windows(windows: Iterable[Segment]) -> Iterator[Segment]:
    """Yield windows of full length, except those whose long words a model would truncate."""
    for window in windows:
        if len(window.text.split()) == WORDS and len(window.text.encode()) <= LETTERS * WORDS:
            yield window


def _requests(
    queries: list[Query],
    documents: list[Document],
    cut: Callable[[Document], Iterable[Segment]],
    count: int,
    rng: random.Random,
) -> Requests:
    """Draw `QUERIES` queries with `count` texts each."""
    chosen = rng.sample([query.text for query in queries], QUERIES)
    drawn: list[str] = []
    for document in rng.sample(documents, len(documents)):
        drawn += [segment.text.strip() for segment in cut(document)]
        if len(drawn) >= 4 * count * QUERIES:
            break
    texts = rng.sample(list(dict.fromkeys(drawn)), count * QUERIES)
    return [(query, texts[i * count : (i + 1) * count]) for i, query in enumerate(chosen)]
