"""How are published folds of queries read?"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection
from pathlib import Path

from birchbark.errors import InputError

WANTED = "a JSON list of lists of query ids, or a JSON object whose values are such lists"


def read_folds(path: Path, judged: Collection[str] | None = None) -> tuple[tuple[str, ...], ...]:
    """Read folds from JSON: a list of lists of query ids (Anserini) or an object of lists (CODEC).

    Queries without judgments remain in their folds.

    judged: the ids of the judged queries; None for those in the folds. Raises InputError unless
    each of them is in a fold, no query is in two folds, and there are two or more folds, each with
    a judged query.
    """
    try:
        value = json.loads(path.read_text("utf-8-sig"))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"cannot be read: {error}", where=str(path), wanted=WANTED) from None
    lists = list(value.values()) if isinstance(value, dict) else value
    if not isinstance(lists, list) or not all(isinstance(fold, list) for fold in lists):
        raise InputError("not a list of folds", where=str(path), wanted=WANTED)
    for query_id in (query_id for fold in lists for query_id in fold):
        if isinstance(query_id, bool) or not isinstance(query_id, str | int):
            raise InputError("not a query id", where=str(path), wanted=WANTED, found=repr(query_id))
    folds = tuple(tuple(str(query_id) for query_id in fold) for fold in lists)
    query_ids = [query_id for fold in folds for query_id in fold]
    if repeated := [query_id for query_id, count in Counter(query_ids).items() if count > 1]:
        holding = sum(repeated[0] in fold for fold in folds)
        twice = "in two folds" if holding > 1 else "twice in one fold"
        raise InputError(f"query {repeated[0]} is {twice}", where=str(path))
    judged = query_ids if judged is None else judged
    if absent := sorted(set(judged) - set(query_ids)):
        raise InputError(f"judged queries are in no fold: {', '.join(absent[:5])}", where=str(path))
    empty = [number for number, fold in enumerate(folds, 1) if not set(judged) & set(fold)]
    if len(folds) < 2 or empty:
        raise InputError(
            "folds do not divide the judged queries",
            where=str(path),
            wanted="two or more folds, each with a judged query",
            found=f"no judged query in fold {empty[0]}" if empty else f"{len(folds)}",
        )
    return folds
