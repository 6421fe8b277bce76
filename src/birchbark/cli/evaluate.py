"""`birchbark evaluate`: how good are runs, and are their differences significant?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from birchbark import defaults
from birchbark.cli.compare_runs import compare_to_first, result_fields
from birchbark.cli.console import notify, print_json
from birchbark.cli.options import (
    PATH,
    Range,
    check_given_options,
    json_option,
    option,
    random_seed_option,
)

if TYPE_CHECKING:
    from birchbark.evaluate.measures import Results
    from birchbark.records import Qrels, Run


@click.command(
    epilog="Examples: birchbark evaluate qrels.txt rm3.run bert.run -m AP -m nDCG@20; if many "
    "documents are unjudged: birchbark evaluate qrels.txt rm3.run bert.run -m Judged@10 "
    "-m nDCG@10 --judged-only --grades 10",
    short_help="Evaluate runs, and test their differences.",
)
@click.argument("qrels", type=PATH)
@click.argument("runs", nargs=-1, required=True, type=PATH)
@option(
    "-m",
    "--measure",
    "names",
    multiple=True,
    default=defaults.MEASURES,
    help="Measure, as spelled by ir-measures (nDCG@10) or trec_eval (ndcg_cut_10); repeat for "
    "several.",
)
@option("--baseline", type=PATH, help="Run to compare with.  [default: the first]")
@option("--judged-only", is_flag=True, help="Remove unjudged documents from the rankings.")
@option(
    "--grades",
    type=click.IntRange(1),
    metavar="K",
    help="Also count how many of the first K documents of every query have each grade, or none.",
)
@option("--per-query", is_flag=True, help="Print query, measure, value and run as TSV.")
@json_option
@option(
    "--significance-level",
    type=Range(0, 1, min_open=True, max_open=True),
    default=defaults.SIGNIFICANCE_LEVEL,
    help="Differences with a lower p, after correction, are marked with †.",
)
@random_seed_option("the bootstrap")
def command(
    qrels: Path,
    runs: tuple[Path, ...],
    names: tuple[str, ...],
    baseline: Path | None,
    judged_only: bool,
    grades: int | None,
    per_query: bool,
    as_json: bool,
    significance_level: float,
    seed: int,
) -> None:
    """Evaluate each of RUNS against QRELS, as `trec_eval -c` does.

    Means, or sums for counts such as NumRet, are over all judged queries; a query without a ranking
    counts as 0. If there are several runs, each of the others is compared with the baseline: paired
    t-test with Bonferroni correction, bootstrap confidence interval.
    """
    from birchbark.collection.qrels import read_qrels
    from birchbark.collection.runs import read_run
    from birchbark.evaluate.grades import grades_at
    from birchbark.evaluate.measures import measure

    check_given_options()
    judgments = read_qrels(qrels)
    named = [baseline, *runs] if baseline else list(runs)
    files = list({file.resolve(): file for file in named}.values())  # each run once
    ranked = [read_run(file) for file in files]
    results = [measure(judgments, run, names, judged_only=judged_only) for run in ranked]
    if len({result.tag for result in results}) < len(results):
        results = [replace(r, tag=f"{r.tag} ({f})") for r, f in zip(results, files, strict=True)]
    for file, result in zip(files, results, strict=True):
        _report_missing(file, result)
    for file, run in zip(files, ranked, strict=True):
        if not any(_judged(judgments, run)):
            notify(f"note: {file}: none of its documents is judged; are the ids the same?")
    if per_query:
        for result in results:
            _print_per_query(result)
        return
    differences = compare_to_first(results, seed, significance_level)
    counts = [grades_at(judgments, run, grades) if grades else None for run in ranked]
    if as_json:
        rows = zip(files, results, differences, counts, strict=True)
        print_json([result_fields(*row) for row in rows])
        return
    from birchbark.show.terminal import show_grades, show_results

    show_results(results, differences, significance_level)
    if grades:
        show_grades([result.tag for result in results], [c for c in counts if c], grades)


def _judged(qrels: Qrels, run: Run) -> Iterator[bool]:
    """Yield for each ranked document whether it is judged."""
    for query_id, ranking in run.rankings.items():
        grades = qrels.grades.get(query_id, {})
        yield from (doc_id in grades for doc_id in ranking.doc_ids)


def _report_missing(file: Path, result: Results) -> None:
    if result.unranked:
        notify(f"note: {file}: judged queries not ranked, each counted as 0: {result.unranked}")
    if result.unjudged:
        notify(f"note: {file}: queries without judgments, ignored: {result.unjudged}")


def _print_per_query(result: Results) -> None:
    for measure_name, values in result.values.items():
        for query_id, value in values.items():
            click.echo(f"{query_id}\t{measure_name}\t{value:.6f}\t{result.tag}")
