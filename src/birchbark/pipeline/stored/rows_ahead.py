"""How is an attachment computed while the documents of a new index are still being read?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from birchbark.index.attachment_writer import NewRows
from birchbark.pipeline.stored.precompute import Precomputation
from birchbark.records import Document

MOST_BYTES = 256_000_000  # of rows that are kept; those of further documents are computed later
BYTES_PER_DOCUMENT = 700  # beside its arrays


class RowsAhead:
    """Computes the rows of documents that pass by, while another process reads the next ones.

    The rows are kept until they are attached to the index that these documents become.
    """

    def __init__(self, computation: Precomputation, read_fields: Sequence[str]) -> None:
        """read_fields: those of the index; see `Document`."""
        self._computation, self._read_fields = computation, tuple(read_fields)
        self._rows: dict[tuple[str, int], NewRows] = {}  # by doc_id and hash of what is read
        self._bytes = 0

    def watch(self, documents: Iterable[Document]) -> Iterator[Document]:
        """Yield the documents, each when its rows have been computed."""
        for document in documents:
            if self._bytes < MOST_BYTES:
                read = replace(document, read_fields=self._read_fields)
                [rows] = self._computation.compute([read])
                self._rows[_key(read)] = rows
                self._bytes += BYTES_PER_DOCUMENT + sum(a.nbytes for a in rows.values())
            yield document

    @property
    def computation(self) -> Precomputation:
        """The precomputation, which uses the rows that are kept."""
        return replace(self._computation, compute=self._compute)

    def _compute(self, documents: Sequence[Document]) -> Iterator[NewRows]:
        known = [self._rows.pop(_key(document), None) for document in documents]
        new = [document for document, rows in zip(documents, known, strict=True) if rows is None]
        computed = iter(self._computation.compute(new))
        for rows in known:
            yield next(computed) if rows is None else rows


def _key(document: Document) -> tuple[str, int]:
    return document.doc_id, hash((document.title, document.text))
