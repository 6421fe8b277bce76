"""Do measures equal trec_eval's?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import ir_measures
import numpy as np
import pytest
import pytrec_eval
from hypothesis import given, settings
from hypothesis import strategies as st

from birchbark.collection.qrels import read_qrels
from birchbark.collection.runs import read_run
from birchbark.errors import InputError
from birchbark.evaluate.measures import Results, check_averaged, measure
from birchbark.records import Qrels, Ranking, Run

# Measures of each tool that ir-measures runs, gdeval among them, a program in another language.
OF_EVERY_TOOL = (
    "AP",
    "RR@2",
    "ERR@3",
    'nDCG(dcg="exp-log2")@3',
    "Compat(p=.8)",
    "Judged@2",
    "Bpref",
)
NAMES = st.text(st.characters(codec="utf-8"), min_size=1, max_size=6)
QRELS = Qrels({"1": {"a": 1, "b": 0, "c": 2}, "2": {"x": 1}})


def run(**rankings: str) -> Run:
    """Make a run of one-letter documents, best first."""
    return Run(
        {q[1:]: Ranking.of(list(d), -np.arange(len(d), dtype=float)) for q, d in rankings.items()}
    )


def test_measures_by_hand() -> None:
    """AP, P, RR, nDCG and R of a small ranking equal values computed by hand."""
    found = measure(QRELS, run(q1="bca", q2="yx"), ["AP", "P@2", "RR", "nDCG@2", "R@1"]).means
    ndcg = (2 / np.log2(3)) / (2 + 1 / np.log2(3))
    expected = {
        "AP": ((1 / 2 + 2 / 3) / 2 + 1 / 2) / 2,
        "P@2": 0.5,
        "RR": 0.5,
        "nDCG@2": (ndcg + 1 / np.log2(3)) / 2,
        "R@1": 0.0,
    }
    assert found == pytest.approx(expected, abs=1e-6)


def test_the_lowest_relevant_grade() -> None:
    """It counts in measures without grades that name no other; nDCG and Judged are as before."""
    names = ["AP", "map", "P@2", "RR", "AP(rel=1)", "nDCG@2", "Judged@2"]
    ranked = run(q1="bac", q2="yx")
    strict = measure(replace(QRELS, relevant=2), ranked, names).means
    as_named = ["AP(rel=2)", "P(rel=2)@2", "RR(rel=2)", *names[4:]]
    expected = measure(QRELS, ranked, as_named).means
    assert list(strict.values()) == [expected["AP(rel=2)"], *expected.values()]
    assert strict["AP"] == pytest.approx(1 / 6)
    assert strict["P@2"] == 0
    with pytest.raises(InputError, match="relevant is out of range"):
        Qrels({}, relevant=0)


def test_ndcg_whose_ideal_has_only_retrieved_documents() -> None:
    """The best order of the first k documents has 1; without relevant ones among them, it is 0."""
    ranked = run(q1="bac", q2="yx")
    names = ['nDCG_retrieved(dcg="exp-log2")@3', "nDCG_retrieved@2", "nDCG@2"]
    found = measure(QRELS, ranked, names).values
    second, third = 1 / np.log2(3), 1 / 2
    exponential = (second + 3 * third) / (3 + second)  # grades 0, 1, 2; the best order is 2, 1, 0
    assert found[names[0]] == pytest.approx({"1": exponential, "2": second}, abs=1e-5)
    assert found[names[1]] == pytest.approx({"1": second, "2": second})  # c is at rank 3
    assert found[names[2]]["1"] == pytest.approx(second / (2 + second))
    assert measure(QRELS, run(q1="bca", q2="y"), names[1:2]).values == {
        names[1]: pytest.approx({"1": second, "2": 0})
    }
    with pytest.raises(InputError, match="unknown measure"):
        measure(QRELS, ranked, ["nDCG_retrieved(dcg='x')@3"])


def test_ties_have_one_order_in_every_measure() -> None:
    """The tools' tie-breaking rules do not apply, because the tools see no ties."""
    tied = Run({"1": Ranking.of(["a", "b", "c"], [1, 1, 1])})
    found = measure(Qrels({"1": {"c": 1}}), tied, ["RR", "RR@10", "P@1", "AP", "Success@1"])
    assert set(found.means.values()) == {1.0}


