"""How is a run evaluated with the standard measures of ir-measures?

Documents are passed to the evaluation tools with scores that count down to 1. There are no ties
left, so the tools' tie-breaking rules do not apply: every measure sees the order of the run, in
which ties are broken as in trec_eval. All scores are above 0, since Compat gives 0 to judged
documents that are not ranked.

Queries and documents are passed as numbers, since tools that read files change ids: gdeval cuts
query ids at their last hyphen.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from subprocess import CalledProcessError
from typing import Any

from birchbark import defaults
from birchbark.arguments import check_instance, texts_of
from birchbark.errors import InputError
from birchbark.evaluate import retrieved_ideal
from birchbark.evaluate.retrieved_ideal import as_ndcg, ndcg_retrieved, retrieved_judgments
from birchbark.records import Qrels, Ranking, Run

# Measures of diversity: a document is judged for each subtopic, which Qrels does not hold.
BY_SUBTOPIC = frozenset(
    "ERR_IA nERR_IA alpha_DCG alpha_nDCG NRBP nNRBP AP_IA P_IA StRecall".split()
)


@dataclass(frozen=True, slots=True)
class Results:
    """The values of measures for each judged query, and their means.

    Attributes:
        tag: The tag of the run.
        values: Measure → query_id → value; 0 for queries that the run does not rank, as in
            `trec_eval -c`.
        means: Measure → mean over all judged queries; the sum for counts such as NumRet.
        unranked: The number of judged queries that the run does not rank.
        unjudged: The number of queries in the run without judgments, which are left out.
    """

    tag: str
    values: Mapping[str, Mapping[str, float]]
    means: Mapping[str, float]
    unranked: int = 0
    unjudged: int = 0


def measure(
    qrels: Qrels, run: Run, names: Sequence[str] = defaults.MEASURES, *, judged_only: bool = False
) -> Results:
    """Evaluate `run` against `qrels`, in which grades from `qrels.relevant` on are relevant.

    names: the measures, as spelled by ir-measures (AP, nDCG@20, P@20, RR@10, Bpref, …) or by
    trec_eval (map, ndcg_cut_20, P_20, recip_rank, bpref, …), or nDCG_retrieved@10, whose ideal
    ranking has only the retrieved documents.
    judged_only: whether unjudged documents are first removed from the rankings.
    Raises InputError for no measures, an unknown measure, one whose provider is not installed, or
    if no query in the run is judged.
    """
    check_instance(qrels, Qrels, "qrels")
    check_instance(run, Run, "the run")
    parsed = {
        name: _with_relevance(_parse(name), qrels.relevant) for name in texts_of(names, "measure")
    }
    if not parsed:
        raise InputError("no measures")
    ranked = {
        query_id: run.rankings[query_id] for query_id in qrels.grades if query_id in run.rankings
    }
    if not ranked:
        raise InputError(
            "no query in the run is judged",
            found=f"{_sample(run.rankings)} in the run, {_sample(qrels.grades)} in the qrels",
            remedy="check that both belong to the same test collection",
        )
    queries = dict(zip(map(str, range(len(qrels.grades))), qrels.grades, strict=True))
    numbers = {query_id: number for number, query_id in queries.items()}
    judged, rankings = {}, {}
    for query_id, number in numbers.items():
        grades, ranking = qrels.grades[query_id], ranked.get(query_id)
        judged[number], scores = _numbered(grades, ranking, judged_only=judged_only)
        if ranking is not None:
            rankings[number] = scores
    distinct = {str(m): m for m in parsed.values()}  # AP and MAP are the same measure
    values: dict[str, dict[str, float]] = {
        name: {query_id: _unranked(m, grades) for query_id, grades in qrels.grades.items()}
        for name, m in distinct.items()
    }
    # Judged divides by the length of the ranking; a query with an empty ranking counts as 0
    not_empty = {number: scores for number, scores in rankings.items() if scores}
    shares = [m for m in distinct.values() if m.NAME == "Judged"]
    of_retrieved = [m for m in distinct.values() if m.NAME == retrieved_ideal.NAME]
    others = [m for m in distinct.values() if m not in (*shares, *of_retrieved)]
    groups = [(others, others, judged, rankings), (shares, shares, judged, not_empty)]
    for m in of_retrieved:
        ideal = retrieved_judgments(judged, not_empty, m.params.get("cutoff"))
        groups.append(([m], [as_ndcg(m)], ideal, not_empty))
    for shown, computed, judgments, given in groups:
        names_of = {str(c): str(m) for c, m in zip(computed, shown, strict=True)}
        for metric in _compute(computed, judgments, given):
            if metric.query_id not in queries:
                raise InputError(
                    f"the tool that computes {metric.measure} has returned another query id",
                    wanted=f"a number below {len(queries)}",
                    found=repr(metric.query_id),
                )
            if metric.query_id in given:
                values[names_of[str(metric.measure)]][queries[metric.query_id]] = float(
                    metric.value
                )
    return Results(
        run.tag,
        {name: values[str(m)] for name, m in parsed.items()},
        {name: _aggregate(m, values[str(m)].values()) for name, m in parsed.items()},
        len(qrels.grades) - len(ranked),
        len(run.rankings.keys() - qrels.grades),
    )


def _unranked(measure: Any, grades: Mapping[str, int]) -> float:
    """Return the value of a query with these grades that is not ranked."""
    if measure.NAME == "NumRel":
        return float(sum(grade >= measure["rel"] for grade in grades.values()))
    return float(measure.NAME == "NumQ")


def _numbered(
    grades: Mapping[str, int], ranking: Ranking | None, *, judged_only: bool
) -> tuple[dict[str, int], dict[str, float]]:
    """Return the grades and the scores of a query's documents, which are named by numbers."""
    doc_ids = ranking.doc_ids if ranking else ()
    if judged_only:
        doc_ids = tuple(doc_id for doc_id in doc_ids if doc_id in grades)
    numbers = {doc_id: str(i) for i, doc_id in enumerate(dict.fromkeys([*doc_ids, *grades]))}
    scores = {numbers[doc_id]: float(len(doc_ids) - i) for i, doc_id in enumerate(doc_ids)}
    return {numbers[doc_id]: grade for doc_id, grade in grades.items()}, scores


