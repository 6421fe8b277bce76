"""Does RM3 add what the feedback documents say, and no more?"""

from __future__ import annotations

from pathlib import Path

import pytest

from birchbark.errors import InputError
from birchbark.index.build import build_index
from birchbark.index.reader import Index
from birchbark.records import Document, Ranking
from birchbark.retrieve.first_stage import FirstStage, rank_query
from birchbark.retrieve.rm3 import RM3, expand

KEEP_ALL = 1.0


def test_expansion_by_hand(tmp_path: Path) -> None:
    """P(t|R) ∝ Σ score · tf/length, then mixed half and half."""
    texts = {"x": "bee honey honey", "y": "bee tree", "z": "stone"}
    index = build_index([Document(d, {"text": t}) for d, t in texts.items()], tmp_path / "i")
    feedback = Ranking.of(["x", "y"], [3.0, 2.0])
    found = expand(index, {"bee": 1.0}, feedback, RM3(max_df_share=KEEP_ALL))
    # unscaled: bee 3·1/3 + 2·1/2 = 2, honey 3·2/3 = 2, tree 2·1/2 = 1; in all 5
    expected = {"bee": 0.5 + 0.5 * 2 / 5, "honei": 0.5 * 2 / 5, "tree": 0.5 * 1 / 5}
    assert found == pytest.approx(expected)


def test_original_weight_1_changes_no_ranking(index: Index) -> None:
    """The query alone is left, scaled."""
    plain = rank_query(index, "birch river")
    alone, mixed = (
        rank_query(index, "birch river", FirstStage(expansion=RM3(10, 10, weight, 1)))
        for weight in (1, 0)
    )
    common = set(plain.doc_ids)
    assert [d for d in alone.doc_ids if d in common] == list(plain.doc_ids)
    assert dict(mixed) != dict(alone)


def test_terms_are_counted_filtered_and_cut(tmp_path: Path) -> None:
    """Only 2 to 20 of a-z and 0-9, not too frequent, and the best of them."""
    text = "bee x naïve " + "y" * 21 + " stone stone arch"
    documents = [Document(f"d{i}", {"text": text if i == 0 else "bee"}) for i in range(20)]
    index = build_index(documents, tmp_path / "i")
    feedback = Ranking.of(["d0"], [1.0])
    found = expand(index, {"bee": 1.0}, feedback, RM3(original_weight=0))
    assert set(found) == {"bee", "stone", "arch"}  # bee: of the query, with weight 0
    assert found["bee"] == 0
    cut = expand(index, {"bee": 1.0}, feedback, RM3(original_weight=0, terms=1))
    assert cut == {"bee": 0.0, "stone": 1.0}


def test_only_the_first_documents_are_read(tmp_path: Path) -> None:
    """Feedback beyond the number asked for is not looked at."""
    documents = [Document("a", {"text": "honey"}), Document("b", {"text": "stone"})]
    index = build_index(documents, tmp_path / "i")
    ranking = Ranking.of(["a", "b"], [2.0, 1.0])
    found = expand(index, {"bee": 1.0}, ranking, RM3(documents=1, max_df_share=KEEP_ALL))
    assert "stone" not in found


def test_no_feedback_leaves_the_query(index: Index) -> None:
    """A query without matches is not changed."""
    assert expand(index, {"zeppelin": 1.0}, Ranking.of([], [])) == {"zeppelin": 1.0}
    assert len(rank_query(index, "zeppelin", FirstStage(expansion=RM3()))) == 0


@pytest.mark.parametrize("bad", [{"documents": 0}, {"terms": 0}, {"original_weight": 1.5}])
def test_parameters_out_of_range_are_refused(bad: dict[str, float]) -> None:
    """With a word on what is wrong."""
    with pytest.raises(InputError):
        RM3(**bad)  # type: ignore[arg-type]
