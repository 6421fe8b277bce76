"""How are parts merged into one that equals a part built from their live documents?"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from itertools import accumulate, groupby, pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from birchbark.index.layout import PartEntry
from birchbark.index.part import Part, PartField, chunk_bounds
from birchbark.index.part_builder import FieldWriter, finish_part
from birchbark.index.stored_fields import StoredFieldWriter
from birchbark.index.string_table import write_strings

MERGE_FACTOR = 10
FORWARD_DOCUMENTS = 10_000  # documents whose forward index is copied at a time
Numbers = NDArray[np.int64]


def parts_to_merge(parts: Sequence[PartEntry]) -> Sequence[PartEntry]:
    """Return ten or more adjacent parts of the same order of magnitude, or an empty list.

    A part that is followed by larger ones counts as one of the largest of these. So the orders
    never rise from one part to the next, and an index of n documents has at most 9 parts of each
    order, whatever the sizes of commits. Of several groups, the one with the lowest order is
    returned. If commits are of similar size, each document is rewritten about log10(n) times.
    """
    sizes = [len(str(part.documents)) for part in reversed(parts)]
    orders = [*accumulate(sizes, max)][::-1]
    groups = groupby(zip(parts, orders, strict=True), key=lambda pair: pair[1])
    large = [group for group in (list(found) for _, found in groups) if len(group) >= MERGE_FACTOR]
    return [part for part, _ in large[-1]] if large else []


def merge_parts(parts: Sequence[Part], directory: Path, forward: bool) -> PartEntry:
    """Write the live documents of `parts` as one part, in the same order.

    forward: whether the parts have a forward index.
    """
    directory.mkdir()
    stored_fields = StoredFieldWriter(directory / "texts")
    doc_ids = []
    for part in parts:
        for doc_id, fields in part.live_documents():
            doc_ids.append(doc_id)
            stored_fields.add(fields)
    stored_fields.close()
    write_strings(directory / "doc_ids", doc_ids)
    writer = FieldWriter(directory, forward)
    new_docs = merged_numbers(parts)
    for number in range(len(parts[0].fields)):
        _merge_field([part.fields[number] for part in parts], new_docs, writer, forward)
    return finish_part(directory, len(doc_ids), writer.close())


def _merge_field(
    fields: Sequence[PartField], new_docs: Sequence[Numbers], writer: FieldWriter, forward: bool
) -> None:
    """Merge one field. fields: the field in each part. new_docs: computed by `merged_numbers`."""
    lengths = np.concatenate([f.lengths[n >= 0] for f, n in zip(fields, new_docs, strict=True)])
    # Number the union of all terms. new_terms: for each part, its terms' new numbers, (terms,).
    terms = union_of_terms(fields)
    number = {term: i for i, term in enumerate(terms)}
    new_terms = [np.array([number[t] for t in field.terms()], np.int64) for field in fields]
    occurs = np.zeros(len(terms), bool)  # whether each term occurs in a live document
    # Merge the lists of one range of terms at a time.
    for begin, end in pairwise(_term_chunks(fields, new_terms, len(terms))):
        of_parts = zip(fields, new_docs, new_terms, strict=True)
        lists = [_renumbered_postings(*part, begin, end) for part in of_parts]
        owner, docs, tfs = (np.concatenate(column) for column in zip(*lists, strict=True))
        order = np.argsort(owner, kind="stable")  # by term; documents stay in order
        sizes = np.bincount(owner, minlength=end - begin)
        nonempty = sizes > 0
        occurs[begin:end] = nonempty
        starts = np.concatenate([[0], np.cumsum(sizes[nonempty])])
        occurring = [terms[begin + i] for i in np.flatnonzero(nonempty).tolist()]
        writer.add_lists(occurring, starts, docs[order], tfs[order], lengths)
    if forward:
        final_terms = np.cumsum(occurs) - 1  # numbers among the terms that still occur
        for field, docs_of_part, terms_of_part in zip(fields, new_docs, new_terms, strict=True):
            _copy_forward(field, docs_of_part, final_terms[terms_of_part], writer)
    writer.end_field(lengths)


def _term_chunks(
    fields: Sequence[PartField], new_terms: Sequence[Numbers], terms: int
) -> list[int]:
    """Return the bounds of ranges of merged terms with about POSTINGS_PER_CHUNK postings each."""
    sizes = np.zeros(terms, np.int64)
    for field, numbers in zip(fields, new_terms, strict=True):
        sizes[numbers] += field.list_sizes()
    return chunk_bounds(sizes)


def _renumbered_postings(
    field: PartField, new_docs: Numbers, new_terms: Numbers, begin: int, end: int
) -> tuple[Numbers, NDArray[np.uint32], NDArray[np.uint32]]:
    """Return the postings of live documents for the merged terms begin:end in one part.

    The result is three arrays (postings,): term − begin, new document number, and frequency.
    """
    low, high = np.searchsorted(new_terms, [begin, end]).tolist()
    counts, postings = field.read_lists(low, high)
    owner, docs = np.repeat(new_terms[low:high] - begin, counts), new_docs[postings.docs]
    live = docs >= 0
    return owner[live], docs[live].astype(np.uint32), postings.tfs[live]


def _copy_forward(
    field: PartField, new_docs: Numbers, new_terms: Numbers, writer: FieldWriter
) -> None:
    """Write the forward index of the live documents with new term numbers."""
    live = np.flatnonzero(new_docs >= 0)
    for batch in np.array_split(live, len(live) // FORWARD_DOCUMENTS + 1):
        sizes, vectors = field.term_vectors(batch)
        starts = np.concatenate([[0], np.cumsum(sizes)])
        writer.add_forward(starts, new_terms[vectors.docs].astype(np.uint32), vectors.tfs)


def union_of_terms(fields: Sequence[PartField]) -> list[str]:
    """Return the distinct terms of a field over several parts, sorted by their UTF-8 bytes."""
    ordered = heapq.merge(*([term.encode() for term in field.terms()] for field in fields))
    return [term.decode() for term, _ in groupby(ordered)]


def merged_numbers(parts: Sequence[Part]) -> list[Numbers]:
    """Return for each part the new number of each document, (documents,); −1 if it is deleted."""
    of_parts, next_number = [], 0
    for part in parts:
        live = np.ones(part.documents, bool) if part.deleted is None else ~part.deleted
        numbers = next_number + np.cumsum(live) - 1
        of_parts.append(np.where(live, numbers, -1))
        next_number += int(live.sum())
    return of_parts
