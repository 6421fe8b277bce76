"""How do Documents become one part of an index?"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from birchbark.artifact import fingerprint, flush
from birchbark.index.inversion import invert, transpose
from birchbark.index.layout import FieldTotals, PartEntry
from birchbark.index.strings import write_strings
from birchbark.index.texts import TextWriter
from birchbark.records import Document
from birchbark.text.analyzer import Analyzer


class PartBuilder:
    """A part being filled. Ids must differ; `close` writes what is not yet on disk."""

    def __init__(
        self,
        directory: Path,
        analyzers: Mapping[str, Analyzer],
        sources: Mapping[str, Sequence[str]],
    ) -> None:
        """Start a part in the new folder `directory`. analyzers, sources: of each field."""
        directory.mkdir()
        self._directory = directory
        self._ids: list[str] = []
        self._texts = TextWriter(directory / "texts")
        self._fields = [(sources[name], _Field(analyzers[name])) for name in sources]

    @property
    def tokens(self) -> int:
        """How many tokens it holds in memory."""
        return sum(len(field.tokens) for _, field in self._fields)

    def __len__(self) -> int:
        """How many documents it holds."""
        return len(self._ids)

    def add(self, document: Document) -> None:
        """Add a document; its number is that of the documents before it."""
        self._ids.append(document.doc_id)
        self._texts.add(document.fields)
        for names, field in self._fields:
            field.add("\n".join(document.fields.get(name, "") for name in names))

    def close(self) -> PartEntry:
        """Write everything, and ask the disk to keep it."""
        self._texts.close()
        write_strings(self._directory / "doc_ids", self._ids)
        totals = [
            field.write(self._directory / f"field-{number}")
            for number, (_, field) in enumerate(self._fields)
        ]
        return finished(self._directory, len(self._ids), totals)


def finished(directory: Path, documents: int, totals: Iterable[FieldTotals]) -> PartEntry:
    """The manifest's entry for a part whose files are all written; flushes them."""
    for path in (*directory.rglob("*"), directory):
        flush(path)
    return PartEntry(directory.name, documents, tuple(totals), checksum(directory))


def checksum(directory: Path) -> str:
    """Over the files written with a part, in the order of their names."""
    files = (p for p in directory.rglob("*") if p.is_file())
    return fingerprint(*sorted(p for p in files if not p.name.startswith("deleted-")))


def write_field(
    directory: Path,
    terms: Sequence[str],
    starts: NDArray[np.int64],
    docs: NDArray[np.uint32],
    tfs: NDArray[np.uint32],
    lengths: NDArray[np.uint32],
) -> FieldTotals:
    """Write the files of one field (layout.py). terms: sorted; arrays: as `invert` gives them."""
    directory.mkdir()
    forward, forward_terms, forward_tfs = transpose(starts, docs, tfs, len(lengths))
    write_strings(directory / "terms", terms)
    arrays: dict[str, NDArray[Any]] = {
        "postings": starts.astype(np.uint64),
        "docs": docs,
        "tfs": _narrow(tfs),
        "lengths": lengths,
        "forward": forward.astype(np.uint64),
        "forward_terms": forward_terms,
        "forward_tfs": _narrow(forward_tfs),
    }
    for name, values in arrays.items():
        np.save(directory / f"{name}.npy", values)
    return field_totals(lengths)


def field_totals(lengths: NDArray[Any]) -> FieldTotals:
    """Statistics of a field from the lengths (documents,) of its documents."""
    return FieldTotals(int(np.count_nonzero(lengths)), int(lengths.sum(dtype=np.int64)))


def _narrow(values: NDArray[np.uint32]) -> NDArray[np.uint16] | NDArray[np.uint32]:
    """Half the bytes where every value fits."""
    return values.astype(np.uint16) if not len(values) or values.max() < 2**16 else values


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

    def write(self, directory: Path) -> FieldTotals:
        terms, term_starts, token_terms = self._normalised()
        tokens, doc_starts = np.asarray(self.tokens), np.asarray(self._starts)
        inverted = invert(tokens, doc_starts, term_starts, token_terms, len(terms))
        return write_field(directory, terms, *inverted)

    def _normalised(self) -> tuple[list[str], NDArray[np.int64], NDArray[np.uint32]]:
        """Sorted terms, and for each token number the numbers of its terms (see `invert`)."""
        of_token = [self._analyzer.normalise(token) for token in self._numbers]
        terms = sorted({term for terms in of_token for term in terms})
        number = {term: i for i, term in enumerate(terms)}
        starts = np.zeros(len(of_token) + 1, np.int64)
        np.cumsum([len(terms) for terms in of_token], out=starts[1:])
        flat = np.array([number[term] for terms in of_token for term in terms], np.uint32)
        return terms, starts, flat
