"""How long does a search of a million documents take, without stored vectors?

The documents are those of the first-stage benchmark (text.py), the queries five words of a document
each (queries.py).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.children import say
from benchmarks.prepare import prepare_queries, prepare_text
from benchmarks.search_models import Models
from benchmarks.search_rows import BM25, Row, rows
from benchmarks.search_times import TimedSearch
from birchbark import Query, build_index
from birchbark.collection.documents import read_collection
from birchbark.index.shards import is_index
from birchbark.segment.sentences import sentences

Figures = dict[str, Any]
SEED, QUERIES = 1, 100


def measure_million(documents: int, data: Path, work: Path, seconds: float) -> Figures:
    """Return the times of BM25 and of the default plan, and how many documents there are.

    data: prose to draw the documents from, if the folder exists. seconds: see TimedSearch.
    """
    folder = work / f"documents-{documents}"
    folder.mkdir(parents=True, exist_ok=True)
    text, made = prepare_text(work, documents, SEED, data if data.is_dir() else None)
    index = folder / "birchbark"
    if not is_index(index):
        say(f"indexing {documents:,} documents")
        build_index(read_collection(str(text)), index)
    queries = _queries(prepare_queries(text, folder, documents, QUERIES, SEED))
    figures: Figures = {}
    for row in (BM25, *_default_rows()):
        say(f"{documents:,} documents: {row.name}")
        timed = TimedSearch(row, index, Models(), sentences, seconds)
        figures[row.name] = timed.new_documents(queries)
    return {"documents": documents, "source": made["source"], "rows": figures}


def _default_rows() -> Iterator[Row]:
    """Yield the rows of the default plan without stored vectors, in each precision."""
    return (row for row in rows() if row.is_default and not row.vectors)


def _queries(path: Path) -> list[Query]:
    return [
        Query(str(number), " ".join(query["five"]))
        for number, query in enumerate(json.loads(path.read_text()))
    ]
