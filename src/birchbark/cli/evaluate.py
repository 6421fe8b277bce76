"""`birchbark evaluate`: what do the judgments say of one or more runs?"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from birchbark.cli.options import FILE
from birchbark.cli.talk import say
from birchbark.errors import InputError, MissingPackageError

if TYPE_CHECKING:
    from birchbark.evaluate.measures import Results
    from birchbark.evaluate.significance import Difference

    Differences = Sequence[Mapping[str, Difference] | None]


@click.command(
    epilog="Examples: birchbark evaluate qrels.txt rm3.run bert.run -m AP -m nDCG@20; where many "
    "documents have no judgment: birchbark evaluate qrels.txt rm3.run bert.run -m Judged@10 "
    "-m nDCG@10 --judged-only --grades 10",
    short_help="Measure runs, and test their differences.",
)
@click.argument("qrels", type=FILE)
@click.argument("runs", nargs=-1, required=True, type=FILE)
@click.option(
    "-m",
    "--measure",
    "names",
    multiple=True,
    default=("AP", "nDCG@10", "RR@10", "P@5"),
    show_default=True,
    help="As ir-measures spells it; repeat for several.",
)
@click.option("--baseline", type=FILE, help="Run to compare with.  [default: the first]")
@click.option("--judged-only", is_flag=True, help="Take unjudged documents out of the rankings.")
@click.option(
    "--grades",
    type=click.IntRange(1),
    metavar="K",
    help="Count the grades of the first K documents, the unjudged among them.",
)
@click.option("--per-query", is_flag=True, help="Query, measure, value and run, tab-separated.")
@click.option("--json", "as_json", is_flag=True, help="Everything, as JSON.")
@click.option("--seed", default=0, show_default=True, help="Of the bootstrap.")
def command(
    qrels: Path,
    runs: tuple[Path, ...],
    names: tuple[str, ...],
    baseline: Path | None,
    judged_only: bool,
    grades: int | None,
    per_query: bool,
    as_json: bool,
    seed: int,
) -> None:
    """Measure each of RUNS against QRELS, as trec_eval does.

    Means are over all judged queries; one that a run does not rank counts 0. With several runs, the
    others are compared with the baseline: paired t-test, Bonferroni, bootstrap interval.
    """
    from birchbark.collection.qrels import read_qrels
    from birchbark.collection.runs import read_run
    from birchbark.evaluate.judged import grades_at
    from birchbark.evaluate.measures import measure

    if per_query and (as_json or grades):
        option = "--json" if as_json else "--grades"
        raise InputError(f"{option} does nothing beside --per-query")
    judged = read_qrels(qrels)
    named = [baseline, *runs] if baseline else list(runs)
    files = list({file.resolve(): file for file in named}.values())  # each run once
    ranked = [read_run(file) for file in files]
    results = [measure(judged, run, names, judged_only=judged_only) for run in ranked]
    if len({result.tag for result in results}) < len(results):
        results = [replace(r, tag=f"{r.tag} ({f})") for r, f in zip(results, files, strict=True)]
    for file, result in zip(files, results, strict=True):
        _note(file, result)
    if per_query:
        for result in results:
            for name, values in result.values.items():
                for query_id, value in values.items():
                    click.echo(f"{query_id}\t{name}\t{value:.6f}\t{result.tag}")
        return
    differences = compared(results, seed)
    counts = [grades_at(judged, run, grades) if grades else None for run in ranked]
    if as_json:
        rows = zip(files, results, differences, counts, strict=True)
        click.echo(json.dumps([_plain(*row) for row in rows], indent=2))
        return
    from birchbark.cli.tables import show_grades, show_results

    show_results(results, differences)
    if grades:
        show_grades([result.tag for result in results], [c for c in counts if c], grades)


def _note(file: Path, result: Results) -> None:
    if result.unranked:
        say(f"note: {file}: {result.unranked} judged queries are not ranked; each counts 0")
    if result.unjudged:
        say(f"note: {file}: {result.unjudged} queries have no judgments and are left out")


def compared(results: Sequence[Results], seed: int) -> Differences:
    """Differences of all results from the first; without scipy none, and a word about it."""
    from birchbark.evaluate.significance import compare

    queries = len(next(iter(results[0].values.values())))
    if queries < 2 and len(results) > 1:
        say("note: one judged query is too few for tests and intervals")
        return [None] * len(results)
    try:
        return [None, *compare(results[0], results[1:], seed=seed)]
    except MissingPackageError as missing:
        say(f"note: {missing}")
        return [None] * len(results)


def _plain(
    file: Path,
    result: Results,
    difference: Mapping[str, Difference] | None,
    grades: Mapping[int | None, int] | None,
) -> dict[str, object]:
    """What --json prints of one run."""
    counts = {"unjudged" if g is None else str(g): n for g, n in (grades or {}).items()}
    return {
        "run": str(file),
        "tag": result.tag,
        "queries": len(next(iter(result.values.values()))),
        "unranked": result.unranked,
        "unjudged": result.unjudged,
        "means": result.means,
        "difference": {n: asdict(d) for n, d in difference.items()} if difference else None,
        "grades": counts or None,
        "per_query": result.values,
    }
