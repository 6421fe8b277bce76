"""Do engines keep what engine.py promises, and does the check notice those that don't?"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

from birchbark.errors import InputError, MissingPackageError
from birchbark.index.build import build_index
from birchbark.records import Document, Ranking
from birchbark.retrieve.bm25 import BM25
from birchbark.retrieve.contract import broken_promises
from birchbark.retrieve.engine import Engine, IndexEngine
from birchbark.retrieve.first_stage import FirstStage
from birchbark.retrieve.rm3 import RM3
from birchbark.retrieve.tantivy import TantivyEngine
from birchbark.retrieve.tfidf import TfIdf
from conftest import DOCUMENTS

STAGES = [FirstStage(), FirstStage(BM25(1.2, 0.75)), FirstStage(TfIdf())]


@pytest.mark.parametrize("stage", STAGES)
def test_our_index_keeps_the_promises(tmp_path: Path, stage: FirstStage) -> None:
    """With each model."""
    assert broken_promises(lambda d: IndexEngine(build_index(d, tmp_path / "i"), stage)) == []


def test_an_index_in_parts_keeps_the_promises(tmp_path: Path) -> None:
    """Each document in a part of its own."""
    build = lambda d: IndexEngine(build_index(d, tmp_path / "i", part_tokens=1))  # noqa: E731
    assert broken_promises(build) == []


def test_tantivy_keeps_the_promises(tmp_path: Path) -> None:
    """Ties, syntax, odd ids and all."""
    pytest.importorskip("tantivy", reason="the extra tantivy is not installed")
    assert broken_promises(lambda d: TantivyEngine.build(d, tmp_path / "t")) == []


def test_tantivy_ranks_as_bm25_with_its_constants(tmp_path: Path) -> None:
    """The same terms; scores differ by the factor k1 + 1 and by lengths of one byte."""
    pytest.importorskip("tantivy", reason="the extra tantivy is not installed")
    theirs = TantivyEngine.build(DOCUMENTS, tmp_path / "t")
    ours = IndexEngine(build_index(DOCUMENTS, tmp_path / "i"), FirstStage(BM25(1.2, 0.75)))
    for query in ("birch bark canoe", "river", "bees dance by the river"):
        wanted, found = ours.rank(query, 10), theirs.rank(query, 10)
        assert found.doc_ids == wanted.doc_ids
        assert found.scores / 2.2 == pytest.approx(wanted.scores, rel=1e-5)


def test_tantivy_refuses_what_our_index_refuses(tmp_path: Path) -> None:
    """No documents, two of one id, no index."""
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


def test_tantivy_replaces_nothing_but_a_tantivy_index(tmp_path: Path) -> None:
    """A folder of somebody's own stays; so do ids that tantivy would drop, by being refused."""
    pytest.importorskip("tantivy", reason="the extra tantivy is not installed")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("years of work")
    with pytest.raises(InputError, match="not a tantivy index"):
        TantivyEngine.build(DOCUMENTS, tmp_path / "mine", replace=True)
    assert (tmp_path / "mine" / "thesis.tex").exists()
    with pytest.raises(InputError, match="too long for tantivy"):
        TantivyEngine.build([Document("x" * 70_000, {"text": "bee"})], tmp_path / "t")
    engine = TantivyEngine.build(DOCUMENTS, tmp_path / "t")
    assert engine.rank("river", 10**10) == engine.rank("river", 10)


def test_a_missing_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the command that brings it."""
    monkeypatch.setitem(sys.modules, "tantivy", None)
    with pytest.raises(MissingPackageError, match=r"birchbark\[tantivy\]"):
        TantivyEngine.build(DOCUMENTS, tmp_path / "t")


@dataclasses.dataclass
class Sloppy:
    """An engine that does one thing wrong."""

    engine: Engine
    fault: str

    def rank(self, query: str, depth: int) -> Ranking:
        """Ranks, with the fault."""
        if self.fault == "syntax" and '"' in query:
            raise ValueError(query)
        if self.fault == "depth":
            depth = max(1, depth)
        if self.fault == "case":
            query = "".join(c for c in query if not c.isupper())
        found = self.engine.rank(query, depth)
        if self.fault == "ties":
            return Ranking(found.doc_ids[::-1], found.scores[::-1])
        if self.fault == "all":
            return Ranking.of(["otter"], [1.0])
        return found

    def documents(self, doc_ids: Sequence[str]) -> list[Document]:
        """Gives documents, with the fault."""
        if self.fault == "lost":
            return [Document(d.doc_id, {"text": d.text}) for d in self.engine.documents(doc_ids)]
        if self.fault == "unknown":
            doc_ids = [doc_id for doc_id in doc_ids if doc_id != "nessie"]
        return self.engine.documents(doc_ids)


FAULTS = {
    "syntax": "taken for syntax",
    "depth": "a depth of 0 is not refused",
    "case": "case or plural",
    "ties": "tie rule",
    "all": "has matches",
    "lost": "does not give back",
    "unknown": "an unknown id is not refused",
}


@pytest.mark.parametrize(("fault", "line"), FAULTS.items())
def test_the_check_finds_faults(tmp_path: Path, fault: str, line: str) -> None:
    """Each promise can be broken."""

    def build(documents: Iterable[Document]) -> Engine:
        return Sloppy(IndexEngine(build_index(documents, tmp_path / "i")), fault)

    assert any(line in found for found in broken_promises(build))


def test_expansion_keeps_the_promises(tmp_path: Path) -> None:
    """RM3 adds words, but to these queries none that changes what was promised."""
    stage = FirstStage(expansion=RM3(max_df_share=1))
    assert broken_promises(lambda d: IndexEngine(build_index(d, tmp_path / "i"), stage)) == []