def test_evaluating_twice_gives_equal_results() -> None:
    """Evaluation has no side effects."""
    ranked = run(q1="ca", q2="x")
    assert measure(QRELS, ranked) == measure(QRELS, ranked)


def test_unranked_queries_count_0_and_unjudged_are_left_out() -> None:
    """Both are counted in the results."""
    found = measure(QRELS, run(q1="ca", q9="a"), ["AP"])
    assert found.values["AP"] == {"1": 1.0, "2": 0.0}
    assert (found.unranked, found.unjudged) == (1, 1)


def test_empty_rankings_count_0() -> None:
    """A query without results counts as 0."""
    assert measure(QRELS, run(q1="ca", q2=""), ["AP"]).means["AP"] == 0.5


def test_judged_only_removes_unjudged_documents() -> None:
    """The documents below them move up."""
    ranked = run(q1="zyca", q2="x")
    assert measure(QRELS, ranked, ["RR"]).values["RR"]["1"] == pytest.approx(1 / 3)
    assert measure(QRELS, ranked, ["RR"], judged_only=True).values["RR"]["1"] == 1


def test_qrels_and_run_must_belong_together() -> None:
    """InputError is raised, because zeros everywhere would look like a bad system."""
    with pytest.raises(
        InputError, match=r"no query in the run is judged.*found 7 in the run, 1, 2"
    ):
        measure(QRELS, run(q7="a"))


@pytest.mark.parametrize(
    "name", ["MAPP", "nDCG@", "AP(", "", "import os", "P@0", "nDCG@0", "P", "P@1.5"]
)
def test_unknown_measures_are_refused(name: str) -> None:
    """The error shows the expected spelling."""
    with pytest.raises(InputError, match=r"measure.*nDCG@10|needs a package"):
        measure(QRELS, run(q1="a"), [name])


def published() -> list[tuple[str, str, dict[str, str]]]:
    """Runs, qrels and published figures, from the READMEs of the real collections."""
    covid = ("AP", "P@20", "nDCG@20", "Bpref")
    rows = [
        (4, "r4.fusion1", ".2666 .5611 .5244 .5014"),
        (4, "covidex.r4.duot5", ".3283 .6922 .6877 .5576"),
        (4, "OHSU_totalfusion_avg", ".2638 .5778 .5458 .5073"),
        (5, "r5.fusion1", ".2314 .5840 .5313 .4237"),
        (5, "r5.fusion2", ".2734 .6440 .6007 .4576"),
        (5, "covidex.r5.1s", ".3119 .7070 .6960 .5043"),
        (5, "covidex.r5.2s", ".3212 .7610 .7457 .5052"),
        (5, "uogTrDPH_QE_RF_SB_CB", ".3901 .8420 .7913 .5709"),
    ]
    cases = [
        (
            f"checks/trec-covid/runs/{name}",
            f"checks/trec-covid/qrels.covid-round{round_}.txt",
            dict(zip(covid, figures.split(), strict=True)),
        )
        for round_, name, figures in rows
    ]
    codec = "checks/codec/runs/document_bm25+rm3-tuned.dedup.run"
    cases += [
        (codec, "checks/codec/document_binary.qrels", {"AP": ".2333", "R@1000": ".8004"}),
        (codec, "checks/codec/document_ndcg.qrels", {"nDCG@10": ".3272"}),
        (
            "checks/robust04/cedr.all.test.run",
            "checks/robust04/qrels.robust04.relevant-only.binary.txt",
            {"AP": ".2241", "P@20": ".3586"},
        ),
        (
            "checks/core18/core18_title_rm3.run",
            "checks/core18/qrels.core18.txt",
            {"AP": ".3075", "P@20": ".4590", "nDCG@20": ".4434"},
        ),
    ]
    for name, figure in {
        "BM25.5bcc39": ".5058",
        "BM25_RM3.2ffea3": ".5216",
        "D_BERT_KD_TASB.282633": ".7210",
        "SPLADE_P_P_ENSEMBLE_DISTIL.f5a6c6": ".7308",
        "OPEN_AI_ADA2.f96642": ".7035",
        "REP_LLAMA.d18257": ".7384",
    }.items():
        folder = "trec-dl19-passage"
        cases.append(
            (f"{folder}/runs/{name}.top100.run", f"{folder}/qrels.txt", {"nDCG@10": figure})
        )
    for name, ap, p30 in [
        ("run.microblog2011.QL", ".3576", ".4000"),
        ("run.microblog2012.QL", ".2091", ".3311"),
        ("run.microblog2013.RM3", ".2766", ".4733"),
        ("run.microblog2014.RM3", ".4480", ".6339"),
        ("mphcnn_trec_2013_pred", ".2818", ".5222"),
        ("mphcnn_trec_2014_pred", ".4304", ".6297"),
    ]:
        year = next(y for y in ("2011", "2012", "2013", "2014") if y in name)
        qrels = f"mb/qrels.microblog{year}.txt"
        cases.append((f"mb/runs/{name}.txt", qrels, {"AP": ap, "P@30": p30}))
    return cases


