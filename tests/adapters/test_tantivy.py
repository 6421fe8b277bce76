"""Does the tantivy engine fulfil the engine contract and rank by BM25?"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from engine_contract import contract_violations

from birchbark.adapters.tantivy import TantivyEngine
from birchbark.errors import InputError, MissingPackageError
from birchbark.index.build_index import build_index
from birchbark.records import Document
from birchbark.retrieve.bm25 import BM25
from birchbark.retrieve.engine import IndexEngine
from birchbark.retrieve.first_stage import FirstStage
from conftest import DOCUMENTS


def test_tantivy_fulfils_the_engine_contract(tmp_path: Path) -> None:
    """Ties, query syntax and unusual ids are handled as the contract requires."""
    pytest.importorskip("tantivy", reason="the extra tantivy is not installed")
    assert contract_violations(lambda d: TantivyEngine.build(d, tmp_path / "t")) == []


def test_tantivy_ranks_as_our_bm25(tmp_path: Path) -> None:
    """Scores differ only by the factor k1 + 1 and by the rounding of document lengths."""
    pytest.importorskip("tantivy", reason="the extra tantivy is not installed")
    theirs = TantivyEngine.build(DOCUMENTS, tmp_path / "t")
    ours = IndexEngine(build_index(DOCUMENTS, tmp_path / "i"), FirstStage(BM25(1.2, 0.75)))
    for query in ("birch bark canoe", "river", "bees dance by the river"):
        expected, ranking = ours.rank(query, 10), theirs.rank(query, 10)
        assert ranking.doc_ids == expected.doc_ids
        assert ranking.scores / 2.2 == pytest.approx(expected.scores, rel=1e-5)


def test_documents_keep_the_fields_that_models_read(tmp_path: Path) -> None:
    """They come back as they were indexed, so that models read the same text."""
    pytest.importorskip("tantivy", reason="the extra tantivy is not installed")
    document = Document("bees", {"title": "Bees", "notes": "They dance."}, ("text", "notes"))
    engine = TantivyEngine.build([document], tmp_path / "t")
    assert engine.documents(["bees"]) == [document]


def test_invalid_collections_and_folders_are_refused(tmp_path: Path) -> None:
    """No documents, a duplicate id, an empty id and a folder without an index raise InputError."""
    pytest.importorskip("tantivy", reason="the extra tantivy is not installed")
    with pytest.raises(InputError, match="no documents"):
        TantivyEngine.build([], tmp_path / "t")
    with pytest.raises(InputError, match="second document"):
        TantivyEngine.build([DOCUMENTS[0], DOCUMENTS[0]], tmp_path / "t")
    with pytest.raises(InputError, match=r"document ''.*empty id"):
        TantivyEngine.build([Document("", {})], tmp_path / "t")
    assert not (tmp_path / "t").exists()
    with pytest.raises(InputError, match="not a tantivy index"):
        TantivyEngine(tmp_path)


def test_only_a_tantivy_index_is_replaced(tmp_path: Path) -> None:
    """Other folders are not overwritten; ids that tantivy would drop are refused."""
    pytest.importorskip("tantivy", reason="the extra tantivy is not installed")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("years of work")
    with pytest.raises(InputError, match="not a tantivy index"):
        TantivyEngine.build(DOCUMENTS, tmp_path / "mine", replace=True)
    assert (tmp_path / "mine" / "thesis.tex").exists()
    with pytest.raises(InputError, match="too long for tantivy"):
        TantivyEngine.build([Document("x" * 70_000, {"text": "bee"})], tmp_path / "t")
    engine = TantivyEngine.build(DOCUMENTS, tmp_path / "t")
    assert engine.rank("river", 10**9) == engine.rank("river", 10)


def test_a_missing_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the pip command that installs it."""
    monkeypatch.setitem(sys.modules, "tantivy", None)
    with pytest.raises(MissingPackageError, match=r"birchbark\[tantivy\]"):
        TantivyEngine.build(DOCUMENTS, tmp_path / "t")
