"""How are folds of queries read that others have published?"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection
from pathlib import Path

from birchbark.errors import InputError

WANTED = "a JSON list of lists of query ids, or an object of such lists by name"


def read_folds(path: Path, judged: Collection[str]) -> tuple[tuple[str, ...], ...]:
    """The folds in the file at `path`, in its order: a list of lists of ids, as Anserini has them.

    An object of lists, as CODEC has it, is the same with names. judged: ids of the queries that are
    to be in one fold, and in one alone; others stay in their folds. Raises InputError for anything
    else.
    """
    try:
        found = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as broken:
        raise InputError(f"cannot be read: {broken}", where=str(path), wanted=WANTED) from None
    lists = list(found.values()) if isinstance(found, dict) else found
    if not isinstance(lists, list) or not all(isinstance(one, list) for one in lists):
        raise InputError("no folds", where=str(path), wanted=WANTED)
    for query_id in (query_id for one in lists for query_id in one):
        if isinstance(query_id, bool) or not isinstance(query_id, str | int):
            raise InputError("no query id", where=str(path), wanted=WANTED, found=repr(query_id))
    folds = tuple(tuple(str(query_id) for query_id in one) for one in lists)
    dealt = [query_id for fold in folds for query_id in fold]
    if twice := [query_id for query_id, times in Counter(dealt).items() if times > 1]:
        raise InputError(f"query {twice[0]} is in two folds", where=str(path))
    if absent := sorted(set(judged) - set(dealt)):
        raise InputError(f"judged queries are in no fold: {', '.join(absent[:5])}", where=str(path))
    empty = [number for number, fold in enumerate(folds, 1) if not set(judged) & set(fold)]
    if len(folds) < 2 or empty:
        raise InputError(
            "folds do not divide the judged queries",
            where=str(path),
            wanted="two or more, with judged queries in each",
            found=f"no judged query in fold {empty[0]}" if empty else f"{len(folds)}",
        )
    return folds