@pytest.mark.parametrize(("run_file", "qrels_file", "figures"), published())
def test_published_figures_to_four_decimals(
    data: Callable[[str], Path], run_file: str, qrels_file: str, figures: dict[str, str]
) -> None:
    """Published figures are reproduced from their runs and judgments."""
    found = measure(read_qrels(data(qrels_file)), read_run(data(run_file)), list(figures))
    assert {n: f"{v:.4f}".lstrip("0") for n, v in found.means.items()} == figures


@pytest.mark.parametrize("names", [("AP", "MAP", "AP(rel=1)"), ("RR@10", "MRR@10")])
def test_synonyms_agree(names: tuple[str, ...]) -> None:
    """Synonyms of a measure have equal values under each name."""
    found = measure(QRELS, run(q1="bca", q2="yx"), names).means
    assert len(found) == len(names)
    assert len(set(found.values())) == 1 < 1 + min(found.values())


def test_counts_are_summed_as_trec_eval_sums_them() -> None:
    """NumRet is the number of documents in the run."""
    assert measure(QRELS, run(q1="bca", q2="yx"), ["NumRet"]).means == {"NumRet": 5}


@pytest.mark.parametrize("name", ["ERR@10", "Accuracy", f"P@{10**20}"])
def test_measures_that_do_not_fit_the_judgments(name: str) -> None:
    """Their programs fail in ways of their own."""
    qrels = Qrels({"1": {"d": 5}})
    run = Run({"1": Ranking.of(["d"], [1.0])}, "run")
    with pytest.raises(InputError, match=r"fails on these judgments"):
        measure(qrels, run, [name])


def test_no_measures_given() -> None:
    """An empty list of measures raises InputError."""
    with pytest.raises(InputError, match="no measure"):
        measure(QRELS, run(q1="a"), [])


def test_names_are_read_without_the_parser_of_ir_measures(monkeypatch: pytest.MonkeyPatch) -> None:
    """That parser needs classes that Python 3.14 no longer has."""
    monkeypatch.delattr(ir_measures, "parse_measure")
    qrels = Qrels({"1": {"a": 1, "b": 2}})
    run = Run({"1": Ranking.of(["a", "b"], [2, 1])})
    names = ["RR", "RR(rel=2)", "P@2", "P(rel=2)@2", "nDCG(gains={1: 3, 2: 3})@2", "IPrec@0.5"]
    means = measure(qrels, run, names).means
    assert list(means.values()) == pytest.approx([1, 0.5, 1, 0.5, 1, 1])


@pytest.mark.parametrize(
    "name",
    [
        "",
        "(",
        "\0",
        "a.b",
        "P@5@6",
        "P(cutoff=5)@6",
        "P@x",
        "P(2)@5",
        "P(rel=f())",
        "P(rel=-1)@5",
        "P(**{'rel': 2})",
        "P@'5'",
        "nDCG@10.5",
        "nDCG(gains={**{}})@5",
        "nDCG(gains={{}: 1})@5",
        "AP(x=1)",
        "AP;AP",
    ],
)
def test_names_that_are_no_measures(name: str) -> None:
    """Nothing in a name is evaluated."""
    with pytest.raises(InputError, match="unknown measure"):
        check_averaged([name])


def test_check_averaged() -> None:
    """Counts and unknown measures are refused."""
    check_averaged(["AP", "nDCG@10"])
    with pytest.raises(InputError, match="'NumRet' is a count"):
        check_averaged(["NumRet"])
    with pytest.raises(InputError, match="unknown measure"):
        check_averaged(["MAPP"])


