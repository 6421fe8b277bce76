"""How do commands compare evaluated runs with the first one, and print them as JSON?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from birchbark import defaults
from birchbark.cli.console import notify
from birchbark.errors import MissingPackageError

if TYPE_CHECKING:
    from birchbark.evaluate.measures import Results
    from birchbark.evaluate.significance import Difference

    Differences = Sequence[Mapping[str, Difference] | None]


def compare_to_first(
    results: Sequence[Results], seed: int, level: float = defaults.SIGNIFICANCE_LEVEL
) -> Differences:
    """Return the differences of each result from the first, and None for the first itself.

    Without scipy, or with only one judged query, all are None, and a note is printed.
    """
    from birchbark.evaluate.significance import compare

    queries = len(next(iter(results[0].values.values())))
    if queries < 2 and len(results) > 1:
        notify("note: one judged query is too few for tests and intervals")
        return [None] * len(results)
    try:
        return [None, *compare(results[0], results[1:], seed=seed, level=level)]
    except MissingPackageError as missing:
        notify(f"note: {missing}")
        return [None] * len(results)


def result_fields(
    file: Path,
    result: Results,
    difference: Mapping[str, Difference] | None,
    grades: Mapping[int | None, int] | None = None,
) -> dict[str, object]:
    """Return what --json prints for one run."""
    counts = {"unjudged" if g is None else str(g): n for g, n in (grades or {}).items()}
    return {
        "run": str(file),
        "tag": result.tag,
        "queries": len(next(iter(result.values.values()))),
        "unranked": result.unranked,
        "unjudged": result.unjudged,
        "means": result.means,
        "difference": {n: asdict(d) for n, d in difference.items()} if difference else None,
        "grades": counts or None,
        "per_query": result.values,
    }
