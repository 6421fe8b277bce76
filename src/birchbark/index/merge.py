"""How do several parts of an index become one, as if it had been built from their documents?"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from itertools import groupby, pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from birchbark.index.layout import PartEntry
from birchbark.index.part import FieldWriter, finished
from birchbark.index.part_reader import FieldPart, Part, cuts
from birchbark.index.strings import write_strings
from birchbark.index.texts import TextWriter

FANOUT = 10
FORWARD_DOCUMENTS = 10_000  # whose terms are copied at a time
Numbers = NDArray[np.int64]


def worth_merging(parts: Sequence[PartEntry]) -> Sequence[PartEntry]:
    """Ten neighbours of one order of magnitude, the smallest first; nothing if there are none.

    So an index of n documents has about 10 · log10(n) parts at most, and each document is rewritten
    about log10(n) times.
    """
    groups = [list(group) for _, group in groupby(parts, key=lambda p: len(str(p.documents)))]
    large = [group for group in groups if len(group) >= FANOUT]
    return min(large, key=lambda group: group[0].documents, default=[])


def merge_parts(parts: Sequence[Part], directory: Path, forward: bool) -> PartEntry:
    """Write the documents of `parts` that are not deleted as one part, in the same order.

    forward: whether the parts have a forward index.
    """
    directory.mkdir()
    texts = TextWriter(directory / "texts")
    doc_ids = []
    for part in parts:
        for doc_id, fields in part.live_documents():
            doc_ids.append(doc_id)
            texts.add(fields)
    texts.close()
    write_strings(directory / "doc_ids", doc_ids)
    writer = FieldWriter(directory, forward)
    places = new_numbers(parts)
    for number in range(len(parts[0].fields)):
        _merge_field([part.fields[number] for part in parts], places, writer, forward)
    return finished(directory, len(doc_ids), writer.close())


def _merge_field(
    pieces: Sequence[FieldPart], places: Sequence[Numbers], writer: FieldWriter, forward: bool
) -> None:
    """Write one field. places: of each part, the new numbers of its documents."""
    lengths = np.concatenate([p.lengths[n >= 0] for p, n in zip(pieces, places, strict=True)])
    terms = union(pieces)
    number = {term: i for i, term in enumerate(terms)}
    numbers = [np.array([number[t] for t in piece.terms()], np.int64) for piece in pieces]
    alive = np.zeros(len(terms), bool)
    for begin, end in pairwise(_edges(pieces, numbers, len(terms))):
        lists = [_renumbered(*of, begin, end) for of in zip(pieces, places, numbers, strict=True)]
        owner, docs, tfs = (np.concatenate(column) for column in zip(*lists, strict=True))
        order = np.argsort(owner, kind="stable")
        sizes = np.bincount(owner, minlength=end - begin)
        kept = sizes > 0
        alive[begin:end] = kept
        starts = np.concatenate([[0], np.cumsum(sizes[kept])])
        held = [terms[begin + i] for i in np.flatnonzero(kept).tolist()]
        writer.add_lists(held, starts, docs[order], tfs[order], lengths)
    if forward:
        for piece, new, own in zip(pieces, places, numbers, strict=True):
            _copy_forward(piece, new, (np.cumsum(alive) - 1)[own], writer)
    writer.end_field(lengths)


def _edges(pieces: Sequence[FieldPart], numbers: Sequence[Numbers], terms: int) -> list[int]:
    """Cuts between merged terms, so that about PIECE postings lie between two cuts."""
    sizes = np.zeros(terms, np.int64)
    for piece, own in zip(pieces, numbers, strict=True):
        sizes[own] += piece.sizes()
    return cuts(sizes)


def _renumbered(
    piece: FieldPart, places: Numbers, numbers: Numbers, begin: int, end: int
) -> tuple[Numbers, NDArray[np.uint32], NDArray[np.uint32]]:
    """Living postings of the merged terms begin:end in one part: term - begin, document, tf."""
    low, high = np.searchsorted(numbers, [begin, end]).tolist()
    counts, postings = piece.lists(low, high)
    owner, docs = np.repeat(numbers[low:high] - begin, counts), places[postings.docs]
    live = docs >= 0
    return owner[live], docs[live].astype(np.uint32), postings.tfs[live]


def _copy_forward(piece: FieldPart, places: Numbers, numbers: Numbers, writer: FieldWriter) -> None:
    """Write the living documents' terms under their new numbers."""
    live = np.flatnonzero(places >= 0)
    for some in np.array_split(live, len(live) // FORWARD_DOCUMENTS + 1):
        sizes, held = piece.vectors(some)
        starts = np.concatenate([[0], np.cumsum(sizes)])
        writer.add_forward(starts, numbers[held.docs].astype(np.uint32), held.tfs)


def union(pieces: Sequence[FieldPart]) -> list[str]:
    """All terms, sorted by bytes."""
    ordered = heapq.merge(*([term.encode() for term in piece.terms()] for piece in pieces))
    return [term.decode() for term, _ in groupby(ordered)]


def new_numbers(parts: Sequence[Part]) -> list[Numbers]:
    """For each part, (documents,): the number in the merged part, −1 for a deleted document."""
    places, next_number = [], 0
    for part in parts:
        live = np.ones(part.documents, bool) if part.deleted is None else ~part.deleted
        numbers = next_number + np.cumsum(live) - 1
        places.append(np.where(live, numbers, -1))
        next_number += int(live.sum())
    return places
