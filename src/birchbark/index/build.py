"""How do Documents become an index on disk?"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from birchbark.artifact import new_directory
from birchbark.errors import InputError
from birchbark.index.inversion import invert, transpose
from birchbark.index.layout import DEFAULT_FIELDS, FieldTotals, Manifest, PartEntry
from birchbark.index.reader import Index
from birchbark.index.strings import write_strings
from birchbark.index.texts import TextWriter
from birchbark.records import Document
from birchbark.text.analyzer import Analyzer, analyzer

PART_TOKENS = 40_000_000


def build_index(
    documents: Iterable[Document],
    directory: Path | str,
    *,
    analyzer_name: str = "english",
    fields: Mapping[str, Sequence[str]] | None = None,
    replace: bool = False,
    part_tokens: int = PART_TOKENS,
) -> Index:
    """Index `documents` under `directory` and open the result; it appears whole or not at all.

    fields: indexed field → the document fields whose texts it joins; one field `contents` of title
    and text where not given. part_tokens: a part is closed when it holds this many tokens, which
    bounds the memory needed (about 20 bytes a token).

    Raises InputError if `directory` exists and `replace` is false, if two documents share an id, or
    if there are no documents.
    """
    chosen = analyzer(analyzer_name)
    sources = {name: tuple(names) for name, names in (fields or DEFAULT_FIELDS).items()}
    directory = Path(directory)
    if replace and directory.exists():
        Manifest.read(directory)  # only an index may be replaced
    with new_directory(directory, replace=replace) as scratch:
        parts: list[PartEntry] = []
        seen: set[str] = set()
        part = _Part(scratch / "part-000000", chosen, sources)
        for document in documents:
            if document.doc_id in seen:
                raise InputError(f"a second document with the id {document.doc_id}")
            seen.add(document.doc_id)
            if part.tokens >= part_tokens:
                parts.append(part.close())
                part = _Part(scratch / f"part-{len(parts):06}", chosen, sources)
            part.add(document)
        if not seen:
            raise InputError("no documents to index")
        parts.append(part.close())
        Manifest(chosen.name, sources, tuple(parts)).write(scratch)
    return Index(directory)


class _Part:
    """One part being filled."""

    def __init__(
        self, directory: Path, chosen: Analyzer, sources: Mapping[str, Sequence[str]]
    ) -> None:
        directory.mkdir()
        self._directory = directory
        self._ids: list[str] = []
        self._texts = TextWriter(directory / "texts")
        self._fields = [(names, _Field(chosen)) for names in sources.values()]

    @property
    def tokens(self) -> int:
        return sum(len(field.tokens) for _, field in self._fields)

    def add(self, document: Document) -> None:
        self._ids.append(document.doc_id)
        self._texts.add(document.fields)
        for names, field in self._fields:
            field.add("\n".join(document.fields.get(name, "") for name in names))

    def close(self) -> PartEntry:
        self._texts.close()
        write_strings(self._directory / "doc_ids", self._ids)
        totals = [
            field.write(self._directory / f"field-{number}")
            for number, (_, field) in enumerate(self._fields)
        ]
        return PartEntry(self._directory.name, len(self._ids), tuple(totals))


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
        directory.mkdir()
        terms, term_starts, token_terms = self._normalised()
        starts, docs, tfs, lengths = invert(
            np.asarray(self.tokens),
            np.asarray(self._starts),
            term_starts,
            token_terms,
            len(terms),
        )
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
        return FieldTotals(int(np.count_nonzero(lengths)), int(lengths.sum(dtype=np.int64)))

    def _normalised(self) -> tuple[list[str], NDArray[np.int64], NDArray[np.uint32]]:
        """Sorted terms, and for each token number the numbers of its terms (see `invert`)."""
        of_token = [self._analyzer.normalise(token) for token in self._numbers]
        terms = sorted({term for terms in of_token for term in terms})
        number = {term: i for i, term in enumerate(terms)}
        starts = np.zeros(len(of_token) + 1, np.int64)
        np.cumsum([len(terms) for terms in of_token], out=starts[1:])
        flat = np.array([number[term] for terms in of_token for term in terms], np.uint32)
        return terms, starts, flat


def _narrow(values: NDArray[np.uint32]) -> NDArray[np.uint16] | NDArray[np.uint32]:
    """Half the bytes where every value fits."""
    return values.astype(np.uint16) if not len(values) or values.max() < 2**16 else values
