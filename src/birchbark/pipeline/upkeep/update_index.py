"""How are documents added to an index together with their attachments and vector graphs?"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import NamedTuple

from birchbark.index.index import Index
from birchbark.index.origin import NewOrigin
from birchbark.index.sharded_writer import Writer, open_writer
from birchbark.pipeline.stored.precompute import (
    STATIC,
    Precomputation,
    load_precomputations,
    shown_name,
)
from birchbark.pipeline.stored.vector_sets import in_own_set, searched_sets
from birchbark.records import Document
from birchbark.retrieve.hnsw import build_graphs, count_vectors_without_graph, faiss_installed
from birchbark.score.scorer import LoadScorer
from birchbark.score.vector_quantization import dequantize_vectors

Advance = Callable[[int], object]
Progress = Callable[[str, int | None], AbstractContextManager[Advance]]


@contextmanager
def no_progress(label: str, total: int | None) -> Iterator[Advance]:
    """Show no progress: the default for the functions below.

    label: what is counted. total: the expected count; None if it is unknown. Yields a function that
    advances the count.
    """
    yield lambda count: None


class Changes(NamedTuple):
    """What is changed in one commit.

    documents: to add, or to put in the place of those with the same ids. delete: ids of documents
    to delete, if they exist. origin: what the index is to know of where its documents come from;
    None for what it knows.
    """

    documents: Iterable[Document]
    delete: Iterable[str] = ()
    origin: NewOrigin | None = None


class AddedDocuments(NamedTuple):
    """How many documents were new, and how many replaced others with the same id."""

    new: int
    replaced: int

    def plus(self, other: AddedDocuments) -> AddedDocuments:
        """Return the counts of both."""
        return AddedDocuments(self.new + other.new, self.replaced + other.replaced)


def add_documents(
    directory: Path,
    changes: Changes,
    load: LoadScorer,
    progress: Progress = no_progress,
    on_commit: Callable[[AddedDocuments, int], object] = lambda added, total: None,
    *,
    leave_out: Collection[str] = (),
) -> AddedDocuments:
    """Add and delete documents, all or none; then compute attachments and build graphs.

    A document with a known id replaces the existing one. An attachment that already lacked other
    documents is not completed, unless it is STATIC, since that may take long: `attach` does it.

    load: returns the scorer of a model by its name. on_commit: called when the documents are on
    disk and before attachments are computed, with the counts and the total number of documents in
    the index. leave_out: names of further attachments that are not completed. Raises InputError,
    and changes nothing, if a document cannot be indexed or the attachments were made by another
    version of their model, and OutdatedError if the origin has been replaced by another.
    """
    with open_writer(directory) as writer:
        if changes.origin:
            writer.set_origin(changes.origin)
        left_out = {*(writer.missing_rows().keys() - {STATIC}), *leave_out}
        precomputations = load_precomputations(writer, load, left_out)  # first, because it may fail
        before, count = len(writer), 0
        with progress("adding", None) as advance:
            for document in changes.documents:
                writer.add(document)
                count += 1
                advance(1)
        new = len(writer) - before
        added = AddedDocuments(new, count - new)
        for doc_id in changes.delete:
            writer.delete(doc_id)
        writer.commit()
        on_commit(added, len(writer))
        complete_attachments(writer, precomputations, progress)
        build_missing_graphs(writer, progress, leave_out)
    return added


def attach(
    writer: Writer, precomputations: Sequence[Precomputation], progress: Progress = no_progress
) -> list[str]:
    """Compute attachments for all documents, and return their names.

    Token ids replace those that the index has. Vectors of a model and a segmenter are stored beside
    those of others (`in_own_set`).
    """
    names = []
    for precomputation in precomputations:
        named = in_own_set(precomputation, writer.attachments)
        _compute(writer, named, lacking(writer, named), progress)
        names.append(named.name)
    return names


def lacking(writer: Writer, precomputation: Precomputation) -> int:
    """Return how many documents of the last commit lack what `attach` would store."""
    named = in_own_set(precomputation, writer.attachments)
    if writer.attachments.get(named.name) != named.schema:
        return len(writer)
    return writer.missing_rows().get(named.name, 0)


def _compute(
    writer: Writer, precomputation: Precomputation, count: int, progress: Progress
) -> None:
    with progress(f"computing {shown_name(precomputation.name)}", count) as advance:
        precomputation.attach(writer, advance)


def complete_attachments(
    writer: Writer, precomputations: Sequence[Precomputation], progress: Progress = no_progress
) -> None:
    """Compute attachments for the documents of the last commit that lack them."""
    missing = writer.missing_rows()
    for precomputation in precomputations:
        if count := missing.get(precomputation.name):
            _compute(writer, precomputation, count, progress)


def build_missing_graphs(
    writer: Writer, progress: Progress = no_progress, leave_out: Collection[str] = ()
) -> None:
    """Build the HNSW graphs (retrieve/hnsw.py) that the index lacks, if faiss is installed.

    Programs that have the index open use them at once. leave_out: names of sets of vectors that get
    no graphs.
    """
    index, built = Index(writer.directory), False
    for name in searched_sets(index.attachments):
        vectors, missing = index.attachment(name), vectors_without_graph(index, name)
        if vectors and missing and name not in leave_out and faiss_installed():
            with progress("building vector graphs", missing) as advance:
                built |= bool(build_graphs(index, vectors, dequantize_vectors, advance))
    if built:
        writer.renew()


def vectors_without_graph(index: Index, name: str) -> int:
    """Return how many vectors of a set should be in an HNSW graph and are not."""
    vectors = index.attachment(name)
    return count_vectors_without_graph(vectors) if vectors else 0
