"""How do documents become one part of an index?"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from birchbark.artifact import fingerprint
from birchbark.index.arrays import save_array
from birchbark.index.compress_postings import PackedListWriter
from birchbark.index.inversion import document_frequencies, invert, transpose
from birchbark.index.layout import FieldTotals, Manifest, PartEntry
from birchbark.index.stored_fields import StoredFieldWriter
from birchbark.index.string_table import write_strings
from birchbark.index.vocabulary import Vocabulary
from birchbark.index.weighted_terms import Impacts, WeightedFieldBuilder
from birchbark.records import Document
from birchbark.systems import flush

BATCH_SIZE = 1 << 20  # characters analyzed together, over all fields


class PartBuilder:
    """Builds a part from documents with distinct ids. `close` writes the data still in memory."""

    def __init__(
        self, directory: Path, manifest: Manifest, vocabularies: Iterable[Vocabulary]
    ) -> None:
        """Start a part in the new directory `directory`. vocabularies: one per indexed field."""
        directory.mkdir()
        self.name = directory.name
        self._directory = directory
        self._manifest = manifest
        self._ids: list[str] = []
        self._stored_fields = StoredFieldWriter(directory / "texts")
        vocabularies = list(vocabularies)
        batch_size = BATCH_SIZE // max(1, len(vocabularies))
        self._fields = [
            WeightedFieldBuilder()
            if name in manifest.weighted
            else _FieldBuilder(vocabulary, batch_size)
            for name, vocabulary in zip(manifest.fields, vocabularies, strict=True)
        ]

    def reaches(self, tokens: int) -> bool:
        """Return whether the part has at least this many tokens."""
        if sum(field.max_tokens for field in self._fields) < tokens:
            return False
        return sum(field.analyze() for field in self._fields) >= tokens

    def __len__(self) -> int:
        """The number of documents added."""
        return len(self._ids)

    def add(self, document: Document, impacts: Mapping[str, Impacts]) -> None:
        """Add a document; its number is the number of documents added before it.

        impacts: the terms of its weighted fields (`Manifest.impacts_of`).
        """
        self._ids.append(document.doc_id)
        self._stored_fields.add(document.fields)
        texts = self._manifest.texts_of(document.fields)
        for name, field, text in zip(self._manifest.fields, self._fields, texts, strict=True):
            if isinstance(field, WeightedFieldBuilder):
                field.add(impacts[name])
            else:
                field.add(text)

    def close(self) -> PartEntry:
        """Write all files and flush them to disk; return the part's entry."""
        self._stored_fields.close()
        write_strings(self._directory / "doc_ids", self._ids)
        writer = FieldWriter(self._directory, self._manifest.forward)
        for field in self._fields:
            terms, starts, docs, tfs, lengths = field.invert()
            writer.add_lists(terms, starts, docs, tfs, lengths)
            if self._manifest.forward:
                writer.add_forward(*transpose(starts, docs, tfs, len(lengths)))
            writer.end_field(lengths)
        return finish_part(self._directory, len(self._ids), writer.close())


