"""What must hold for the pairs of one file, whatever its format?"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator

from birchbark.collection.intake import Intake
from birchbark.errors import InputError
from birchbark.records import Pair


def checked_pairs(
    located: Iterable[tuple[str, Pair]], where: str, intake: Intake
) -> Iterator[Pair]:
    """The pairs of `located` without their places; each that contradicts one before it is bad.

    Bad are: an id or text that is empty or holds half a character, a query id that stands for two
    texts, a query and document judged twice with different relevance. Texts judged twice for one
    query under different ids are noted. Holds two numbers for each pair, and no text.
    Raises InputError if there is no pair at all.
    """
    seen = _Seen()
    kept = 0
    for place, pair in located:
        error = seen.fault(pair)
        if error:
            intake.bad(error.at(place))
            continue
        seen.add(pair, intake)
        kept += 1
        yield pair
    if not kept:
        raise InputError(
            "no pairs",
            where=where,
            found=f"{len(intake.skipped)} bad records" if intake.skipped else "",
        )


class _Seen:
    """What the pairs so far said, as numbers made from their texts."""

    def __init__(self) -> None:
        self._queries: dict[str, int] = {}
        self._of_document: dict[int, int] = {}
        self._of_text: dict[int, int] = {}

    def fault(self, pair: Pair) -> InputError | None:
        """Why `pair` cannot stand beside those before it."""
        if pair.fault:
            return InputError(pair.fault)
        asked = _digest(pair.query)
        if self._queries.get(pair.query_id, asked) != asked:
            return InputError(
                f"query id {pair.query_id} stands for two texts",
                found=repr(pair.query[:80]),
                remedy="give each query an id of its own",
            )
        before = self._of_document.get(_digest(pair.query_id, pair.doc_id), pair.relevance)
        if before != pair.relevance:
            return InputError(
                f"document {pair.doc_id} is judged twice for query {pair.query_id}",
                found=f"relevance {before} and {pair.relevance}",
                remedy="keep one of the two pairs",
            )
        return None

    def add(self, pair: Pair, intake: Intake) -> None:
        """Remember `pair`, and note if its text was judged before."""
        self._queries.setdefault(pair.query_id, _digest(pair.query))
        self._of_document[_digest(pair.query_id, pair.doc_id)] = pair.relevance
        text = _digest(pair.query_id, pair.text)
        if text in self._of_text:
            same = "the same" if self._of_text[text] == pair.relevance else "another"
            intake.note(f"text met again for its query, with {same} relevance")
        else:
            self._of_text[text] = pair.relevance


def _digest(*parts: str) -> int:
    """64 bits: among ten million pairs, one chance in 300,000 that any two share one."""
    digest = hashlib.blake2b("\0".join(parts).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little")
