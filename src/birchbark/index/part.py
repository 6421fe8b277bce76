"""How do Documents become one part of an index?"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from birchbark.artifact import fingerprint, flush
from birchbark.index.arrays import save_array
from birchbark.index.inversion import invert, transpose
from birchbark.index.layout import FieldTotals, Manifest, PartEntry
from birchbark.index.packing import ListWriter
from birchbark.index.strings import write_strings
from birchbark.index.texts import TextWriter
from birchbark.records import Document
from birchbark.text.analyzer import Analyzer


class PartBuilder:
    """A part being filled. Ids must differ; `close` writes what is not yet on disk."""

    def __init__(self, directory: Path, manifest: Manifest, analyzers: Iterable[Analyzer]) -> None:
        """Start a part in the new folder `directory`. analyzers: of each field."""
        directory.mkdir()
        self._directory = directory
        self._manifest = manifest
        self._ids: list[str] = []
        self._texts = TextWriter(directory / "texts")
        self._fields = [_Field(chosen) for chosen in analyzers]

    @property
    def tokens(self) -> int:
        """How many tokens it holds in memory."""
        return sum(len(field.tokens) for field in self._fields)

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
    files = (p for p in directory.rglob("*") if p.is_file())
    return fingerprint(*sorted(p for p in files if not p.name.startswith("deleted-")))


def field_totals(lengths: NDArray[Any]) -> FieldTotals:
    """Statistics of a field from the lengths (documents,) of its documents."""
    return FieldTotals(int(np.count_nonzero(lengths)), int(lengths.sum(dtype=np.int64)))


class _Field:
    """One indexed field of a part being filled: every token as a number, in document order."""

    def __init__(self, chosen: Analyzer) -> None:
        self._analyzer = chosen
        self.tokens = array("I")
        self._starts = array("q", [0])
        self._numbers: defaultdict[str, int] = defaultdict()
        self._numbers.default_factory = self._numbers.__len__

    def add(self, text: str) -> None:
        self.tokens.extend(map(self._numbers.__getitem__, self._analyzer.tokens(text)))
        self._starts.append(len(self.tokens))

    def inverted(self) -> tuple[list[str], Any, Any, Any, Any]:
        """Sorted terms, and their postings as `invert` gives them."""
        of_token = [self._analyzer.normalise(token) for token in self._numbers]
        terms = sorted({term for terms in of_token for term in terms})
        number = {term: i for i, term in enumerate(terms)}
        starts = np.zeros(len(of_token) + 1, np.int64)
        np.cumsum([len(terms) for terms in of_token], out=starts[1:])
        flat = np.array([number[term] for terms in of_token for term in terms], np.uint32)
        tokens, doc_starts = np.asarray(self.tokens), np.asarray(self._starts)
        return terms, *invert(tokens, doc_starts, starts, flat, len(terms))
