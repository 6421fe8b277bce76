"""Does RM3 add the right terms with the right weights?"""

from __future__ import annotations

from pathlib import Path

import pytest

from birchbark.errors import InputError
from birchbark.index.build_index import Schema, build_index
from birchbark.index.index import Index
from birchbark.records import Document, Ranking
from birchbark.retrieve.first_stage import FirstStage, expanded_query, rank_query
from birchbark.retrieve.rm3 import RM3, expand

ANY_DF = 1.0


def test_expansion_matches_the_formula(tmp_path: Path) -> None:
    """P(t|R) ∝ Σ score · tf/length, interpolated with equal weights."""
    texts = {"x": "bee honey honey", "y": "bee tree", "z": "stone"}
    index = build_index([Document(d, {"text": t}) for d, t in texts.items()], tmp_path / "i")
    feedback = Ranking.of(["x", "y"], [3.0, 2.0])
    expanded = expand(index, {"bee": 1.0}, feedback, RM3(max_df_share=ANY_DF))
    # unscaled: bee 3·1/3 + 2·1/2 = 2, honey 3·2/3 = 2, tree 2·1/2 = 1; total 5
    expected = {"bee": 0.5 + 0.5 * 2 / 5, "honei": 0.5 * 2 / 5, "tree": 0.5 * 1 / 5}
    assert expanded == pytest.approx(expected)


def test_documents_are_reduced_to_their_best_terms_before_they_are_normalised(
    tmp_path: Path,
) -> None:
    """Each has as many as are added, the most frequent; of equal ones the first by spelling."""
    texts = {"x": "honey honey honey bee bee arch arch tree", "y": "tree bee arch", "z": "stone"}
    index = build_index([Document(d, {"text": t}) for d, t in texts.items()], tmp_path / "i")
    feedback = Ranking.of(["x", "y"], [5.0, 4.0])
    model = RM3(terms=2, original_weight=0, max_df_share=ANY_DF)
    expanded = expand(index, {"stone": 1.0}, feedback, model)
    # x is {honey 3, arch 2}, y {arch 1, bee 1}; honey 5·3/5 = 3, arch 5·2/5 + 4·1/2 = 4, bee 2
    assert expanded == pytest.approx({"stone": 0, "honei": 3 / 7, "arch": 4 / 7})


def test_original_weight_1_changes_no_ranking(index: Index) -> None:
    """Only the original query is scored, scaled."""
    plain = rank_query(index, "birch river")
    original, relevance = (
        rank_query(index, "birch river", FirstStage(expansion=RM3(10, 10, weight, 1)))
        for weight in (1, 0)
    )
    common = set(plain.doc_ids)
    assert [d for d in original.doc_ids if d in common] == list(plain.doc_ids)
    assert dict(relevance) != dict(original)


def test_terms_are_filtered_and_limited(tmp_path: Path) -> None:
    """They have 2 to 20 characters of a-z and 0-9, and are not too frequent; at most `terms`."""
    text = "bee x naïve " + "y" * 21 + " stone stone arch bark"
    texts = [text, "bee arch bark", "bee bark", *["bee"] * 17]  # arch is in 10 %, bark in 15 %
    documents = [Document(f"d{i}", {"text": text}) for i, text in enumerate(texts)]
    index = build_index(documents, tmp_path / "i")
    feedback = Ranking.of(["d0"], [1.0])
    expanded = expand(index, {"bee": 1.0}, feedback, RM3(original_weight=0))
    assert set(expanded) == {"bee", "stone", "arch"}  # bee is from the query, with weight 0
    assert expanded["bee"] == 0
    limited = expand(index, {"bee": 1.0}, feedback, RM3(original_weight=0, terms=1))
    assert limited == {"bee": 0.0, "stone": 1.0}


def test_terms_that_are_too_frequent_take_no_places(tmp_path: Path) -> None:
    """A document has its most frequent ones of those that may be added."""
    texts = {"x": "bee bee bee honey honey arch", "y": "bee", "z": "bee"}
    index = build_index([Document(d, {"text": t}) for d, t in texts.items()], tmp_path / "i")
    model = RM3(terms=1, original_weight=0, max_df_share=0.5)
    expanded = expand(index, {"stone": 1.0}, Ranking.of(["x"], [1.0]), model)
    assert expanded == {"stone": 0.0, "honei": 1.0}


