"""Which library is best for HNSW graphs, and how fast is vector search in our index?

    python -m benchmarks.nearest --data ../shared/data

The vectors are embeddings by all-MiniLM-L6-v2 of sentences from real collections; queries are other
sentences. Each library gets the same vectors and parameters, and one thread. Recall is relative to
the exact nearest ten. Then an index of the same number of documents is measured, with and without
graphs, before and after a thousand deletions and additions.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import files, version
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from benchmarks.children import DATA, say
from benchmarks.first_stage import machine
from birchbark import Document, Index, IndexWriter, build_index, load_scorer
from birchbark.collection.documents import read_collection
from birchbark.collection.parsing.intake import Intake
from birchbark.index.attachment_schema import AttachmentSchema, RowForm
from birchbark.retrieve.hnsw import SHAPE, build_graphs
from birchbark.retrieve.vector_search import StoredVectors, filter_masks
from birchbark.score.vector_quantization import inner_products
from birchbark.segment.sentences import sentences

Floats = NDArray[np.float32]
Nearest = Callable[..., NDArray[Any]]
SOURCES = (
    *("scifact", "trec-dl19-passage", "trec-dl21-passage", "cmuqa-long"),
    *("cranfield", "time", "cacm"),
)
MODEL = "all-MiniLM-L6-v2"
COUNT, QUERIES, CHANGED, TOP = 100_000, 500, 1_000, 10
MIN_VECTORS = 20_000  # of a graph; fewer than the default, for which exact search is fast
SEARCHES = (64, 128, 256)


@dataclass(frozen=True, slots=True)
class Library:
    """A library for approximate nearest neighbours.

    packages: the packages that it installs. build: writes a graph of the vectors to a file. open:
    file, dimension, candidates examined per search → a function that takes a query and a count and
    returns the positions of the nearest vectors.
    """

    name: str
    packages: tuple[str, ...]
    build: Callable[[Floats, Path], None]
    open: Callable[[Path, int, int], Nearest]


def _usearch_build(vectors: Floats, path: Path) -> None:
    from usearch.index import Index as Usearch

    graph = Usearch(
        ndim=vectors.shape[1], metric="cos", dtype="f16", connectivity=SHAPE["links"],
        expansion_add=SHAPE["build"],
    )  # fmt: skip
    graph.add(np.arange(len(vectors)), vectors, threads=1)
    graph.save(str(path))


def _usearch_open(path: Path, hidden: int, search: int) -> Nearest:
    from usearch.index import Index as Usearch

    graph: Any = Usearch.restore(str(path), view=True)
    graph.expansion_search = search
    return lambda query, count: graph.search(query, count, threads=1).keys


def _hnswlib_build(vectors: Floats, path: Path) -> None:
    import hnswlib

    graph = hnswlib.Index("cosine", vectors.shape[1])
    graph.init_index(len(vectors), M=SHAPE["links"], ef_construction=SHAPE["build"])
    graph.add_items(vectors, num_threads=1)
    graph.save_index(str(path))


def _hnswlib_open(path: Path, hidden: int, search: int) -> Nearest:
    import hnswlib

    graph = hnswlib.Index("cosine", hidden)
    graph.load_index(str(path))
    graph.set_ef(search)
    graph.set_num_threads(1)
    return lambda query, count: graph.knn_query(query, count)[0][0]


def _faiss_build(vectors: Floats, path: Path) -> None:
    import faiss

    faiss.omp_set_num_threads(1)
    graph = faiss.IndexHNSWSQ(
        vectors.shape[1], faiss.ScalarQuantizer.QT_fp16, SHAPE["links"], faiss.METRIC_INNER_PRODUCT
    )
    graph.hnsw.efConstruction = SHAPE["build"]
    graph.train(vectors[:1000])
    graph.add(vectors)
    faiss.write_index(graph, str(path))


def _faiss_open(path: Path, hidden: int, search: int) -> Nearest:
    import faiss

    faiss.omp_set_num_threads(1)
    graph = faiss.read_index(str(path), faiss.IO_FLAG_MMAP)
    graph.hnsw.efSearch = search
    return lambda query, count: graph.search(query[None], count)[1][0]


LIBRARIES = (
    Library("usearch", ("usearch", "numkong"), _usearch_build, _usearch_open),
    Library("hnswlib", ("hnswlib",), _hnswlib_build, _hnswlib_open),
    Library("faiss", ("faiss-cpu",), _faiss_build, _faiss_open),
)


@click.command()
@click.option("--data", type=click.Path(path_type=Path), default=DATA, show_default=True)
@click.option("--vectors", "cache", type=click.Path(path_type=Path), help="Cache of vectors, .npy.")
@click.option("--count", default=COUNT, show_default=True)
@click.option("--output", type=click.Path(path_type=Path), help="Markdown.  [default: stdout]")
def main(data: Path, cache: Path | None, count: int, output: Path | None) -> None:
    """Measure the installed libraries, then our index."""
    vectors = embed_sentences(data, cache, count + QUERIES + CHANGED)
    stored, queries = vectors[:count], vectors[count : count + QUERIES]
    answers = exact(stored, queries)
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder)
        rows = [
            row
            for library in LIBRARIES
            for row in measure_library(library, stored, queries, answers, directory)
        ]
        index_rows = list(measure_index(vectors, count, queries, answers, directory))
    text = "\n".join(report(rows, index_rows, count, vectors.shape[1])) + "\n"
    if output is None:
        click.echo(text, nl=False)
    else:
        output.write_text(text, "utf-8")


def embed_sentences(data: Path, cache: Path | None, count: int) -> Floats:
    """Return unit vectors of `count` distinct sentences, shuffled with a fixed seed."""
    if cache and cache.exists():
        cached: Floats = np.load(cache)[:count]
        return cached
    texts = list(islice(_texts(data), 2 * count))
    chosen = [texts[i] for i in np.random.default_rng(0).permutation(len(texts))[:count]]
    if len(chosen) < count:
        raise click.ClickException(f"{len(chosen):,} sentences found, {count:,} needed")
    say(f"embedding {count:,} sentences")
    scorer: Any = load_scorer(MODEL)
    blocks = (scorer.encode(chosen[i : i + 8192]) for i in range(0, count, 8192))
    token_budget = scorer.token_budget("")
    vectors = np.concatenate(
        [scorer.embed([ids[:token_budget] for ids in block]) for block in blocks]
    )
    if cache:
        np.save(cache, vectors)
    return vectors


def _texts(data: Path) -> Iterator[str]:
    seen: set[str] = set()
    for name in SOURCES:
        for document in read_collection(str(data / name / "corpus.jsonl"), Intake()):
            for segment in sentences(document):
                text = segment.text.strip()
                if len(text) > 20 and text not in seen:
                    seen.add(text)
                    yield text


def exact(vectors: Floats, queries: Floats) -> NDArray[Any]:
    """Return the positions of the exactly nearest ten vectors, (queries, 10)."""
    return np.argsort(-(queries @ vectors.T), axis=1, kind="stable")[:, :TOP]


def recall(found: Sequence[NDArray[Any]], answers: NDArray[Any]) -> float:
    """Return the share of the nearest ten vectors that were found, averaged over the queries."""
    return float(np.mean([len(set(f.tolist()) & set(r.tolist())) / TOP
                          for f, r in zip(found, answers, strict=True)]))  # fmt: skip


def measure_library(
    library: Library, vectors: Floats, queries: Floats, answers: NDArray[Any], folder: Path
) -> Iterator[list[str]]:
    """Yield a row of the table for each number of candidates examined."""
    module = {"faiss-cpu": "faiss"}.get(library.packages[0], library.packages[0])
    if not find_spec(module):
        say(f"{library.name} is not installed")
        return
    say(f"building with {library.name}")
    path, start = folder / library.name, time.perf_counter()
    library.build(vectors, path)
    built = time.perf_counter() - start
    for search in SEARCHES:
        start = time.perf_counter()
        ask = library.open(path, vectors.shape[1], search)
        opened = time.perf_counter() - start
        results, times = timed(partial(ask, count=TOP), queries)
        yield [
            f"{library.name} {version(library.packages[0])}",
            f"{sum(map(installed_size, library.packages)):.0f}",
            f"{built:.0f}",
            f"{path.stat().st_size / 1e6:.0f}",
            f"{1000 * opened:.0f}",
            str(search),
            f"{times:.2f}",
            f"{recall(results, answers):.4f}",
        ]


def timed(ask: Callable[[Floats], Any], queries: Floats) -> tuple[list[Any], float]:
    """Return the result of each query, and the median milliseconds, after a warm-up."""
    for query in queries[:50]:
        ask(query)
    results, times = [], []
    for query in queries:
        start = time.perf_counter()
        results.append(ask(query))
        times.append(1000 * (time.perf_counter() - start))
    return results, statistics.median(times)


def installed_size(package: str) -> float:
    """Return the size of a package's files in MB."""
    paths = [Path(str(file.locate())) for file in files(package) or ()]
    return sum(path.stat().st_size for path in paths if path.is_file()) / 1e6


