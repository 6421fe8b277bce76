"""How do pairs reach a file that `read_pairs` reads, and what is in it then?"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import astuple, dataclass, field
from pathlib import Path

from birchbark.artifact import new_file
from birchbark.collection.intake import Intake
from birchbark.collection.pair_checks import checked_pairs
from birchbark.collection.pairs import Columns
from birchbark.errors import InputError
from birchbark.records import Pair

_BREAK = re.compile(r"[\t\r\n]")


@dataclass(slots=True)
class Tally:
    """What was written to one file. highest: the highest relevance."""

    pairs: int = 0
    relevant: int = 0
    words: int = 0
    highest: int = 0
    queries: set[str] = field(default_factory=set)
    answered: set[str] = field(default_factory=set)

    def add(self, pair: Pair) -> None:
        """Count `pair`."""
        self.pairs += 1
        self.words += len(pair.text.split())
        self.highest = max(self.highest, pair.relevance)
        self.queries.add(pair.query_id)
        if pair.relevance:
            self.relevant += 1
            self.answered.add(pair.query_id)


def write_pairs(
    pairs: Iterable[Pair],
    path: Path,
    intake: Intake,
    held: Path | None = None,
    apart: Collection[str] = (),
) -> list[Tally]:
    """Write TSV to `path`, and the pairs of the queries `apart` to `held`, whole or not at all.

    Each stretch of white space within a query or text becomes one space: tabs and line ends would
    end columns and lines. Pairs that `read_pairs` would refuse beside those before them are bad
    records. Raises InputError if a file would have no pair, or no pair is relevant.
    Gives what is in each file.
    """
    targets = [path, held] if held else [path]
    tallies = [Tally() for _ in targets]
    with ExitStack() as stack:
        files = [stack.enter_context(new_file(target)) for target in targets]
        for file in files:
            file.write("\t".join(astuple(Columns())) + "\n")
        for pair in checked_pairs(_flat(pairs, intake), str(path), intake):
            side = int(pair.query_id in apart)
            files[side].write("\t".join(map(str, astuple(pair))) + "\n")
            tallies[side].add(pair)
        _check(tallies, targets)
    return tallies


def _flat(pairs: Iterable[Pair], intake: Intake) -> Iterator[tuple[str, Pair]]:
    """Place and pair as it is written; an id that a line of TSV cannot hold is bad."""
    for number, pair in enumerate(pairs, 1):
        broken = next((i for i in (pair.query_id, pair.doc_id) if _BREAK.search(i)), None)
        if broken is None:
            query, text = (" ".join(value.split()) for value in (pair.query, pair.text))
            yield f"pair {number}", Pair(pair.query_id, query, pair.doc_id, text, pair.relevance)
        else:
            intake.bad(
                InputError(
                    f"files of pairs cannot carry the id {broken!r}",
                    where=f"pair {number}",
                    wanted="ids without tabs and line ends",
                )
            )


def _check(tallies: list[Tally], targets: list[Path]) -> None:
    for tally, target in zip(tallies, targets, strict=True):
        if not tally.pairs:
            raise InputError("no pairs are left for this file", where=str(target))
    if not any(tally.relevant for tally in tallies):
        raise InputError(
            "no pair is relevant",
            where=str(targets[0]),
            found=f"{sum(tally.pairs for tally in tallies):,} pairs of relevance 0",
            remedy="are the relevant documents in the collection, and at the ranks asked for?",
        )