def test_terms_of_2_and_of_20_characters_are_added(tmp_path: Path) -> None:
    """Digits are allowed; a term with any other character is not added."""
    text = f"bee {'7' * 20} {'8' * 21} 42 9 naïve"
    index = build_index([Document("a", {"text": text})], tmp_path / "i")
    expanded = expand(
        index, {"x": 1.0}, Ranking.of(["a"], [1.0]), RM3(original_weight=0, max_df_share=ANY_DF)
    )
    assert expanded == pytest.approx({"x": 0, "bee": 1 / 3, "7" * 20: 1 / 3, "42": 1 / 3})


def test_weights_of_a_query_are_scaled_to_its_share(tmp_path: Path) -> None:
    """They keep their proportions; the terms that are added share the rest."""
    index = build_index([Document("a", {"text": "honey honey honey bee"})], tmp_path / "i")
    feedback, model = Ranking.of(["a"], [7.0]), RM3(1, 2, 0.25, ANY_DF)
    expanded = expand(index, {"bee": 6.0, "stone": 2.0}, feedback, model)
    assert expanded == pytest.approx(
        {"bee": 0.25 * 6 / 8 + 0.75 / 4, "honei": 0.75 * 3 / 4, "stone": 0.25 * 2 / 8}
    )
    assert expand(index, {"bee": 0.0}, feedback, model) == pytest.approx(
        {"bee": 0.75 / 4, "honei": 0.75 * 3 / 4}
    )
    one = RM3(1, 1, 0.25, ANY_DF)
    assert expand(index, {"bee": 1.0}, feedback, one) == pytest.approx({"bee": 0.25, "honei": 0.75})


def test_only_the_feedback_documents_are_read(tmp_path: Path) -> None:
    """Documents ranked after them have no effect."""
    documents = [Document("a", {"text": "honey"}), Document("b", {"text": "stone"})]
    index = build_index(documents, tmp_path / "i")
    ranking = Ranking.of(["a", "b"], [2.0, 1.0])
    expanded = expand(index, {"bee": 1.0}, ranking, RM3(documents=1, max_df_share=ANY_DF))
    assert "stone" not in expanded


def test_terms_are_those_of_the_first_field(tmp_path: Path) -> None:
    """The other fields are searched for the expanded query, but their terms are not added."""
    fields = {"title": ("title",), "text": ("text",)}
    documents = [Document("a", {"title": "bee honey", "text": "bee stone"})]
    index = build_index(documents, tmp_path / "i", Schema("plain", fields=fields))
    model = RM3(original_weight=0, max_df_share=ANY_DF)
    for first, second, term in (("title", "text", "honey"), ("text", "title", "stone")):
        stage = FirstStage(fields={first: 1.0, second: 1.0}, expansion=model)
        expanded = expanded_query(index, {"bee": 1.0}, stage)
        assert expanded == pytest.approx({"bee": 1 / 2, term: 1 / 2})


def test_feedback_documents_meet_the_filters(tmp_path: Path) -> None:
    """Terms of documents that a filter excludes are not added, though these are ranked first."""
    documents = [
        Document("a", {"text": "bee bee bee honey", "kind": "x"}),
        Document("b", {"text": "bee stone", "kind": "y"}),
    ]
    index = build_index(documents, tmp_path / "i", Schema(keywords=["kind"]))
    model = RM3(documents=1, max_df_share=0.5)
    for kind, term in (("x", "honei"), ("y", "stone")):
        stage = FirstStage(filters={"kind": kind}, expansion=model)
        assert expanded_query(index, {"bee": 1.0}, stage) == {"bee": 0.5, term: 0.5}


def test_without_feedback_the_query_is_unchanged(index: Index) -> None:
    """A query without matches is not expanded."""
    assert expand(index, {"zeppelin": 1.0}, Ranking.of([], [])) == {"zeppelin": 1.0}
    assert len(rank_query(index, "zeppelin", FirstStage(expansion=RM3()))) == 0


@pytest.mark.parametrize(
    "bad", [{"documents": 0}, {"terms": 0}, {"original_weight": 1.5}, {"max_df_share": -0.1}]
)
def test_parameters_out_of_range_are_refused(bad: dict[str, float]) -> None:
    """Numbers below 1 and shares outside 0 to 1 are refused."""
    with pytest.raises(InputError):
        RM3(**bad)  # type: ignore[arg-type]