def measure_index(
    vectors: Floats, count: int, queries: Floats, answers: NDArray[Any], folder: Path
) -> Iterator[list[str]]:
    """Yield rows for our index: without graphs, with graphs, and after changes."""
    path = folder / "index"
    rows = {f"d{n}": vector for n, vector in enumerate(vectors)}
    schema = AttachmentSchema(
        {"of": "benchmark"}, {"vectors": RowForm("float16", vectors.shape[1:])}
    )

    def compute(documents: Sequence[Document]) -> Iterable[Mapping[str, NDArray[Any]]]:
        return ({"vectors": rows[d.doc_id][None].astype(np.float16)} for d in documents)

    def decode(stored: Mapping[str, NDArray[Any]]) -> Floats:
        return stored["vectors"].astype(np.float32)

    def attach() -> None:
        with IndexWriter(path) as writer:
            writer.attach("vectors", schema, compute)

    def open_vectors() -> StoredVectors:
        index = Index(path)
        attachment = index.attachment("vectors")
        assert attachment is not None
        return StoredVectors.of(index, attachment, inner_products)

    def measure(exactly: bool, answers: NDArray[Any]) -> tuple[str, str, str]:
        start = time.perf_counter()
        stored = open_vectors()
        seconds = time.perf_counter() - start
        allowed = filter_masks(stored.index, {})
        search = partial(stored.nearest_documents, allowed=allowed, count=TOP, exactly=exactly)
        masks, times = timed(search, queries)
        names = [
            np.array([int(name[1:]) for part, mask in zip(stored.index.parts, of_query, strict=True)
                      for name in part.doc_ids.take(np.flatnonzero(mask))])
            for of_query in masks
        ]  # fmt: skip
        return f"{1000 * seconds:.0f}", f"{times:.2f}", f"{recall(names, answers):.4f}"

    def link() -> str:
        stored, start = open_vectors(), time.perf_counter()
        graphs = build_graphs(stored.index, stored.attachment, decode, min_vectors=MIN_VECTORS)
        return f"{time.perf_counter() - start:.0f} s for {graphs}"

    say("our index")
    build_index((Document(f"d{n}", {"text": "x"}) for n in range(count)), path)
    attach()
    yield ["exact, no graph", "–", *measure(True, answers)]
    yield ["graphs", link(), *measure(False, answers)]
    with IndexWriter(path) as writer:
        for n in range(CHANGED):
            writer.delete(f"d{n}")
        for n in range(count + QUERIES, count + QUERIES + CHANGED):
            writer.add(Document(f"d{n}", {"text": "x"}))
    attach()
    current = np.concatenate([np.arange(CHANGED, count), np.arange(count + QUERIES, len(vectors))])
    answers = current[exact(vectors[current], queries)]
    changed = f"after {CHANGED:,} deleted and {CHANGED:,} added"
    yield [changed, "–", *measure(False, answers)]
    with IndexWriter(path) as writer:
        writer.merge()
    yield ["merged, graphs rebuilt", link(), *measure(False, answers)]


