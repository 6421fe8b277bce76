"""How are pairs written to the TSV files that `read_pairs` reads?"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import astuple, dataclass, field
from pathlib import Path

from birchbark.artifact import new_file
from birchbark.collection.parsing.intake import Intake
from birchbark.errors import InputError
from birchbark.pairs.checks import checked_pairs
from birchbark.pairs.read import Columns
from birchbark.records import Pair

_UNREADABLE = re.compile(r"[\t\r\n]|^\ufeff")  # separators; dropped at the start of a line


@dataclass(slots=True)
class PairFileStats:
    """Statistics of a written file.

    words: the number of words in all texts.
    highest: the highest grade.
    queries: the ids of all queries.
    answered: the ids of the queries with a relevant pair.
    """

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
    held_out_path: Path | None = None,
    held_out_ids: Collection[str] = (),
) -> list[PairFileStats]:
    """Write the pairs of the queries `held_out_ids` to `held_out_path`, and all others to `path`.

    The TSV files are replaced atomically. Each run of white space within a query or text becomes
    one space, since tabs and line breaks would end columns and lines. Pairs that `read_pairs` would
    reject, except for high grades, are bad records. Returns the statistics of each file. Raises
    InputError if a file would be empty, or if no pair is relevant.
    """
    targets = [path, held_out_path] if held_out_path else [path]
    stats = [PairFileStats() for _ in targets]
    with ExitStack() as stack:
        files = [stack.enter_context(new_file(target)) for target in targets]
        for file in files:
            file.write("\t".join(astuple(Columns())) + "\n")
        for pair in checked_pairs(_normalised(pairs, intake), str(path), intake):
            side = int(pair.query_id in held_out_ids)
            files[side].write("\t".join(map(str, astuple(pair))) + "\n")
            stats[side].add(pair)
        _check(stats, targets)
    return stats


def _normalised(pairs: Iterable[Pair], intake: Intake) -> Iterator[tuple[str, Pair]]:
    """Yield each pair with its location, with white space normalised as in the written file.

    Ids with tabs or line breaks, or that begin with a byte order mark, are bad records.
    """
    for number, pair in enumerate(pairs, 1):
        bad_id = next((i for i in (pair.query_id, pair.doc_id) if _UNREADABLE.search(i)), None)
        if bad_id is None:
            query, text = (" ".join(value.split()) for value in (pair.query, pair.text))
            yield f"pair {number}", Pair(pair.query_id, query, pair.doc_id, text, pair.relevance)
        else:
            intake.bad(
                InputError(
                    f"pair files cannot contain the id {bad_id!r}",
                    where=f"pair {number}",
                    wanted="ids without tabs, line breaks and byte order marks",
                )
            )


def _check(stats: list[PairFileStats], targets: list[Path]) -> None:
    for file_stats, target in zip(stats, targets, strict=True):
        if not file_stats.pairs:
            raise InputError("this file would have no pairs", where=str(target))
    if not any(file_stats.relevant for file_stats in stats):
        raise InputError(
            "no pair is relevant",
            where=str(targets[0]),
            found=f"{sum(file_stats.pairs for file_stats in stats):,} pairs of relevance 0",
            remedy="are the relevant documents in the collection, and at the requested ranks?",
        )
