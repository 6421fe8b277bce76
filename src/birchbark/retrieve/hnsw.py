"""How does an HNSW graph find the nearest of many vectors without comparing all of them?

The algorithm is that of Malkov & Yashunin (2018), in faiss's implementation. Each graph covers one
folder of an attachment's rows and is stored beside it. Since folders never change, a changed index
needs graphs only for its new folders. An index without graphs is searched exactly, but more slowly.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from numpy.typing import NDArray

from birchbark.artifact import delete_abandoned, fingerprint, new_directory
from birchbark.errors import ArtifactError, MissingPackageError
from birchbark.index.attachment_reader import Attachment, Numbers, RowFolder
from birchbark.index.index import Index
from birchbark.records import Float32s

MIN_VECTORS = 200_000  # exact search of 100,000 takes 6 ms (benchmarks/RESULTS-NEAREST.md)
BATCH = 4_096  # vectors added between two calls of `advance`
FILE, ABOUT = "graph.faiss", "about.json"
# Neighbours per vector and layer (M); candidates examined to add a vector (efConstruction); the
# minimum number of candidates that a search examines (efSearch).
SHAPE = {"links": 16, "build": 128, "search": 128}
REMEDY = "remove that folder; `birchbark index attach` builds the graph again"

DecodeVectors = Callable[[Mapping[str, NDArray[Any]]], Float32s]
Advance = Callable[[int], object]
_in_use: WeakValueDictionary[tuple[int, ...], HnswGraph] = WeakValueDictionary()  # by their files


class HnswGraph:
    """The graph of one folder, memory-mapped."""

    def __init__(self, folder: Path) -> None:
        """Open the graph in `folder`; ArtifactError if it is damaged."""
        import faiss

        try:
            about = json.loads((folder / ABOUT).read_text("utf-8"))
            if fingerprint(folder / FILE) != about["checksum"]:
                raise ValueError("its checksum is wrong")
            self._graph = faiss.read_index(str(folder / FILE), faiss.IO_FLAG_MMAP)
            self._min_search = int(about["shape"]["search"])
        except (OSError, ValueError, KeyError, TypeError, RuntimeError) as error:
            raise ArtifactError(
                f"damaged graph: {error}", where=str(folder), remedy=REMEDY
            ) from error

    def nearest(self, query: Float32s, count: int) -> Numbers:
        """Return the numbers of the rows nearest to the unit vector `query`: `count` or fewer."""
        import faiss

        parameters = faiss.SearchParametersHNSW(efSearch=max(self._min_search, count))
        rows: Numbers = self._graph.search(query[None], count, params=parameters)[1][0]
        return rows[rows >= 0]  # faiss pads with −1


def faiss_installed() -> bool:
    """Return whether graphs can be built and searched."""
    return find_spec("faiss") is not None


def open_graphs(attachment: Attachment) -> dict[Path, HnswGraph]:
    """Return folder of rows → graph, for each folder that has one; empty without faiss."""
    folders = [rows.path for rows in _row_folders(attachment)] if faiss_installed() else []
    graphs = dict[Path, HnswGraph]()
    for folder in folders:
        path = _graph_folder(folder)
        if path.is_dir():
            try:
                graphs[folder] = _open(path)
            except ArtifactError:
                if path.is_dir():
                    raise  # otherwise a writer has just removed it: the rows are read instead
    return graphs


def _open(folder: Path) -> HnswGraph:
    """Open the graph in `folder`, or return the one in use: the checksum reads the whole file."""
    try:
        status = (folder / FILE).stat()
    except OSError:
        return HnswGraph(folder)  # raises ArtifactError
    identity = status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size
    graph = _in_use.get(identity)
    if graph is None:
        graph = _in_use[identity] = HnswGraph(folder)
    return graph


def build_graphs(
    index: Index,
    attachment: Attachment,
    decode: DecodeVectors,
    advance: Advance = lambda vectors: None,
    *,
    min_vectors: int = MIN_VECTORS,
) -> int:
    """Build the missing graphs of an attachment; return how many were built.

    A folder needs a graph if it has at least `min_vectors` vectors. A graph appears complete or not
    at all; one that another program has built meanwhile is the same, and replaced. The index need
    not be locked; `IndexWriter` deletes a graph with its folder.

    decode: stored rows → unit vectors, float32 (rows, hidden). advance: called with the number of
    vectors added since the last call. Raises MissingPackageError if faiss is not installed, and
    OSError if a writer removes the folder meanwhile.
    """
    if not faiss_installed():
        raise MissingPackageError("HNSW graphs need faiss", remedy="pip install 'birchbark[dense]'")
    for part in index.parts:
        delete_abandoned(part.path)
    folders = list(_without_graph(attachment, min_vectors))
    for folder in folders:
        target = _graph_folder(folder.path)
        with new_directory(target, replace=True) as scratch, folder.reporting_damage():
            _build(folder, decode, advance, scratch / FILE)
            about = {"shape": SHAPE, "checksum": fingerprint(scratch / FILE)}
            (scratch / ABOUT).write_text(json.dumps(about), "utf-8")
    return len(folders)


def count_vectors_without_graph(attachment: Attachment) -> int:
    """Return how many vectors `build_graphs` would add to new graphs."""
    return sum(len(rows.values["vectors"]) for rows in _without_graph(attachment, MIN_VECTORS))


def _build(folder: RowFolder, decode: DecodeVectors, advance: Advance, path: Path) -> None:
    """Build a graph and write it to `path`.

    Rows are added in order, by one thread, so that the same rows always give the same graph.
    """
    import faiss

    rows, hidden = folder.values["vectors"].shape
    dtype, metric = faiss.ScalarQuantizer.QT_fp16, faiss.METRIC_INNER_PRODUCT
    graph = faiss.IndexHNSWSQ(hidden, dtype, SHAPE["links"], metric)
    graph.hnsw.efConstruction = SHAPE["build"]
    threads = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)  # process-wide, so restored below
    try:
        for begin in range(0, rows, BATCH):
            end = min(rows, begin + BATCH)
            batch = decode({name: values[begin:end] for name, values in folder.values.items()})
            if not graph.is_trained:
                graph.train(batch)
            graph.add(batch)
            advance(end - begin)
    finally:
        faiss.omp_set_num_threads(threads)
    faiss.write_index(graph, str(path))


def _without_graph(attachment: Attachment, min_vectors: int) -> Iterator[RowFolder]:
    for rows in _row_folders(attachment):
        if len(rows.values["vectors"]) >= min_vectors and not _graph_folder(rows.path).is_dir():
            yield rows


def _row_folders(attachment: Attachment) -> Iterator[RowFolder]:
    return chain.from_iterable(attachment.folders)


def _graph_folder(folder: Path) -> Path:
    """Return the path of the graph for a folder of rows."""
    return folder.with_name(f"graph-{folder.name}")
