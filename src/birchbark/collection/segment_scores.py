"""How are scores of documents' segments read that others have computed?"""

from __future__ import annotations

from pathlib import Path

from birchbark.collection.intake import Intake
from birchbark.collection.jsonl import json_object, take_id
from birchbark.collection.lines import parsed_lines
from birchbark.errors import InputError

QUERY_IDS, DOC_IDS = ("qid", "query_id"), ("docid", "doc_id", "docno", "id")
LARGEST = 3e38
SCORES = ("scores", "segment_scores", "sentence_scores", "paragraph_scores")

Scores = dict[str, dict[str, tuple[float, ...]]]  # query_id → doc_id → its segments', as they stand


def read_segment_scores(path: Path) -> Scores:
    """Scores in JSON lines: an object for each query and document, with a list of numbers.

    The list is the first of `scores`, `segment_scores`, `sentence_scores`, `paragraph_scores` that
    is there; it may be empty. Raises InputError for anything else, and for a document that comes
    twice for one query.
    """
    found: Scores = {}
    for place, (query_id, doc_id, scores) in parsed_lines(path, _parse, Intake()):
        of_query = found.setdefault(query_id, {})
        if doc_id in of_query:
            raise InputError(f"document {doc_id} comes twice for query {query_id}", where=place)
        of_query[doc_id] = scores
    if not found:
        raise InputError("no scores", where=str(path))
    return found


def _parse(line: str) -> tuple[str, str, tuple[float, ...]]:
    values = json_object(line)
    query_id, doc_id = take_id(values, QUERY_IDS), take_id(values, DOC_IDS)
    scores = next((values[name] for name in SCORES if name in values), None)
    if not isinstance(scores, list) or not all(_is_number(score) for score in scores):
        raise InputError(
            f"no scores of document {doc_id}",
            wanted=f"a list of finite numbers named {' or '.join(SCORES)}",
        )
    return query_id, doc_id, tuple(map(float, scores))


def _is_number(value: object) -> bool:
    """Whether it is one that float32 holds, as scores do."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return -LARGEST <= value <= LARGEST  # neither is nan
