"""How are the nearest of many vectors found without looking at all of them? By an HNSW graph.

Malkov & Yashunin 2018, as faiss builds it. A graph belongs to one folder of an attachment's rows,
which never changes, and lies beside it. It is derived from the folder: an index without graphs
answers exactly, more slowly, and one that changes needs graphs for its new folders alone.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from shutil import rmtree
from typing import Any

from numpy.typing import NDArray

from birchbark.artifact import TEMPORARY, fingerprint, new_directory
from birchbark.errors import ArtifactError, MissingPackageError
from birchbark.index.attachment_reader import AttachedRows, Attachment, Numbers, reading
from birchbark.index.reader import Index
from birchbark.records import Float32s

LEAST = 20_000  # vectors; looking at 100,000 takes .1 s (benchmarks/RESULTS-NEAREST.md)
ADDED = 4_096  # at a time, between two steps of a progress bar
FILE, ABOUT = "graph.faiss", "about.json"
REMEDY = "remove that folder; `birchbark index attach` makes it anew"

Unpack = Callable[[Mapping[str, NDArray[Any]]], Float32s]
Advance = Callable[[int], object]


@dataclass(frozen=True, slots=True)
class Shape:
    """How a graph is made and followed.

    links: of each vector in a layer. build, search: vectors that are looked at to add one, and to
    find some, at least.
    """

    links: int = 16
    build: int = 128
    search: int = 128


class Graph:
    """The graph of one folder, mapped into memory."""

    def __init__(self, folder: Path) -> None:
        """Open it; ArtifactError if it is damaged."""
        import faiss

        try:
            about = json.loads((folder / ABOUT).read_text("utf-8"))
            if fingerprint(folder / FILE) != about["checksum"]:
                raise ValueError("its bytes are not as written")
            self._graph = faiss.read_index(str(folder / FILE), faiss.IO_FLAG_MMAP)
            self._least = int(about["shape"]["search"])
        except (OSError, ValueError, KeyError, TypeError, RuntimeError) as broken:
            raise ArtifactError(
                f"damaged graph: {broken}", where=str(folder), remedy=REMEDY
            ) from broken

    def nearest(self, query: Float32s, count: int) -> Numbers:
        """Numbers of about the `count` rows that are nearest to the unit vector `query`."""
        import faiss

        how = faiss.SearchParametersHNSW(efSearch=max(self._least, count))
        found: Numbers = self._graph.search(query[None], count, params=how)[1][0]
        return found[found >= 0]  # −1 where there are fewer


def installed() -> bool:
    """Whether graphs can be made and read."""
    return find_spec("faiss") is not None


def open_graphs(attachment: Attachment) -> dict[Path, Graph]:
    """Folder of rows → its graph, for those that have one; none without the package."""
    folders = [rows.folder for rows in _folders(attachment)] if installed() else []
    return {folder: Graph(_beside(folder)) for folder in folders if _beside(folder).is_dir()}


def build_graphs(
    index: Index,
    attachment: Attachment,
    unpack: Unpack,
    advance: Advance = lambda vectors: None,
    *,
    least: int = LEAST,
    shape: Shape = Shape(),
) -> int:
    """Make a graph for each folder of `least` vectors or more that has none; how many were made.

    unpack: see KeptVectors. advance: called with numbers of vectors. To be called while no other
    process writes to the index. Graphs of folders that are no longer there are removed. A graph is
    written whole or not at all. Raises MissingPackageError without faiss.
    """
    if not installed():
        raise MissingPackageError("graphs need faiss", remedy="pip install 'birchbark[dense]'")
    kept = {_beside(rows.folder) for rows in _folders(attachment)}
    for part in index.parts:
        left = {*part.path.glob("graph-*"), *part.path.glob(TEMPORARY + "*")}
        for old in left - kept:
            rmtree(old)
    wanted = list(_missing(attachment, least))
    for held in wanted:
        with new_directory(_beside(held.folder)) as scratch, reading(held.folder):
            _build(held, unpack, advance, shape, scratch / FILE)
            about = {"shape": asdict(shape), "checksum": fingerprint(scratch / FILE)}
            (scratch / ABOUT).write_text(json.dumps(about), "utf-8")
    return len(wanted)


def vectors_without(attachment: Attachment, least: int = LEAST) -> int:
    """How many vectors `build_graphs` would put into new graphs."""
    return sum(len(held.values["vectors"]) for held in _missing(attachment, least))


def _build(held: AttachedRows, unpack: Unpack, advance: Advance, shape: Shape, path: Path) -> None:
    """In the order of the rows, by one thread: the same rows give the same graph."""
    import faiss

    rows, hidden = held.values["vectors"].shape
    kind, metric = faiss.ScalarQuantizer.QT_fp16, faiss.METRIC_INNER_PRODUCT
    graph = faiss.IndexHNSWSQ(hidden, kind, shape.links, metric)
    graph.hnsw.efConstruction = shape.build
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)  # of the whole process, but for this call alone
    try:
        for begin in range(0, rows, ADDED):
            end = min(rows, begin + ADDED)
            some = unpack({name: values[begin:end] for name, values in held.values.items()})
            if not graph.is_trained:
                graph.train(some)
            graph.add(some)
            advance(end - begin)
    finally:
        faiss.omp_set_num_threads(before)
    faiss.write_index(graph, str(path))


def _missing(attachment: Attachment, least: int) -> Iterator[AttachedRows]:
    for held in _folders(attachment):
        if len(held.values["vectors"]) >= least and not _beside(held.folder).is_dir():
            yield held


def _folders(attachment: Attachment) -> Iterator[AttachedRows]:
    return chain.from_iterable(attachment.held)


def _beside(folder: Path) -> Path:
    """Where the graph of a folder of rows lies."""
    return folder.with_name(f"graph-{folder.name}")