class FieldWriter:
    """Writes the indexed fields of a part, one after the other (layout.py)."""

    def __init__(self, directory: Path, forward: bool) -> None:
        """Start the files in `directory`. forward: whether to write a forward index."""
        self._directory = directory
        self._postings = PackedListWriter(directory / "postings")
        self._forward = PackedListWriter(directory / "forward") if forward else None
        self._terms: list[str] = []
        self._starts = [0]
        self._lengths: list[NDArray[np.uint32]] = []

    def add_lists(
        self,
        terms: Sequence[str],
        starts: NDArray[np.int64],
        docs: NDArray[np.uint32],
        tfs: NDArray[np.uint32],
        lengths: NDArray[np.uint32],
    ) -> None:
        """Append the postings of `terms`, which follow the previous terms in sorted order.

        starts, docs, tfs: see `invert`. lengths: (documents,), the length of each document.
        """
        self._terms += terms
        self._postings.add(starts, docs, tfs, lengths)

    def add_forward(
        self, starts: NDArray[np.int64], terms: NDArray[np.uint32], tfs: NDArray[np.uint32]
    ) -> None:
        """Append documents to the forward index; see `transpose` for the arguments."""
        if self._forward:
            self._forward.add(
                starts, terms, tfs, np.zeros(int(terms.max(initial=0)) + 1, np.uint32)
            )

    def end_field(self, lengths: NDArray[np.uint32]) -> None:
        """End the current field. lengths: (documents,), the length of each document."""
        self._starts.append(len(self._terms))
        self._lengths.append(lengths)

    def close(self) -> list[FieldTotals]:
        """Write the remaining files; return the statistics of each field."""
        write_strings(self._directory / "terms", self._terms, runs=True)
        save_array(self._directory / "fields.npy", np.array(self._starts, np.uint64))
        save_array(self._directory / "lengths.npy", np.stack(self._lengths))
        self._postings.close()
        if self._forward:
            self._forward.close()
        return [field_totals(lengths) for lengths in self._lengths]


def finish_part(directory: Path, documents: int, totals: Iterable[FieldTotals]) -> PartEntry:
    """Flush the files of a complete part to disk, and return its entry for the manifest."""
    for path in (*directory.rglob("*"), directory):
        flush(path)
    return PartEntry(directory.name, documents, tuple(totals), part_checksum(directory))


def part_checksum(directory: Path) -> str:
    """Return the checksum of the files written with a part, in order of name."""
    files = (p for p in directory.iterdir() if p.is_file())  # folders hold attachments
    return fingerprint(*sorted(p for p in files if not p.name.startswith("deleted-")))


def field_totals(lengths: NDArray[Any]) -> FieldTotals:
    """Return the statistics of a field. lengths: (documents,), the length of each document."""
    return FieldTotals(int(np.count_nonzero(lengths)), int(lengths.sum(dtype=np.int64)))


class _FieldBuilder:
    """Collects the term numbers of one indexed field, document by document."""

    def __init__(self, vocabulary: Vocabulary, batch_size: int) -> None:
        """Start without documents. batch_size: the number of characters analyzed together."""
        self._vocabulary = vocabulary
        self._batch_size = batch_size
        self._pending: list[str] = []  # texts that are not yet analyzed
        self._pending_characters = 0
        self._tokens = 0  # the number of tokens in the analyzed texts
        self._terms = array("I")
        self._lengths = array("q")

    @property
    def max_tokens(self) -> int:
        """An upper bound of the number of tokens: each pending character may be a token."""
        return self._tokens + self._pending_characters

    def add(self, text: str) -> None:
        self._pending.append(text)
        self._pending_characters += len(text)
        if self._pending_characters >= self._batch_size:
            self.analyze()

    def analyze(self) -> int:
        """Analyze the pending texts; return the number of tokens in all texts."""
        terms, lengths, tokens = self._vocabulary.read(self._pending)
        self._terms.frombytes(terms.tobytes())
        self._lengths.frombytes(lengths.tobytes())
        self._tokens += tokens
        self._pending, self._pending_characters = [], 0
        return self._tokens

    def invert(self) -> tuple[list[str], Any, Any, Any, Any]:
        """Return the sorted terms; starts, docs, tfs (see `invert`); and lengths (documents,)."""
        self.analyze()
        terms, lengths = np.asarray(self._terms), np.asarray(self._lengths)
        starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
        names = self._vocabulary.terms  # includes terms of earlier parts
        counts = document_frequencies(terms, starts, len(names))
        order = np.array(sorted(np.flatnonzero(counts).tolist(), key=names.__getitem__), np.int64)
        postings = invert(terms, starts, counts, order)
        return [names[number] for number in order.tolist()], *postings, lengths.astype(np.uint32)
