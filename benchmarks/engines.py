"""Which engines are measured, and how does each build, open and search?

An engine is a value of two functions. `build` takes (id, text) pairs, does the whole analysis of
raw text itself, and returns when the index is on disk; `open` gives functions that search. Peers
are imported when they are used, so that birchbark can be measured where they are not installed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

Pairs = Iterator[tuple[str, str]]
Weights = Mapping[str, float]
Search = Callable[[Weights, int], list[tuple[Any, float]]]


@dataclass(frozen=True, slots=True)
class Opened:
    """An index that is open.

    analyse: a word of a query → its terms. searches: name → search; they differ in what stands for
    a document in the hits, the first one being the fastest. Hits are Python objects, best first.
    """

    analyse: Callable[[str], list[str]]
    searches: Mapping[str, Search]


@dataclass(frozen=True, slots=True)
class Engine:
    """A way to build and open an index.

    build: directory, pairs → facts worth keeping. load: imports what `build` and `open` need, so
    that this is not counted. weighted: whether terms of a query can have weights.
    """

    name: str
    package: str
    load: Callable[[], object]
    build: Callable[[Path, Pairs], dict[str, Any]]
    open: Callable[[Path], Opened]
    searches: tuple[str, ...]
    weighted: bool = True

    @property
    def installed(self) -> bool:
        """Whether it can be measured here."""
        return find_spec(self.package) is not None

    @property
    def version(self) -> str:
        """Of its package."""
        return version(self.package)


def _birchbark_load() -> object:
    import birchbark.index.build
    import birchbark.retrieve.first_stage

    return birchbark.retrieve.first_stage


def _birchbark_build(directory: Path, pairs: Pairs) -> dict[str, Any]:
    from birchbark.index.build import Schema, build_index
    from birchbark.records import Document

    build_index((Document(i, {"text": text}) for i, text in pairs), directory, Schema("english"))
    return {}


def _birchbark_open(directory: Path) -> Opened:
    from birchbark.index.reader import Index
    from birchbark.retrieve.first_stage import FirstStage, rank_query

    index, stage = Index(directory), FirstStage()

    def search(weights: Weights, k: int) -> list[tuple[Any, float]]:
        return list(rank_query(index, weights, stage, k))

    return Opened(lambda word: index.analyzer.terms(word), {"doc_ids": search})


def _tantivy_load() -> object:
    import tantivy

    return tantivy


def _tantivy_analyzer() -> Any:
    from tantivy import Filter, TextAnalyzerBuilder, Tokenizer

    filters = [
        Filter.remove_long(255),
        Filter.lowercase(),
        Filter.stopword("english"),
        Filter.stemmer("english"),
    ]
    builder = TextAnalyzerBuilder(Tokenizer.simple())
    for each in filters:
        builder = builder.filter(each)
    return builder.build()


def _tantivy_build(directory: Path, pairs: Pairs) -> dict[str, Any]:
    """Frequencies without positions, the id stored, a number as a fast field; one thread."""
    import tantivy

    schema = tantivy.SchemaBuilder()
    schema.add_text_field("body", tokenizer_name="body", index_option="freq")
    schema.add_text_field("id", stored=True, tokenizer_name="raw", index_option="basic")
    schema.add_integer_field("number", fast=True)
    directory.mkdir(parents=True)
    index = tantivy.Index(schema.build(), path=str(directory))
    index.register_tokenizer("body", _tantivy_analyzer())
    writer = index.writer(num_threads=1)
    for number, (doc_id, text) in enumerate(pairs):
        writer.add_document(tantivy.Document(body=text, id=doc_id, number=number))
    writer.commit()
    writer.wait_merging_threads()
    index.reload()
    return {"segments": index.searcher().num_segments}


def _tantivy_open(directory: Path) -> Opened:
    import tantivy
    from tantivy import Occur, Query

    index = tantivy.Index.open(str(directory))
    searcher, schema, analyzer = index.searcher(), index.schema, _tantivy_analyzer()

    def hits(weights: Weights, k: int) -> list[tuple[float, Any]]:
        clauses = []
        for term, weight in weights.items():
            clause = Query.term_query(schema, "body", term, "freq")
            clauses.append((Occur.Should, _boosted(clause, weight)))
        found: list[tuple[float, Any]] = searcher.search(
            Query.boolean_query(clauses), k, count=False
        ).hits
        return found

    def addresses(weights: Weights, k: int) -> list[tuple[Any, float]]:
        return [(address, score) for score, address in hits(weights, k)]

    def numbers(weights: Weights, k: int) -> list[tuple[Any, float]]:
        found = hits(weights, k)
        read = searcher.fast_field_values("number", [address for _, address in found])
        return [(number, score) for number, (score, _) in zip(read, found, strict=True)]

    def doc_ids(weights: Weights, k: int) -> list[tuple[Any, float]]:
        return [(searcher.doc(a).get_first("id"), score) for score, a in hits(weights, k)]

    searches = {"addresses": addresses, "fast numbers": numbers, "stored ids": doc_ids}
    return Opened(analyzer.analyze, searches)


def _boosted(clause: Any, weight: float) -> Any:
    from tantivy import Query

    return clause if weight == 1 else Query.boost_query(clause, weight)


_BM25S_WORD = re.compile(r"(?u)\b\w\w+\b")


def _bm25s_load() -> object:
    import bm25s
    import numba
    import Stemmer

    return bm25s, numba, Stemmer


def _bm25s_build(directory: Path, pairs: Pairs) -> dict[str, Any]:
    """Its own Tokenizer and stop words with PyStemmer; k1 and b as birchbark's; no texts kept."""
    import bm25s
    import numpy as np
    import Stemmer

    tokenizer = bm25s.tokenization.Tokenizer(stemmer=Stemmer.Stemmer("english"))
    stream = tokenizer.tokenize((text for _, text in pairs), return_as="stream")
    ids = list(stream)
    retriever = bm25s.BM25(k1=0.9, b=0.4, backend="numba")
    retriever.index((ids, tokenizer.get_vocab_dict()), show_progress=False)
    retriever.save(str(directory), show_progress=False)
    frequencies = np.sort(np.diff(retriever.scores["indptr"]))
    held = frequencies[frequencies > 0]
    return {
        "terms": len(held),
        "postings": int(held.sum()),
        "singletons": float((held == 1).mean()),
        "df_quantiles": {q: int(np.quantile(held, float(q))) for q in (".5", ".9", ".99", ".999")},
        "df_most": int(held[-1]),
    }