def test_a_ranking_without_judged_documents_counts_as_zero() -> None:
    """This also holds for Judged@k, which divides by the length of the ranking."""
    qrels = Qrels({"1": {"a": 1}, "2": {"b": 1}})
    run = Run({"1": Ranking.of(["a"], [2]), "2": Ranking.of(["z"], [2])})
    values = measure(qrels, run, ["Judged@10", "AP", "NumRel"], judged_only=True).values
    assert values["Judged@10"] == values["AP"] == {"1": 1.0, "2": 0.0}
    assert values["NumRel"] == {"1": 1.0, "2": 1.0}


def test_judged_only_equals_trec_eval_j() -> None:
    """Values equal those of `trec_eval -J` on random rankings without ties."""
    random = np.random.default_rng(1)
    grades = {
        f"q{q}": {f"d{d:03}": int(random.integers(0, 3)) for d in range(q, 200, 3)}
        for q in range(20)
    }
    rankings = {
        q: Ranking.of([f"d{d:03}" for d in random.permutation(200)[:90]], -np.arange(90.0))
        for q in grades
    }
    found = measure(Qrels(grades), Run(rankings), ["AP", "nDCG@10", "RR", "P@5"], judged_only=True)
    judge = pytrec_eval.RelevanceEvaluator(
        grades, {"map", "ndcg_cut_10", "recip_rank", "P_5"}, judged_docs_only_flag=True
    )
    theirs = judge.evaluate({q: dict(ranking) for q, ranking in rankings.items()})
    names = {"AP": "map", "nDCG@10": "ndcg_cut_10", "RR": "recip_rank", "P@5": "P_5"}
    for ours, name in names.items():
        assert found.values[ours] == pytest.approx({q: theirs[q][name] for q in theirs}, abs=1e-9)


@pytest.mark.parametrize(
    ("of_trec_eval", "name"),
    [("map", "AP"), ("ndcg_cut_10", "nDCG@10"), ("P_5", "P@5"), ("recip_rank", "RR")],
)
def test_names_of_trec_eval(of_trec_eval: str, name: str) -> None:
    """They are other names of the same measures, and stay as they were given."""
    qrels, run = Qrels({"1": {"a": 1, "b": 0}}), Run({"1": Ranking.of(["a", "b"], [1, 2])})
    means = measure(qrels, run, [of_trec_eval, name]).means
    assert list(means) == [of_trec_eval, name]
    assert means[of_trec_eval] == means[name] > 0
    with pytest.raises(InputError, match="unknown measure"):
        measure(qrels, run, ["ndcg_cut"])


def test_query_ids_with_hyphens() -> None:
    """gdeval cuts ids at the last hyphen, and would mix wt-1 and other-1."""
    grades = {"wt-1": {"a": 1, "b": 3}, "other-1": {"a": 2}, "wt-2": {"c": 1}}
    rankings = {"wt-1": ["a", "b"], "other-1": ["b", "a"], "wt-2": ["c"]}
    ranked = Run({q: Ranking.of(d, -np.arange(len(d))) for q, d in rankings.items()})
    found = measure(Qrels(grades), ranked, ["ERR@5", 'nDCG(dcg="exp-log2")@5'])
    err = {
        "wt-1": 1 / 16 + (15 / 16) * (7 / 16) / 2,
        "other-1": (3 / 16) / 2,
        "wt-2": 1 / 16,
    }
    gain = {
        "wt-1": (1 + 7 / np.log2(3)) / (7 + 1 / np.log2(3)),
        "other-1": 1 / np.log2(3),
        "wt-2": 1.0,
    }
    assert found.values["ERR@5"] == pytest.approx(err, abs=1e-5)
    assert found.values['nDCG(dcg="exp-log2")@5'] == pytest.approx(gain, abs=1e-5)
    assert found.means["ERR@5"] == pytest.approx(np.mean(list(err.values())), abs=1e-5)


