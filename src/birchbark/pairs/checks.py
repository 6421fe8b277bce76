"""Which checks do pairs pass when they are read or written?"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator

from birchbark.collection.intake import Intake
from birchbark.errors import InputError
from birchbark.records import Pair


def checked_pairs(
    located: Iterable[tuple[str, Pair]], where: str, intake: Intake
) -> Iterator[Pair]:
    """Yield the valid pairs of `located`, pairs with their location (such as `file:line`).

    A pair is a bad record if an id, its query or its text is empty or contains a lone surrogate, if
    its query id has occurred with a different text, or if its document has been judged for the same
    query with a different relevance. A text that is repeated for the same query is noted. Memory
    holds query ids, hashes and grades, but no texts.
    where: the file, for error messages. Raises InputError if there is no valid pair.
    """
    earlier = _EarlierPairs()
    count = 0
    for location, pair in located:
        error = earlier.conflict(pair)
        if error:
            intake.bad(error.at(location))
            continue
        earlier.add(pair, intake)
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
        self._document_grades: dict[int, int] = {}  # hash of (query_id, doc_id) → relevance
        self._text_grades: dict[int, int] = {}  # hash of (query_id, text) → relevance

    def conflict(self, pair: Pair) -> InputError | None:
        """Return an error if `pair` is invalid or contradicts an earlier pair, otherwise None."""
        if pair.fault:
            return InputError(pair.fault)
        query = _digest(pair.query)
        if self._query_texts.get(pair.query_id, query) != query:
            return InputError(
                f"query id {pair.query_id} has two different texts",
                found=repr(pair.query[:80]),
                remedy="give each query a distinct id",
            )
        key = _digest(pair.query_id, pair.doc_id)
        earlier_grade = self._document_grades.get(key, pair.relevance)
        if earlier_grade != pair.relevance:
            return InputError(
                f"document {pair.doc_id} is judged twice for query {pair.query_id}",
                found=f"relevance {earlier_grade} and {pair.relevance}",
                remedy="remove one of the two pairs",
            )
        return None

    def add(self, pair: Pair, intake: Intake) -> None:
        """Add `pair` to the earlier pairs, and note if its text is repeated for its query."""
        self._query_texts.setdefault(pair.query_id, _digest(pair.query))
        self._document_grades[_digest(pair.query_id, pair.doc_id)] = pair.relevance
        text = _digest(pair.query_id, pair.text)
        if text in self._text_grades:
            same = "the same" if self._text_grades[text] == pair.relevance else "different"
            intake.note(f"text repeated for its query, with {same} relevance")
        else:
            self._text_grades[text] = pair.relevance


def _digest(*parts: str) -> int:
    """Return a 64-bit hash; ten million hashes collide with a probability of about 1 in 370,000."""
    digest = hashlib.blake2b("\0".join(parts).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little")
