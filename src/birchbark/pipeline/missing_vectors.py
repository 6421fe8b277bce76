"""How are the vectors that an index lacks computed in slices, while it is searched and changed?

A slice is computed from a snapshot of the index. The index is opened for writing only to store it,
so that other programs can change the index in between. A slice that was not stored is computed
again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from birchbark import defaults
from birchbark.checkpoint.locate import name_of
from birchbark.index.attachment_slices import next_slice
from birchbark.index.index import Index
from birchbark.index.sharded_writer import open_writer
from birchbark.pipeline.searcher import Searcher
from birchbark.pipeline.settings.ranker import Ranker
from birchbark.pipeline.stored.precompute import (
    STATIC,
    VECTORS,
    Precomputation,
    precompute_vectors,
)
from birchbark.pipeline.stored.vector_scorer import bi_encoder, is_static
from birchbark.pipeline.stored.vector_sets import (
    count_missing,
    fitting_set,
    searched_sets,
    vector_sets,
)
from birchbark.retrieve.hnsw import build_graphs, faiss_installed
from birchbark.score.bert_scorer import BiEncoderScorer
from birchbark.score.vector_quantization import dequantize_vectors
from birchbark.segment.by_name import segmenter_name

TOKENS_BETWEEN_SEARCHES = 256  # about 20 ms on two cores, for which a search may have to wait
SLICE_DOCUMENTS, SLICE_CHARACTERS = 64, 100_000  # the work of about two seconds


class MissingVectors:
    """The vectors that a searcher's index lacks, of the first ranker that would use some.

    They are those of the ranker's segments by its embedding model.
    """

    def __init__(self, searcher: Searcher, ranker: Ranker) -> None:
        """ranker: one of the searcher's, whose `vector_scorer` is not None."""
        self._searcher, self._ranker = searcher, ranker
        self._last_count: tuple[Index, int | None] | None = None  # a snapshot's `documents`
        self._has_new_graphs = False  # of which searchers have not been told

    @classmethod
    def of(cls, searcher: Searcher) -> MissingVectors | None:
        """Return the missing vectors of a searcher; None if none of its rankers uses vectors."""
        ranker = next((ranker for ranker in searcher.rankers if ranker.vector_scorer), None)
        return cls(searcher, ranker) if ranker else None

    @property
    def documents(self) -> int | None:
        """Number of documents without vectors; None if the index has other vectors.

        These are vectors of another model or of other segments, which are not replaced.
        """
        index = self._searcher.index
        if self._last_count is None or self._last_count[0] is not index:
            name = self._set(index)
            self._last_count = index, None if name is None else count_missing(index, name)
        return self._last_count[1]

    @property
    def set_name(self) -> str | None:
        """The name of the set of vectors that are computed; None if the index has other vectors."""
        return self._set(self._searcher.index)

    def compute_slice(self, on_batch: Callable[[], object] = lambda: None) -> int:
        """Compute and store vectors of the first documents that lack them; return their number.

        The number is 0 if all documents have vectors, or the index has other ones.

        on_batch: called before anything that takes longer than about 20 ms; an exception that it
        raises ends the computation. Raises ArtifactError if the index is damaged or another process
        is writing to it, and OSError if the vectors cannot be written.
        """
        index = self._searcher.index
        name = self._set(index)
        todo = name and next_slice(index, name, SLICE_DOCUMENTS, SLICE_CHARACTERS)
        if not name or not todo:
            return 0
        job = self._precomputation(index, name, on_batch)
        rows = list(job.compute(todo.documents))
        with self._searcher.writing(), open_writer(self._searcher.directory) as writer:
            writer.attach_slice(name, job.schema, todo, rows)
        return len(todo.documents)

    def build_graphs(self, on_batch: Callable[[], object] = lambda: None) -> None:
        """Build the vector graphs that the set lacks, while others can change the index.

        on_batch: called every few thousand vectors; an exception that it raises ends the work.
        Raises what `compute_slice` and `hnsw.build_graphs` raise.
        """
        index = self._searcher.index
        name = self._set(index)
        vectors = index.attachment(name) if name in searched_sets(index.attachments) else None
        if vectors and faiss_installed():
            built = build_graphs(index, vectors, dequantize_vectors, lambda count: on_batch())
            self._has_new_graphs |= bool(built)
        if self._has_new_graphs:
            with self._searcher.writing(), open_writer(self._searcher.directory) as writer:
                writer.renew()
            self._has_new_graphs = False

    @property
    def _encoder(self) -> BiEncoderScorer:
        assert self._ranker.vector_scorer
        encoder = bi_encoder(self._ranker.vector_scorer)
        assert encoder
        return encoder

    def _set(self, index: Index) -> str | None:
        """Return the set of the ranker's vectors; VECTORS if the index has no vectors at all.

        The set STATIC has those of the bundled embedding and its segments alone. None if the index
        has other vectors.
        """
        static = is_static(self._encoder)
        if static and STATIC not in index.attachments:
            own = name_of(self._encoder.checkpoint.root) == defaults.STATIC_EMBEDDING
            default = segmenter_name(self._ranker.segmenter) == defaults.SEGMENTS
            return STATIC if own and default else None
        if not static and not vector_sets(index.attachments):
            return VECTORS
        return fitting_set(index.attachments, self._encoder, self._ranker.segmenter)

    def _precomputation(
        self, index: Index, name: str, on_batch: Callable[[], object]
    ) -> Precomputation:
        """Return the computation of the missing vectors of this set."""
        encoder, segmenter, bits = self._encoder, self._ranker.segmenter, None
        model = name_of(encoder.checkpoint.root)
        if stored := index.attachments.get(name):
            bits, model = stored.config["bits"], stored.config.get("model", model)
        computation = precompute_vectors(
            encoder,
            segmenter,
            model,
            bits,
            fast=self._ranker.fast_embedding,
            batch_tokens=TOKENS_BETWEEN_SEARCHES,
            on_batch=on_batch,
        )
        return replace(computation, name=name)