def report(
    rows: Sequence[list[str]], index_rows: Sequence[list[str]], count: int, hidden: int
) -> Iterator[str]:
    """Yield the lines of the report in Markdown."""
    here = machine()
    yield "<!-- Made by benchmarks/nearest.py; do not edit. -->"
    yield "# The nearest of many vectors"
    yield ""
    yield (
        f"{here['processor']}, {here['memory_gb']} GB; Python {here['python']}, numpy "
        f"{here['numpy']}. {count:,} sentences of real collections as vectors of {hidden} "
        f"numbers by {MODEL}, {QUERIES} others as queries. One thread. {SHAPE['links']} links a "
        f"vector (M), {SHAPE['build']} candidates examined to add one (efConstruction). Recall is "
        f"relative to the exact nearest {TOP}."
    )
    yield ""
    head = ["library", "MB installed", "built in s", "MB on disk", "opened in ms"]
    yield from _table([*head, "examined (efSearch)", "ms a query", f"recall@{TOP}"], rows)
    yield ""
    yield (
        f"Our index with the same vectors in 16 bits, one document each, efSearch "
        f"{SHAPE['search']}. Opening reads every byte of the graphs once, to verify the checksum."
    )
    yield ""
    yield from _table(
        ["index", "graphs built in", "opened in ms", "ms a query", f"recall@{TOP}"], index_rows
    )


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    for line in (head, ["---", *["---:"] * (len(head) - 1)], *rows):
        yield "| " + " | ".join(line) + " |"


if __name__ == "__main__":
    main()
