"""How are runs read and written?"""

from __future__ import annotations

import re
from pathlib import Path

from birchbark.artifact import new_file
from birchbark.collection.parsing.intake import Intake
from birchbark.collection.parsing.lines import parse_file
from birchbark.errors import InputError
from birchbark.records import Run

TOO_LARGE = 2.0**128 - 2.0**103  # the smallest number that float32 rounds to infinity


def read_run(path: Path | str) -> Run:
    """Read a run in TREC format: `query_id Q0 doc_id rank score tag`.

    Documents are sorted by score; ties follow the tie rule (see `Ranking`). The rank column is
    ignored, as in trec_eval. The tag of the run is that of the first line.

    Args:
        path: The file, which may be compressed.

    Raises:
        InputError: If a line has another form, a score is not finite in float32, a document occurs
            twice for the same query, or the file is empty.
    """
    path = Path(path)
    scores: dict[str, dict[str, float]] = {}
    tag = ""
    for location, (query_id, doc_id, score, line_tag) in parse_file(path, _parse, Intake()):
        of_query = scores.setdefault(query_id, {})
        if doc_id in of_query:
            raise InputError(
                f"document {doc_id} is ranked twice for query {query_id}",
                where=location,
                remedy="trec_eval rejects such runs too; write one line per document",
            )
        of_query[doc_id] = score
        tag = tag or line_tag
    if not scores:
        raise InputError("no ranked documents", where=str(path))
    return Run.of(scores, tag)


def _parse(line: str) -> tuple[str, str, float, str]:
    columns = line.split()
    if len(columns) != 6:
        hint = "is the tag missing?" if len(columns) == 5 else ""
        wanted = "6: query_id Q0 doc_id rank score tag"
        raise InputError(
            "wrong number of columns", wanted=wanted, found=str(len(columns)), remedy=hint
        )
    query_id, _, doc_id, _, score, tag = columns
    try:
        number = float(score)
    except ValueError:
        number = None
    if number is None or "_" in score or not score.isascii():  # Python reads 1_0 and ３ as well
        raise InputError("score is not a number", found=repr(score))
    if not abs(number) < TOO_LARGE:
        raise InputError("score is not finite in single precision", found=repr(score))
    return query_id, doc_id, number, tag


def write_run(run: Run, path: Path | str) -> None:
    """Write a run in TREC format, atomically.

    Each score is written with the fewest digits from which the same float32 can be read.

    Args:
        run: The run.
        path: The file to write; an existing file is replaced.

    Raises:
        InputError: If a query id, document id or tag is empty, or contains white space or a lone
            surrogate, which the format cannot represent.
    """
    path = Path(path)
    with new_file(path) as out:
        for query_id, ranking in run.rankings.items():
            bad = next((s for s in (query_id, run.tag, *ranking.doc_ids) if not _is_valid(s)), None)
            if bad is not None:
                raise invalid_id(bad, str(path))
            scores = ranking.scores.astype(str).tolist()
            out.writelines(
                f"{query_id} Q0 {doc_id} {rank} {score} {run.tag}\n"
                for rank, (doc_id, score) in enumerate(zip(ranking.doc_ids, scores, strict=True), 1)
            )


def invalid_id(found: str, where: str) -> InputError:
    """Return the error for an id or tag that cannot be a column of a run."""
    return InputError(
        f"run files cannot contain {found!r}",
        where=where,
        wanted="ids and tags without white space or lone surrogates",
        remedy="use another id or tag",
    )


def _is_valid(text: str) -> bool:
    """Return whether `text` can be a column of a run."""
    return re.fullmatch(r"[^\s\ud800-\udfff\ufeff][^\s\ud800-\udfff]*", text) is not None
