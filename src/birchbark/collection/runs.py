"""How are runs read and written?"""

from __future__ import annotations

import re
from pathlib import Path

from birchbark.artifact import new_file
from birchbark.collection.intake import Intake
from birchbark.collection.lines import parsed_lines
from birchbark.errors import InputError
from birchbark.records import Ranking, Run

TOO_LARGE = 2.0**128 - 2.0**103  # the least number that float32 rounds to infinity


def read_run(path: Path) -> Run:
    """A run in TREC form: `query_id Q0 doc_id rank score tag`.

    The order is that of the scores under the tie rule (records.py); the rank column is not used, as
    in trec_eval. The tag is that of the first line. Raises InputError for a line of another form, a
    score that is not finite, a document listed twice for one query, or an empty file.
    """
    scores: dict[str, dict[str, float]] = {}
    tag = ""
    for place, (query_id, doc_id, score, line_tag) in parsed_lines(path, _parse, Intake()):
        of_query = scores.setdefault(query_id, {})
        if doc_id in of_query:
            raise InputError(
                f"document {doc_id} is ranked twice for query {query_id}",
                where=place,
                remedy="trec_eval refuses such runs too; keep one line for each document",
            )
        of_query[doc_id] = score
        tag = tag or line_tag
    if not scores:
        raise InputError("no ranked documents", where=str(path))
    rankings = {
        query_id: Ranking.of(list(of_query), list(of_query.values()))
        for query_id, of_query in scores.items()
    }
    return Run(rankings, tag)


def _parse(line: str) -> tuple[str, str, float, str]:
    columns = line.split()
    if len(columns) != 6:
        hint = "missing tag?" if len(columns) == 5 else "query_id Q0 doc_id rank score tag"
        raise InputError("wrong number of fields", wanted="6", found=str(len(columns)), remedy=hint)
    query_id, _, doc_id, _, score, tag = columns
    try:
        number = float(score)
    except ValueError:
        number = None
    if number is None or "_" in score:  # Python reads 1_0 as 10
        raise InputError("score is no number", found=repr(score))
    if not abs(number) < TOO_LARGE:
        raise InputError("score is not finite in single precision", found=repr(score))
    return query_id, doc_id, number, tag


def write_run(run: Run, path: Path) -> None:
    """Write `run` in TREC form, whole or not at all; scores are the shortest that read back equal.

    Raises InputError for a query_id, doc_id or tag that holds white space, which the form cannot
    carry.
    """
    with new_file(path) as out:
        for query_id, ranking in run.rankings.items():
            bad = next((s for s in (query_id, run.tag, *ranking.doc_ids) if not _is_word(s)), None)
            if bad is not None:
                raise InputError(
                    f"run files cannot carry {bad!r}",
                    where=str(path),
                    wanted="ids and tags of whole characters without white space",
                )
            scores = ranking.scores.astype(str).tolist()
            out.writelines(
                f"{query_id} Q0 {doc_id} {rank} {score} {run.tag}\n"
                for rank, (doc_id, score) in enumerate(zip(ranking.doc_ids, scores, strict=True), 1)
            )


def _is_word(text: str) -> bool:
    return re.fullmatch(r"[^\s\ud800-\udfff\ufeff][^\s\ud800-\udfff]*", text) is not None
