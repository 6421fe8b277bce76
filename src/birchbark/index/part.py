"""How do Documents become one part of an index?"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from birchbark.artifact import fingerprint, flush
from birchbark.index.arrays import save_array
from birchbark.index.inversion import frequencies, invert, transpose
from birchbark.index.layout import FieldTotals, Manifest, PartEntry
from birchbark.index.packing import ListWriter
from birchbark.index.strings import write_strings
from birchbark.index.texts import TextWriter
from birchbark.index.vocabulary import Vocabulary
from birchbark.records import Document

TOGETHER = 1 << 20  # characters that wait until they are read together, in all fields


class PartBuilder:
    """A part being filled. Ids must differ; `close` writes what is not yet on disk."""

    def __init__(
        self, directory: Path, manifest: Manifest, vocabularies: Iterable[Vocabulary]
    ) -> None:
        """Start a part in the new folder `directory`. vocabularies: of each field."""
        directory.mkdir()
        self.name = directory.name
        self._directory = directory
        self._manifest = manifest
        self._ids: list[str] = []
        self._texts = TextWriter(directory / "texts")
        vocabularies = list(vocabularies)
        together = TOGETHER // max(1, len(vocabularies))
        self._fields = [_Field(vocabulary, together) for vocabulary in vocabularies]

    def holds(self, tokens: int) -> bool:
        """Whether it holds as many tokens, or more."""
        if sum(field.most_tokens for field in self._fields) < tokens:
            return False
        return sum(field.tokens() for field in self._fields) >= tokens

    def __len__(self) -> int:
        """How many documents it holds."""
        return len(self._ids)

    def add(self, document: Document) -> None:
        """Add a document; its number is that of the documents before it."""
        self._ids.append(document.doc_id)
        self._texts.add(document.fields)
        for field, text in zip(self._fields, self._manifest.texts_of(document.fields), strict=True):
            field.add(text)

    def close(self) -> PartEntry:
        """Write everything, and ask the disk to keep it."""
        self._texts.close()
        write_strings(self._directory / "doc_ids", self._ids)
        writer = FieldWriter(self._directory, self._manifest.forward)
        for field in self._fields:
            terms, starts, docs, tfs, lengths = field.inverted()
            writer.add_lists(terms, starts, docs, tfs, lengths)
            if self._manifest.forward:
                writer.add_forward(*transpose(starts, docs, tfs, len(lengths)))
            writer.end_field(lengths)
        return finished(self._directory, len(self._ids), writer.close())


class FieldWriter:
    """Writes the indexed fields of a part, one after the other (layout.py)."""

    def __init__(self, directory: Path, forward: bool) -> None:
        """Start the files in `directory`. forward: whether there will be a forward index."""
        self._directory = directory
        self._postings = ListWriter(directory / "postings")
        self._forward = ListWriter(directory / "forward") if forward else None
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
        """Postings of the next `terms`, which go on in sorted order; arrays as `invert` has them.

        lengths: of all documents.
        """
        self._terms += terms
        self._postings.add(starts, docs, tfs, lengths)

    def add_forward(
        self, starts: NDArray[np.int64], terms: NDArray[np.uint32], tfs: NDArray[np.uint32]
    ) -> None:
        """The next documents' terms, as `transpose` has them."""
        if self._forward:
            self._forward.add(
                starts, terms, tfs, np.zeros(int(terms.max(initial=0)) + 1, np.uint32)
            )

    def end_field(self, lengths: NDArray[np.uint32]) -> None:
        """The field is complete. lengths: (documents,)."""
        self._starts.append(len(self._terms))
        self._lengths.append(lengths)

    def close(self) -> list[FieldTotals]:
        """Write what is left; the statistics of each field."""
        write_strings(self._directory / "terms", self._terms, runs=True)
        save_array(self._directory / "fields.npy", np.array(self._starts, np.uint64))
        save_array(self._directory / "lengths.npy", np.stack(self._lengths))
        self._postings.close()
        if self._forward:
            self._forward.close()
        return [field_totals(lengths) for lengths in self._lengths]


def finished(directory: Path, documents: int, totals: Iterable[FieldTotals]) -> PartEntry:
    """The manifest's entry for a part whose files are all written; flushes them."""
    for path in (*directory.rglob("*"), directory):
        flush(path)
    return PartEntry(directory.name, documents, tuple(totals), checksum(directory))


def checksum(directory: Path) -> str:
    """Over the files written with a part, in the order of their names."""
    files = (p for p in directory.iterdir() if p.is_file())  # in folders lie attachments
    return fingerprint(*sorted(p for p in files if not p.name.startswith("deleted-")))


def field_totals(lengths: NDArray[Any]) -> FieldTotals:
    """Statistics of a field from the lengths (documents,) of its documents."""
    return FieldTotals(int(np.count_nonzero(lengths)), int(lengths.sum(dtype=np.int64)))


class _Field:
    """One indexed field of a part being filled: the terms of each document, as numbers."""

    def __init__(self, vocabulary: Vocabulary, together: int) -> None:
        """together: how many characters are read at a time."""
        self._vocabulary = vocabulary
        self._together = together
        self._waiting: list[str] = []  # texts that are not yet read
        self._characters = 0  # of these
        self._tokens = 0
        self._terms = array("I")
        self._lengths = array("q")

    @property
    def most_tokens(self) -> int:
        """How many tokens it may hold; there is no more than one for each waiting character."""
        return self._tokens + self._characters

    def add(self, text: str) -> None:
        self._waiting.append(text)
        self._characters += len(text)
        if self._characters >= self._together:
            self.tokens()

    def tokens(self) -> int:
        """How many tokens it holds; reads the texts that wait."""
        terms, lengths, tokens = self._vocabulary.read(self._waiting)
        self._terms.frombytes(terms.tobytes())
        self._lengths.frombytes(lengths.tobytes())
        self._tokens += tokens
        self._waiting, self._characters = [], 0
        return self._tokens

    def inverted(self) -> tuple[list[str], Any, Any, Any, Any]:
        """Sorted terms, and their postings as `invert` gives them; the documents' lengths."""
        self.tokens()
        terms, lengths = np.asarray(self._terms), np.asarray(self._lengths)
        starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
        names = self._vocabulary.terms  # of the parts before as well
        found = frequencies(terms, starts, len(names))
        order = np.array(sorted(np.flatnonzero(found).tolist(), key=names.__getitem__), np.int64)
        postings = invert(terms, starts, found, order)
        return [names[number] for number in order.tolist()], *postings, lengths.astype(np.uint32)
