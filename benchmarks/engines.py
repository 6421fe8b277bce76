"""Which first-stage engines are measured, and how does each build, open and search?

An engine consists mainly of two functions. `build` takes (id, text) pairs, analyzes the raw text,
and returns when the index is on disk. `open` returns search functions. Peers are imported on use,
so that birchbark can be measured without them.
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
class OpenIndex:
    """An open index.

    analyse: a word of a query → its terms. searches: name → search function. The functions differ
    in how hits identify documents; the first is the fastest. Hits are Python objects, best first.
    """

    analyse: Callable[[str], list[str]]
    searches: Mapping[str, Search]


@dataclass(frozen=True, slots=True)
class Engine:
    """A way to build and open an index.

    package: the name of the Python package. load: imports the modules that `build` and `open` need,
    so that imports are not timed. build: directory, pairs → figures to record. searches: the names
    of the search functions. weighted: whether query terms can have weights.
    """

    name: str
    package: str
    load: Callable[[], object]
    build: Callable[[Path, Pairs], dict[str, Any]]
    open: Callable[[Path], OpenIndex]
    searches: tuple[str, ...]
    weighted: bool = True

    @property
    def installed(self) -> bool:
        """Whether its package is installed."""
        return find_spec(self.package) is not None

    @property
    def version(self) -> str:
        """The version of its package."""
        return version(self.package)


def _birchbark_load() -> object:
    import birchbark.index.build_index
    import birchbark.retrieve.first_stage

    return birchbark.retrieve.first_stage


def _birchbark_build(directory: Path, pairs: Pairs) -> dict[str, Any]:
    from birchbark.index.build_index import Schema, build_index
    from birchbark.records import Document

    build_index((Document(i, {"text": text}) for i, text in pairs), directory, Schema("english"))
    return {}


def _birchbark_open(directory: Path) -> OpenIndex:
    from birchbark.index.index import Index
    from birchbark.retrieve.first_stage import FirstStage, rank_query

    index, stage = Index(directory), FirstStage()

    def search(weights: Weights, k: int) -> list[tuple[Any, float]]:
        return list(rank_query(index, weights, stage, k))

    return OpenIndex(lambda word: index.analyzer.terms(word), {"doc_ids": search})


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
    for token_filter in filters:
        builder = builder.filter(token_filter)
    return builder.build()


def _tantivy_build(directory: Path, pairs: Pairs) -> dict[str, Any]:
    """Index frequencies without positions, stored ids, and numbers as a fast field; one thread."""
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


def _tantivy_open(directory: Path) -> OpenIndex:
    import tantivy
    from tantivy import Occur, Query

    index = tantivy.Index.open(str(directory))
    searcher, schema, analyzer = index.searcher(), index.schema, _tantivy_analyzer()

    def hits(weights: Weights, k: int) -> list[tuple[float, Any]]:
        clauses = []
        for term, weight in weights.items():
            clause = Query.term_query(schema, "body", term, "freq")
            clauses.append((Occur.Should, _boosted(clause, weight)))
        result: list[tuple[float, Any]] = searcher.search(
            Query.boolean_query(clauses), k, count=False
        ).hits
        return result

    def addresses(weights: Weights, k: int) -> list[tuple[Any, float]]:
        return [(address, score) for score, address in hits(weights, k)]

    def numbers(weights: Weights, k: int) -> list[tuple[Any, float]]:
        ranked = hits(weights, k)
        values = searcher.fast_field_values("number", [address for _, address in ranked])
        return [(number, score) for number, (score, _) in zip(values, ranked, strict=True)]

    def doc_ids(weights: Weights, k: int) -> list[tuple[Any, float]]:
        return [(searcher.doc(a).get_first("id"), score) for score, a in hits(weights, k)]

    searches = {"addresses": addresses, "fast numbers": numbers, "stored ids": doc_ids}
    return OpenIndex(analyzer.analyze, searches)


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
    """Index with bm25s's tokeniser and stop words, PyStemmer, and our k1 and b; store no texts."""
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
    nonzero = frequencies[frequencies > 0]
    return {
        "terms": len(nonzero),
        "postings": int(nonzero.sum()),
        "singletons": float((nonzero == 1).mean()),
        "df_quantiles": {
            q: int(np.quantile(nonzero, float(q))) for q in (".5", ".9", ".99", ".999")
        },
        "df_most": int(nonzero[-1]),
    }


def _bm25s_open(directory: Path) -> OpenIndex:
    import bm25s
    import Stemmer

    retriever = bm25s.BM25.load(str(directory), show_progress=False)
    stem = Stemmer.Stemmer("english").stemWord
    stop_words = set(bm25s.stopwords.STOPWORDS_EN)

    def analyse(word: str) -> list[str]:
        tokens = _BM25S_WORD.findall(word.lower())
        return [stem(token) for token in tokens if token not in stop_words]

    def search(weights: Weights, k: int) -> list[tuple[Any, float]]:
        terms = retriever.get_tokens_ids(list(weights))
        if not terms:
            return []
        limit = min(k, retriever.scores["num_docs"])
        hits = retriever.retrieve([terms], k=limit, show_progress=False)
        return list(zip(hits.documents[0].tolist(), hits.scores[0].tolist(), strict=True))

    return OpenIndex(analyse, {"numbers": search})


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
