"""How do several parts of an index become one, as if it had been built from their documents?"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from birchbark.index.compiled import compiled
from birchbark.index.layout import FieldTotals, PartEntry
from birchbark.index.part import finished, write_field
from birchbark.index.reader import FieldPart, Part
from birchbark.index.strings import write_strings
from birchbark.index.texts import TextWriter

FANOUT = 10


def worth_merging(parts: Sequence[PartEntry]) -> Sequence[PartEntry]:
    """Ten neighbours of one order of magnitude, the smallest first; nothing if there are none.

    So an index of n documents has about 10 · log10(n) parts at most, and each document is rewritten
    about log10(n) times.
    """
    groups = [list(group) for _, group in groupby(parts, key=lambda p: len(str(p.documents)))]
    large = [group for group in groups if len(group) >= FANOUT]
    return min(large, key=lambda group: group[0].documents, default=[])


def merge_parts(parts: Sequence[Part], directory: Path) -> PartEntry:
    """Write the documents of `parts` that are not deleted as one part, in the same order."""
    directory.mkdir()
    texts = TextWriter(directory / "texts")
    doc_ids = []
    for part in parts:
        for doc_id, fields in part.live_documents():
            doc_ids.append(doc_id)
            texts.add(fields)
    texts.close()
    write_strings(directory / "doc_ids", doc_ids)
    totals = [
        _merge_field(parts, field, directory / f"field-{field}")
        for field in range(len(parts[0].fields))
    ]
    return finished(directory, len(doc_ids), totals)


def _merge_field(parts: Sequence[Part], field: int, directory: Path) -> FieldTotals:
    pieces = [part.fields[field] for part in parts]
    terms = union(pieces)
    number = {term: i for i, term in enumerate(terms)}
    terms_of = [np.array([number[term] for term in piece.terms], np.int64) for piece in pieces]
    places = _new_numbers(parts)

    counts = np.zeros(len(terms) + 1, np.int64)
    for piece, new_terms, new_docs in zip(pieces, terms_of, places, strict=True):
        _count(piece.starts, piece.docs, new_terms, new_docs, counts)
    starts = np.cumsum(counts)
    docs, tfs = np.empty(starts[-1], np.uint32), np.empty(starts[-1], np.uint32)
    position = starts[:-1].copy()
    for piece, new_terms, new_docs in zip(pieces, terms_of, places, strict=True):
        arrays = (piece.starts, piece.docs, piece.tfs)
        _fill(arrays, new_terms, new_docs, position, docs, tfs)

    alive = counts[1:] > 0
    kept = [term for term, is_alive in zip(terms, alive.tolist(), strict=True) if is_alive]
    starts = np.concatenate([[0], starts[1:][alive]]).astype(np.int64)
    lengths = np.concatenate([p.lengths[n >= 0] for p, n in zip(pieces, places, strict=True)])
    return write_field(directory, kept, starts, docs, tfs, lengths)


def union(pieces: Sequence[FieldPart]) -> list[str]:
    """All terms, sorted by bytes."""
    ordered = heapq.merge(*([term.encode() for term in piece.terms] for piece in pieces))
    return [term.decode() for term, _ in groupby(ordered)]


def _new_numbers(parts: Sequence[Part]) -> list[NDArray[np.int64]]:
    """For each part, (documents,): the number in the merged part, −1 for a deleted document."""
    places, next_number = [], 0
    for part in parts:
        live = np.ones(part.documents, bool) if part.deleted is None else ~part.deleted
        numbers = next_number + np.cumsum(live) - 1
        places.append(np.where(live, numbers, -1))
        next_number += int(live.sum())
    return places


@compiled
def _count(
    starts: NDArray[Any],
    docs: NDArray[Any],
    new_terms: NDArray[np.int64],
    new_docs: NDArray[np.int64],
    counts: NDArray[np.int64],
) -> None:
    """Add to counts[t + 1] how many living postings term t of the merged part gets."""
    for term in range(len(new_terms)):
        for i in range(starts[term], starts[term + 1]):
            if new_docs[docs[i]] >= 0:
                counts[new_terms[term] + 1] += 1


@compiled
def _fill(
    postings: tuple[NDArray[Any], NDArray[Any], NDArray[Any]],
    new_terms: NDArray[np.int64],
    new_docs: NDArray[np.int64],
    position: NDArray[np.int64],
    out_docs: NDArray[np.uint32],
    out_tfs: NDArray[np.uint32],
) -> None:
    """Copy living postings (starts, docs, tfs) to where `position` says, and move it on."""
    starts, docs, tfs = postings
    for term in range(len(new_terms)):
        for i in range(starts[term], starts[term + 1]):
            doc = new_docs[docs[i]]
            if doc >= 0:
                at = position[new_terms[term]]
                out_docs[at] = doc
                out_tfs[at] = tfs[i]
                position[new_terms[term]] += 1