@settings(max_examples=15)
@given(
    queries=st.lists(NAMES, min_size=3, max_size=3, unique=True),
    documents=st.lists(NAMES, min_size=6, max_size=6, unique=True),
)
def test_values_do_not_depend_on_names(queries: list[str], documents: list[str]) -> None:
    """The ids of queries and documents may have any characters."""
    grades = [{0: 2, 1: 0, 2: 1, 5: 1}, {3: 1}, {4: 4, 0: 1}]
    orders = [[1, 2, 3, 0], [3, 4], [0, 1, 2, 3, 4, 5]]

    def named(names: list[str], docs: list[str]) -> Results:
        judged = zip(names, grades, strict=True)
        qrels = Qrels({q: {docs[d]: grade for d, grade in of.items()} for q, of in judged})
        run = {
            q: Ranking.of([docs[d] for d in order], -np.arange(len(order)))
            for q, order in zip(names, orders, strict=True)
        }
        return measure(qrels, Run(run), OF_EVERY_TOOL)

    plain = named(["1", "2", "3"], list("abcdef"))
    found = named(queries, documents)
    assert found.means == plain.means
    for name, values in plain.values.items():
        assert list(found.values[name].values()) == list(values.values())
        assert list(found.values[name]) == queries


def test_compat_of_documents_that_are_not_ranked() -> None:
    """Of equally relevant documents, the ideal ranking has those that are ranked first."""
    qrels = Qrels({"1": {"a": 1, "b": 1}})
    found = measure(qrels, Run({"1": Ranking.of(["a"], [1.0])}), ["Compat(p=.5)"])
    # overlap at depths 1 and 2: 1 and 1/2; the ideal ranking a, b has 1 and 1
    assert found.means["Compat(p=.5)"] == pytest.approx((1 + 0.5 * 0.5) / (1 + 0.5))


def test_ids_that_come_back_changed_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A value of an unknown query is no query's value."""

    def renamed(measures: list[ir_measures.Measure], *_: object) -> object:
        return iter([ir_measures.Metric("wt", measures[0], 0.5)])

    monkeypatch.setattr(ir_measures, "iter_calc", renamed)
    with pytest.raises(InputError, match=r"computes AP has returned another query id.*found 'wt'"):
        measure(QRELS, run(q1="ca", q2="x"), ["AP"])


def test_the_number_of_queries_is_that_of_all_judged_ones() -> None:
    """They are counted as by `trec_eval -c`; means are divided by the same number."""
    assert measure(QRELS, run(q1="ca"), ["NumQ", "NumRet"]).means == {"NumQ": 2.0, "NumRet": 2.0}


def test_relevant_documents_of_unranked_queries_count() -> None:
    """As by `trec_eval -c`."""
    qrels = Qrels({"1": {"a": 1}, "2": {"b": 1, "c": 2, "d": 0}})
    found = measure(qrels, run(q1="a"), ["NumRel"])
    assert found.values["NumRel"] == {"1": 1.0, "2": 2.0}
    assert found.means == {"NumRel": 3.0}


@pytest.mark.parametrize("name", ["alpha_nDCG@10", "ERR_IA@5", "StRecall@10", "NRBP"])
def test_measures_of_subtopics_are_refused(name: str) -> None:
    """Judgments are read without subtopics, so that their values would be wrong."""
    with pytest.raises(InputError, match="needs judgments of subtopics, which are not read"):
        measure(QRELS, run(q1="a"), [name])


def test_measures_whose_tool_is_missing_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are known, but nothing computes them."""
    monkeypatch.setattr(ir_measures.DefaultPipeline, "supports", lambda measure: False)
    with pytest.raises(InputError, match="measure 'AP' needs a package that is not installed"):
        measure(QRELS, run(q1="a"), ["AP"])


def test_measures_of_relevant_documents_by_hand() -> None:
    """From grade 2 on, c and d are relevant and a, though judged, is not; from 1 on, it is too."""
    grades, ranked = {"1": {"a": 1, "b": 0, "c": 2, "d": 2}}, run(q1="acxb")
    names = ["Success@1", "Rprec", "IPrec@0.5", "R@2", "SetP", "Bpref"]
    from_two = measure(Qrels(grades, relevant=2), ranked, names).means
    assert list(from_two.values()) == pytest.approx([0, 1 / 2, 1 / 2, 1 / 2, 1 / 4, 1 / 4])
    from_one = measure(Qrels(grades), ranked, names).means
    assert list(from_one.values()) == pytest.approx([1, 2 / 3, 1, 2 / 3, 2 / 4, 2 / 3])
