"""Which library builds HNSW graphs best, and what does an index of ours make of it?

    python -m benchmarks.nearest --data ../shared/data

Vectors are those of sentences of real collections, by all-MiniLM-L6-v2; queries are sentences that
are not among them. Each library gets the same vectors and parameters, and one thread. Recall is
that of the exact nearest ten. Then an index of as many documents, with graphs and without, before
and after a thousand deletions and additions.
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

from benchmarks.children import say
from benchmarks.first_stage import machine
from birchbark import Document, Index, IndexWriter, build_index, load_scorer
from birchbark.collection.documents import read_collection
from birchbark.collection.intake import Intake
from birchbark.index.attachment_schema import AttachmentSchema, RowForm
from birchbark.retrieve.graphs import Shape, build_graphs
from birchbark.retrieve.nearest import KeptVectors, filtered
from birchbark.segment.sentences import sentences

Floats = NDArray[np.float32]
Nearest = Callable[..., NDArray[Any]]
SOURCES = (
    *("scifact", "trec-dl19-passage", "trec-dl21-passage", "cmuqa-long"),
    *("cranfield", "time", "cacm"),
)
MODEL = "all-MiniLM-L6-v2"
COUNT, QUERIES, CHANGED, TOP = 100_000, 500, 1_000, 10
SEARCHES = (64, 128, 256)
USUAL = Shape()


@dataclass(frozen=True, slots=True)
class Library:
    """A way to find near vectors.

    packages: what it brings. build: writes the vectors' graph to a file. open: a file, the size of
    vectors, and how many are looked at → the places of the nearest.
    """

    name: str
    packages: tuple[str, ...]
    build: Callable[[Floats, Path], None]
    open: Callable[[Path, int, int], Nearest]


def _usearch_build(vectors: Floats, path: Path) -> None:
    from usearch.index import Index as Usearch

    graph = Usearch(
        ndim=vectors.shape[1], metric="cos", dtype="f16", connectivity=USUAL.links,
        expansion_add=USUAL.build,
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
    graph.init_index(len(vectors), M=USUAL.links, ef_construction=USUAL.build)
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
        vectors.shape[1], faiss.ScalarQuantizer.QT_fp16, USUAL.links, faiss.METRIC_INNER_PRODUCT
    )
    graph.hnsw.efConstruction = USUAL.build
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
@click.option("--data", type=click.Path(path_type=Path, exists=True), required=True)
@click.option("--kept", type=click.Path(path_type=Path), help="File that keeps the vectors (.npy).")
@click.option("--count", default=COUNT, show_default=True)
@click.option("--output", type=click.Path(path_type=Path), help="Markdown.  [default: stdout]")
def main(data: Path, kept: Path | None, count: int, output: Path | None) -> None:
    """Measure the libraries that are installed, then an index of ours."""
    vectors = embedded(data, kept, count + QUERIES + CHANGED)
    stored, queries = vectors[:count], vectors[count : count + QUERIES]
    right = exact(stored, queries)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        measured = (library(one, stored, queries, right, place) for one in LIBRARIES)
        rows = [row for found in measured for row in found]
        own = list(index_of_ours(vectors, count, queries, right, place))
    text = "\n".join(report(rows, own, count, vectors.shape[1])) + "\n"
    if output is None:
        click.echo(text, nl=False)
    else:
        output.write_text(text, "utf-8")


def embedded(data: Path, kept: Path | None, count: int) -> Floats:
    """Unit vectors of so many distinct sentences, shuffled by a seed."""
    if kept and kept.exists():
        found: Floats = np.load(kept)[:count]
        return found
    texts = list(islice(_texts(data), 2 * count))
    chosen = [texts[i] for i in np.random.default_rng(0).permutation(len(texts))[:count]]
    if len(chosen) < count:
        raise click.ClickException(f"{len(chosen):,} sentences, {count:,} are needed")
    say(f"embedding {count:,} sentences")
    scorer: Any = load_scorer(MODEL)
    blocks = (scorer.encode(chosen[i : i + 8192]) for i in range(0, count, 8192))
    room = scorer.room("")
    vectors = np.concatenate([scorer.embed([ids[:room] for ids in block]) for block in blocks])
    if kept:
        np.save(kept, vectors)
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
    """Places of the nearest ten, (queries, 10)."""
    return np.argsort(-(queries @ vectors.T), axis=1, kind="stable")[:, :TOP]


def recall(found: Sequence[NDArray[Any]], right: NDArray[Any]) -> float:
    """Share of the nearest ten that are found, mean over queries."""
    return float(np.mean([len(set(f.tolist()) & set(r.tolist())) / TOP
                          for f, r in zip(found, right, strict=True)]))  # fmt: skip


def library(
    one: Library, vectors: Floats, queries: Floats, right: NDArray[Any], folder: Path
) -> Iterator[list[str]]:
    """A row of the table for each number of vectors that are looked at."""
    module = {"faiss-cpu": "faiss"}.get(one.packages[0], one.packages[0])
    if not find_spec(module):
        say(f"{one.name} is not installed")
        return
    say(f"building with {one.name}")
    path, start = folder / one.name, time.perf_counter()
    one.build(vectors, path)
    built = time.perf_counter() - start
    for search in SEARCHES:
        start = time.perf_counter()
        ask = one.open(path, vectors.shape[1], search)
        opened = time.perf_counter() - start
        found, times = timed(partial(ask, count=TOP), queries)
        yield [
            f"{one.name} {version(one.packages[0])}",
            f"{sum(map(installed_size, one.packages)):.0f}",
            f"{built:.0f}",
            f"{path.stat().st_size / 1e6:.0f}",
            f"{1000 * opened:.0f}",
            str(search),
            f"{times:.2f}",
            f"{recall(found, right):.4f}",
        ]


def timed(ask: Callable[[Floats], Any], queries: Floats) -> tuple[list[Any], float]:
    """What is found for each query, and the median of milliseconds; the first round warms up."""
    for query in queries[:50]:
        ask(query)
    found, times = [], []
    for query in queries:
        start = time.perf_counter()
        found.append(ask(query))
        times.append(1000 * (time.perf_counter() - start))
    return found, statistics.median(times)


def installed_size(package: str) -> float:
    """Megabytes of a package's files."""
    paths = [Path(str(file.locate())) for file in files(package) or ()]
    return sum(path.stat().st_size for path in paths if path.is_file()) / 1e6


