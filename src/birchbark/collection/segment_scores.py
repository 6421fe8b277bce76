"""How are segment scores that another program has computed read?"""

from __future__ import annotations

from pathlib import Path

from birchbark.collection.jsonl import json_object
from birchbark.collection.parsing.intake import Intake
from birchbark.collection.parsing.lines import parse_file
from birchbark.errors import InputError
from birchbark.record_values import take_id

QUERY_IDS, DOC_IDS = ("qid", "query_id"), ("docid", "doc_id", "docno", "id")
MAX_SCORE = 3e38  # float32 can represent scores up to 3.4e38
SCORES = ("scores", "segment_scores", "sentence_scores", "paragraph_scores")

Scores = dict[str, dict[str, tuple[float, ...]]]  # query_id → doc_id → segment scores


def read_segment_scores(path: Path) -> Scores:
    """Read segment scores from JSON lines, with one object per query and document.

    The scores are a list, which may be empty, named `scores`, `segment_scores`, `sentence_scores`
    or `paragraph_scores`. Raises InputError for a line of another form, for a document that occurs
    twice for the same query, and for a file without scores.
    """
    scores: Scores = {}
    for location, (query_id, doc_id, of_document) in parse_file(path, _parse, Intake()):
        of_query = scores.setdefault(query_id, {})
        if doc_id in of_query:
            raise InputError(f"document {doc_id} occurs twice for query {query_id}", where=location)
        of_query[doc_id] = of_document
    if not scores:
        raise InputError("no scores", where=str(path))
    return scores


def _parse(line: str) -> tuple[str, str, tuple[float, ...]]:
    values = json_object(line)
    query_id, doc_id = take_id(values, QUERY_IDS), take_id(values, DOC_IDS)
    scores = next((values[name] for name in SCORES if name in values), None)
    if not isinstance(scores, list) or not all(_is_score(score) for score in scores):
        raise InputError(
            f"no scores for document {doc_id}",
            wanted=f"a list of finite numbers named {' or '.join(SCORES)}",
        )
    return query_id, doc_id, tuple(map(float, scores))


def _is_score(value: object) -> bool:
    """Return whether `value` is a number that is finite in float32."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return -MAX_SCORE <= value <= MAX_SCORE  # false for NaN