def _bm25s_open(directory: Path) -> Opened:
    import bm25s
    import Stemmer

    retriever = bm25s.BM25.load(str(directory), show_progress=False)
    stem = Stemmer.Stemmer("english").stemWord
    stop_words = set(bm25s.stopwords.STOPWORDS_EN)

    def analyse(word: str) -> list[str]:
        found = _BM25S_WORD.findall(word.lower())
        return [stem(token) for token in found if token not in stop_words]

    def search(weights: Weights, k: int) -> list[tuple[Any, float]]:
        terms = retriever.get_tokens_ids(list(weights))
        if not terms:
            return []
        most = min(k, retriever.scores["num_docs"])
        hits = retriever.retrieve([terms], k=most, show_progress=False)
        return list(zip(hits.documents[0].tolist(), hits.scores[0].tolist(), strict=True))

    return Opened(analyse, {"numbers": search})


ENGINES = {
    engine.name: engine
    for engine in (
        Engine(
            "birchbark",
            "birchbark",
            _birchbark_load,
            _birchbark_build,
            _birchbark_open,
            ("doc_ids",),
        ),
        Engine(
            "tantivy",
            "tantivy",
            _tantivy_load,
            _tantivy_build,
            _tantivy_open,
            ("addresses", "fast numbers", "stored ids"),
        ),
        Engine(
            "bm25s",
            "bm25s",
            _bm25s_load,
            _bm25s_build,
            _bm25s_open,
            ("numbers",),
            weighted=False,
        ),
    )
}