def _compute(
    measures: Sequence[Any],
    judged: Mapping[str, Mapping[str, int]],
    rankings: Mapping[str, Mapping[str, float]],
) -> Iterator[Any]:
    """Yield the value of each measure for each query; InputError if one cannot be computed."""
    import ir_measures

    try:
        yield from ir_measures.iter_calc(measures, judged, rankings) if measures else ()
    except (ArithmeticError, LookupError, TypeError, ValueError, CalledProcessError) as error:
        raise InputError(
            f"the tool for {', '.join(map(str, measures))} fails on these judgments",
            found=type(error).__name__,
            remedy="cutoffs and rel are at least 1 and fit into 32 bits; ERR takes grades of at "
            "most 4; Accuracy needs documents that are not relevant",
        ) from error


def _with_relevance(measure: Any, relevant: int) -> Any:
    """Return the measure with `rel`, the lowest grade that is relevant, if it has none of its own.

    Measures of grades, such as nDCG, have no such parameter, and the number of documents retrieved
    counts all of them without it. Raises InputError for the number of relevant documents, which no
    tool counts from a higher grade.
    """
    if relevant == 1 or "rel" in measure.params or measure.NAME == "NumRet":
        return measure
    if measure.NAME == "NumRel":
        raise InputError(f"{measure} counts grade 1", wanted=f"relevant = 1, not {relevant}")
    return measure(rel=relevant) if "rel" in measure.SUPPORTED_PARAMS else measure


def check_averaged(names: Iterable[str]) -> None:
    """Raise InputError for an unknown measure and for a count, which is summed, not averaged."""
    for name in names:
        if type(_parse(name).aggregator()).__name__ == "SumAgg":
            raise InputError(f"measure {name!r} is a count", wanted="an averaged measure")


def _aggregate(measure: Any, values: Iterable[float]) -> float:
    """Aggregate values as the measure defines it: by the mean, or by the sum for counts."""
    aggregator = measure.aggregator()
    for value in values:
        aggregator.add(value)
    return float(aggregator.result())


def _parse(name: str) -> Any:
    import ir_measures

    try:
        measure = _of_trec_eval(name) or _of_ir_measures(name)
        if measure.NAME in BY_SUBTOPIC:
            raise InputError(
                f"measure {name!r} needs judgments of subtopics, which are not read",
                wanted="a measure of documents, such as nDCG@10",
            )
        if measure.params.get("cutoff", 1) < 1:
            raise ValueError("the cutoff must be 1 or more")
        supports: Any = ir_measures.DefaultPipeline.supports
        supported = supports(as_ndcg(measure) if measure.NAME == retrieved_ideal.NAME else measure)
    except (NameError, ValueError, SyntaxError, TypeError, AssertionError) as unknown:
        reason = "it needs a cutoff, such as @10" if "<object" in str(unknown) else unknown
        raise InputError(
            f"unknown measure {name!r}: {reason}",
            wanted="a measure of ir-measures such as AP, nDCG@10, P@20, RR@10, R@1000, Bpref",
        ) from None
    if not supported:
        raise InputError(
            f"measure {name!r} needs a package that is not installed",
            remedy="install its provider; see https://ir-measur.es",
        )
    return measure


def _of_trec_eval(name: str) -> Any:
    """Return the measure that trec_eval calls `name`; None if there is not exactly one."""
    import ir_measures

    try:
        measures = ir_measures.parse_trec_measure(name)
    except ValueError:
        return None
    return measures[0] if len(measures) == 1 else None


def _of_ir_measures(name: str) -> Any:
    """Return the measure that ir-measures calls `name`, such as nDCG@10 or P(rel=2)@5.

    Its own parser fails on Python 3.14, which has no ast.Num.
    """
    from ir_measures import measures

    malformed = ValueError("not NAME, NAME@cutoff or NAME(parameter=value)@cutoff")

    def constant(node: ast.expr | None) -> Any:
        if isinstance(node, ast.Dict):
            return dict(zip(map(constant, node.keys), map(constant, node.values), strict=True))
        if not isinstance(node, ast.Constant):
            raise malformed
        return node.value

    try:
        node = ast.parse(name, mode="eval").body
    except SyntaxError:
        raise malformed from None
    params: dict[Any, Any] = {}
    cutoff = None
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
        cutoff, node = constant(node.right), node.left
    if isinstance(node, ast.Call) and not node.args:
        params = {keyword.arg: constant(keyword.value) for keyword in node.keywords}
        node = node.func
    if not isinstance(node, ast.Name):
        raise malformed
    registry = {**measures.registry, retrieved_ideal.NAME: ndcg_retrieved()}
    if node.id not in registry:
        raise NameError("no such name")
    kind = registry[node.id]
    if cutoff is not None:
        if kind.AT_PARAM in params:
            raise ValueError("two cutoffs")
        params[kind.AT_PARAM] = cutoff
    return kind(**params)


def _sample(ids: Mapping[str, object]) -> str:
    """List the first three ids."""
    shown = ", ".join(list(ids)[:3])
    return f"{shown}, …" if len(ids) > 3 else shown
