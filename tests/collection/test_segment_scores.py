"""Are segment scores read that other programs have computed?"""

from __future__ import annotations

from pathlib import Path

import pytest

from birchbark.collection.segment_scores import read_segment_scores
from birchbark.errors import InputError


def test_scores(tmp_path: Path) -> None:
    """They are read in order, under any of their names; further values are ignored."""
    path = tmp_path / "s.jsonl"
    path.write_text(
        '{"qid": 1, "docid": "a", "rank": 1, "paragraph_scores": [0.5, 1, -2]}\n'
        '{"query_id": "1", "doc_id": "b", "scores": []}\n'
    )
    assert read_segment_scores(path) == {"1": {"a": (0.5, 1.0, -2.0), "b": ()}}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"qid": "1", "docid": "a"}', "no scores for document a.*a list of finite numbers"),
        ('{"qid": "1", "docid": "a", "scores": ["x"]}', "no scores for document a"),
        ('{"qid": "1", "docid": "a", "scores": [NaN]}', "no scores for document a"),
        ('{"qid": "1", "docid": "a", "scores": [1e39]}', "no scores for document a"),
        ('{"qid": "1", "docid": "a", "scores": [-' + "9" * 401 + "]}", "no scores for document a"),
        ('{"qid": "1", "docid": "a", "scores": [true]}', "no scores for document a"),
        ('{"docid": "a", "scores": []}', "no id.*qid or query_id"),
        ('{"qid": "1", "docid": "z", "scores": []}', "document z occurs twice for query 1"),
    ],
)
def test_invalid_scores_are_refused(tmp_path: Path, line: str, message: str) -> None:
    """The error names the line."""
    path = tmp_path / "s.jsonl"
    path.write_text('{"qid": "1", "docid": "z", "scores": [1]}\n' + line + "\n")
    with pytest.raises(InputError, match=message) as fault:
        read_segment_scores(path)
    assert "s.jsonl:2" in str(fault.value)


def test_an_empty_file(tmp_path: Path) -> None:
    """It is refused."""
    (tmp_path / "s.jsonl").write_text("")
    with pytest.raises(InputError, match="no scores"):
        read_segment_scores(tmp_path / "s.jsonl")
