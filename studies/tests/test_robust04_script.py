"""Does training/passages/robust04.sh make pairs of the documents of Robust04?"""

from __future__ import annotations

from pathlib import Path

import pytest

from birchbark.collection.parsing.intake import Intake
from birchbark.pairs.read import read_pairs
from conftest import DOCUMENTS
from original_formats import NEWS_QRELS, NEWS_QUERIES, run_script, write_robust04

pytest.importorskip("ncompress")


@pytest.mark.slow
def test_the_congressional_record_is_left_out(tmp_path: Path) -> None:
    """All judged documents are paired, and unjudged ones, each with its own text."""
    write_robust04(tmp_path)
    run_script("robust04.sh", tmp_path)
    pairs = list(read_pairs(tmp_path / "robust04.windows.tsv", Intake(), highest=2))
    judged = {tuple(line.split()[::2]) for line in NEWS_QRELS.splitlines()}
    assert judged < {(pair.query_id, pair.doc_id) for pair in pairs}
    assert {pair.query for pair in pairs} == set(NEWS_QUERIES)
    texts = {document.doc_id: document.text.split()[-3:] for document in DOCUMENTS}
    assert {pair.doc_id for pair in pairs} <= set(texts)
    assert not any("Not in this collection" in pair.text for pair in pairs)
    for doc_id, last in texts.items():
        assert any(" ".join(last) in pair.text for pair in pairs if pair.doc_id == doc_id)