def index_of_ours(
    vectors: Floats, count: int, queries: Floats, right: NDArray[Any], folder: Path
) -> Iterator[list[str]]:
    """Rows: how an index finds the nearest ten, without graphs, with them, and after changes."""
    place = folder / "index"
    rows = {f"d{n}": vector for n, vector in enumerate(vectors)}
    schema = AttachmentSchema(
        {"of": "benchmark"}, {"vectors": RowForm("float16", vectors.shape[1:])}
    )

    def compute(documents: Sequence[Document]) -> Iterable[Mapping[str, NDArray[Any]]]:
        return ({"vectors": rows[d.doc_id][None].astype(np.float16)} for d in documents)

    def unpack(packed: Mapping[str, NDArray[Any]]) -> Floats:
        return packed["vectors"].astype(np.float32)

    def attach() -> None:
        with IndexWriter(place) as writer:
            writer.attach("vectors", schema, compute)

    def opened() -> KeptVectors:
        index = Index(place)
        attachment = index.attachment("vectors")
        assert attachment is not None
        return KeptVectors.of(index, attachment, unpack)

    def found(exactly: bool, answers: NDArray[Any]) -> tuple[str, str, str]:
        start = time.perf_counter()
        kept = opened()
        seconds = time.perf_counter() - start
        allowed = filtered(kept.index, {})
        search = partial(kept.near, allowed=allowed, count=TOP, exactly=exactly)
        masks, times = timed(search, queries)
        names = [
            np.array([int(name[1:]) for part, mask in zip(kept.index.parts, one, strict=True)
                      for name in part.doc_ids.take(np.flatnonzero(mask))])
            for one in masks
        ]  # fmt: skip
        return f"{1000 * seconds:.0f}", f"{times:.2f}", f"{recall(names, answers):.4f}"

    def link() -> str:
        kept, start = opened(), time.perf_counter()
        made = build_graphs(kept.index, kept.attachment, unpack)
        return f"{time.perf_counter() - start:.0f} s for {made}"

    say("an index of ours")
    build_index((Document(f"d{n}", {"text": "x"}) for n in range(count)), place)
    attach()
    yield ["exact, no graph", "–", *found(True, right)]
    yield ["graphs", link(), *found(False, right)]
    with IndexWriter(place) as writer:
        for n in range(CHANGED):
            writer.delete(f"d{n}")
        for n in range(count + QUERIES, count + QUERIES + CHANGED):
            writer.add(Document(f"d{n}", {"text": "x"}))
    attach()
    now = np.concatenate([np.arange(CHANGED, count), np.arange(count + QUERIES, len(vectors))])
    answers = now[exact(vectors[now], queries)]
    changed = f"after {CHANGED:,} deleted and {CHANGED:,} added"
    yield [changed, "–", *found(False, answers)]
    with IndexWriter(place) as writer:
        writer.merge()
    yield ["merged, graphs anew", link(), *found(False, answers)]


def report(
    rows: Sequence[list[str]], own: Sequence[list[str]], count: int, hidden: int
) -> Iterator[str]:
    """Markdown."""
    here = machine()
    yield "<!-- Made by benchmarks/nearest.py; not to be edited. -->"
    yield "# The nearest of many vectors"
    yield ""
    yield (
        f"{here['processor']}, {here['memory_gb']} GB; Python {here['python']}, numpy "
        f"{here['numpy']}. {count:,} sentences of real collections as vectors of {hidden} numbers "
        f"by {MODEL}, {QUERIES} others as queries. One thread. {USUAL.links} links a vector, "
        f"{USUAL.build} looked at to add one. Recall is that of the exact nearest {TOP}."
    )
    yield ""
    head = ["library", "MB installed", "built in s", "MB on disk", "opened in ms"]
    yield from _table([*head, "looked at", "ms a query", f"recall@{TOP}"], rows)
    yield ""
    yield (
        f"An index of ours with the same vectors in 16 bits, a document each, {USUAL.search} "
        "looked at. Opening reads every byte of the graphs once, to check them."
    )
    yield ""
    yield from _table(
        ["index", "graphs made in", "opened in ms", "ms a query", f"recall@{TOP}"], own
    )


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    for line in (head, ["---", *["---:"] * (len(head) - 1)], *rows):
        yield "| " + " | ".join(line) + " |"


if __name__ == "__main__":
    main()
