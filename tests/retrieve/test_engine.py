"""Do engines fulfil their contract, and does the contract detect faulty ones?"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest
from engine_contract import contract_violations

from birchbark.index.build_index import Schema, build_index
from birchbark.records import Document, Ranking
from birchbark.retrieve.bm25 import BM25
from birchbark.retrieve.engine import Engine, IndexEngine
from birchbark.retrieve.first_stage import FirstStage
from birchbark.retrieve.rm3 import RM3
from birchbark.retrieve.tfidf import TfIdf

STAGES = [FirstStage(), FirstStage(BM25(1.2, 0.75)), FirstStage(TfIdf())]


@pytest.mark.parametrize("stage", STAGES)
def test_our_index_fulfils_the_contract(tmp_path: Path, stage: FirstStage) -> None:
    """It does so with each weighting model."""
    assert contract_violations(lambda d: IndexEngine(build_index(d, tmp_path / "i"), stage)) == []


def test_an_index_of_many_parts_fulfils_the_contract(tmp_path: Path) -> None:
    """Each document is in a separate part."""
    build = lambda d: IndexEngine(build_index(d, tmp_path / "i", part_tokens=1))  # noqa: E731
    assert contract_violations(build) == []


@dataclasses.dataclass
class FaultyEngine:
    """An engine with one fault."""

    engine: Engine
    fault: str

    def rank(self, query: str, depth: int) -> Ranking:
        """Rank, with the fault."""
        if self.fault == "syntax" and '"' in query:
            raise ValueError(query)
        if self.fault == "depth":
            depth = max(1, depth)
        if self.fault == "case":
            query = "".join(c for c in query if not c.isupper())
        ranking = self.engine.rank(query, depth)
        if self.fault == "ties":
            return Ranking(ranking.doc_ids[::-1], ranking.scores[::-1])
        if self.fault == "all":
            return Ranking.of(["otter"], [1.0])
        return ranking

    def documents(self, doc_ids: Sequence[str]) -> list[Document]:
        """Return documents, with the fault."""
        if self.fault == "lost":
            return [Document(d.doc_id, {"text": d.text}) for d in self.engine.documents(doc_ids)]
        if self.fault == "unknown":
            doc_ids = [doc_id for doc_id in doc_ids if doc_id != "nessie"]
        return self.engine.documents(doc_ids)


FAULTS = {
    "syntax": "parsed as syntax",
    "depth": "a depth of 0 is not refused",
    "case": "case or plural",
    "ties": "tie rule",
    "all": "has matches",
    "lost": "does not return what was indexed",
    "unknown": "an unknown id is not refused",
}


@pytest.mark.parametrize(("fault", "line"), FAULTS.items())
def test_faults_are_detected(tmp_path: Path, fault: str, line: str) -> None:
    """The contract finds each kind of fault."""

    def build(documents: Iterable[Document]) -> Engine:
        return FaultyEngine(IndexEngine(build_index(documents, tmp_path / "i")), fault)

    assert any(line in violation for violation in contract_violations(build))


def test_expansion_fulfils_the_contract(tmp_path: Path) -> None:
    """RM3 adds no term to these queries that would violate it."""
    stage = FirstStage(expansion=RM3(max_df_share=1))
    assert contract_violations(lambda d: IndexEngine(build_index(d, tmp_path / "i"), stage)) == []


def test_idf_is_that_of_the_field_with_the_highest_weight(tmp_path: Path) -> None:
    """All three documents have a text, two of them a title; bee is in two texts and one title."""
    rows = {"a": ("bee", "bee"), "b": ("ant", "bee"), "c": ("", "wasp")}
    documents = [Document(d, {"title": title, "text": text}) for d, (title, text) in rows.items()]
    fields = {"title": ("title",), "text": ("text",)}
    index = build_index(documents, tmp_path / "i", Schema("plain", fields=fields))
    for title, text, ratio in ((1.0, 2.0, 1.5 / 2.5), (2.0, 1.0, 1.5 / 1.5)):
        engine = IndexEngine(index, FirstStage(fields={"title": title, "text": text}))
        assert engine.idf(["bee"]) == pytest.approx({"bee": math.log(1 + ratio)})
