"""Which checks do pairs pass when they are read or written?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from birchbark.collection.parsing.intake import Intake
from birchbark.errors import InputError
from birchbark.pairs.blocks import in_blocks
from birchbark.pairs.hash_table import EMPTY, HashTable, hashes_of
from birchbark.records import Pair

Located = tuple[str, Pair]  # a pair with its location, such as `file:line`


def checked_pairs(located: Iterable[Located], where: str, intake: Intake) -> Iterator[Pair]:
    """Yield the valid pairs of `located`.

    A pair is a bad record if an id, its query or its text is empty or contains a lone surrogate, if
    its query id has occurred with a different text, or if its document has been judged for the same
    query with a different relevance. A text that is repeated for the same query is noted. Memory
    holds query ids, and for each pair two hashes and grades (`HashTable`), but no texts.
    where: the file, for error messages. Raises InputError if there is no valid pair.
    """
    earlier = _EarlierPairs()
    count = 0
    for block in in_blocks(located):
        errors = earlier.check([pair for _, pair in block], intake)
        for number, (location, pair) in enumerate(block):
            if error := errors.get(number):
                intake.bad(error.at(location))
            else:
                count += 1
                yield pair
    if not count:
        raise InputError(
            "no pairs",
            where=where,
            found=f"{len(intake.skipped)} bad records" if intake.skipped else "",
        )


class _EarlierPairs:
    """Hashes of earlier pairs, to detect contradictions."""

    def __init__(self) -> None:
        self._query_texts: dict[str, int] = {}  # query_id → hash of its text
        self._document_grades = HashTable()  # hash of query_id and doc_id → relevance
        self._text_grades = HashTable()  # hash of query_id and text → relevance

    def check(self, pairs: Sequence[Pair], intake: Intake) -> dict[int, InputError]:
        """Return the errors of pairs that are invalid or contradict earlier pairs, by position.

        Texts that are repeated for their query are noted.
        """
        errors: dict[int, InputError] = {}
        queries = hashes_of(pair.query for pair in pairs)[:, 0].tolist()
        for number, (pair, query) in enumerate(zip(pairs, queries, strict=True)):
            if pair.fault:
                errors[number] = InputError(pair.fault)
            elif self._query_texts.setdefault(pair.query_id, query) != query:
                errors[number] = InputError(
                    f"query id {pair.query_id} has two different texts",
                    found=repr(pair.query[:80]),
                    remedy="give each query a distinct id",
                )
        left = [number for number in range(len(pairs)) if number not in errors]
        documents = [f"{pairs[number].query_id}\0{pairs[number].doc_id}" for number in left]
        grades = np.array([pairs[number].relevance for number in left], np.int32)
        before = self._document_grades.set_new(hashes_of(documents), grades)
        for place in np.flatnonzero((before != EMPTY) & (before != grades)).tolist():
            pair = pairs[left[place]]
            errors[left[place]] = InputError(
                f"document {pair.doc_id} is judged twice for query {pair.query_id}",
                found=f"relevance {before[place]} and {pair.relevance}",
                remedy="remove one of the two pairs",
            )
        valid = [number for number in left if number not in errors]
        texts = [f"{pairs[number].query_id}\0{pairs[number].text}" for number in valid]
        grades = np.array([pairs[number].relevance for number in valid], np.int32)
        before = self._text_grades.set_new(hashes_of(texts), grades)
        repeated = before != EMPTY
        for kind, count in (
            ("the same", (repeated & (before == grades)).sum()),
            ("different", (repeated & (before != grades)).sum()),
        ):
            if count:
                intake.notes[f"text repeated for its query, with {kind} relevance"] += int(count)
        return errors
