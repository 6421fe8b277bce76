"""`birchbark tune`: which weights mix a run best with evidence or with other runs?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from birchbark import defaults
from birchbark.arguments import is_count
from birchbark.cli.compare_runs import compare_to_first, result_fields
from birchbark.cli.console import notify, print_json
from birchbark.cli.from_options import check_tag, check_writable
from birchbark.cli.options import (
    PATH,
    check_given_options,
    json_option,
    option,
    random_seed_option,
    scale_option,
)
from birchbark.errors import InputError
from birchbark.show.plural import plural

if TYPE_CHECKING:
    from birchbark.collection.segment_scores import Scores
    from birchbark.combine.interpolate import Scale
    from birchbark.evaluate.tune import Candidates, Tuning
    from birchbark.records import Run


@click.command(
    epilog="Examples: birchbark tune qrels.txt rm3.run --evidence bert.jsonl --output mixed.run; "
    "birchbark tune qrels.txt bm25.run dense.run --output mixed.run",
    short_help="Choose weights by cross-validation.",
)
@click.argument("qrels", type=PATH)
@click.argument("runs", nargs=-1, required=True, type=PATH)
@option(
    "--evidence",
    type=PATH,
    help="Segment scores to mix with the run, as `birchbark rerank --evidence` writes them: JSON "
    "Lines with query_id, doc_id and a list of scores.",
)
@option(
    "--best",
    type=click.IntRange(1, 5),
    default=defaults.TUNED_SEGMENTS,
    help="Number of best segments of a document whose scores are mixed.",
)
@option("--output", required=True, type=PATH, help="Run to write, in TREC format.")
@option(
    "--folds",
    metavar="NUMBER|FILE",
    default=str(defaults.TUNING_FOLDS),
    help="Number of random folds, or a JSON file of them: a list of lists of query ids.",
)
@option(
    "-m", "--measure", "measure_name", default=defaults.TUNED_MEASURE, help="Measure to maximise."
)
@option("--step", default=defaults.TUNING_STEP, help="Distance between the weights to try.")
@scale_option
@option(
    "--depth",
    type=click.IntRange(1),
    default=defaults.RETRIEVAL_DEPTH,
    help="Number of best documents of each run that are mixed. Of several runs, the new run has as "
    "many for each query.",
)
@random_seed_option("folds and bootstrap")
@option("--tag", help="Tag of the new run.  [default: mixed]")
@json_option
def command(
    qrels: Path,
    runs: tuple[Path, ...],
    evidence: Path | None,
    best: int,
    output: Path,
    folds: str,
    measure_name: str,
    step: float,
    scale: str,
    depth: int,
    seed: int,
    tag: str | None,
    as_json: bool,
) -> None:
    """Mix RUNS, and rank each query with the weights that are best on the other folds.

    With --evidence, the run is mixed with the best segments of its documents: score = A · run +
    (1 - A) · (s1 + W2 · s2 + …), where s1, s2, … are the best scores of segments. With several
    runs, the score is the weighted sum of their scores, and the weights sum to 1. All weights on a
    grid are tried.
    """
    from birchbark.collection.folds import read_folds
    from birchbark.collection.qrels import read_qrels
    from birchbark.collection.run_metadata import known_stages, write_described_run
    from birchbark.collection.runs import read_run
    from birchbark.collection.segment_scores import read_segment_scores
    from birchbark.combine.interpolate import Scale, scale_scores
    from birchbark.evaluate.folds import make_folds
    from birchbark.evaluate.measures import measure
    from birchbark.evaluate.mixtures import (
        evidence_grid,
        mixed_run,
        run_candidates,
        with_evidence,
    )
    from birchbark.evaluate.rank_measures import parse_rank_measure
    from birchbark.evaluate.tune import simplex_grid, tune
    from birchbark.show.terminal import show_results, show_tuning

    check_given_options()
    check_tag(tag)
    check_writable(output)
    if (evidence is None) == (len(runs) == 1):
        raise InputError("give one run and --evidence, or several runs")
    parse_rank_measure(measure_name)
    scores = read_segment_scores(evidence) if evidence else {}
    if evidence and (longest := max(len(s) for of in scores.values() for s in of.values())) < best:
        notify(
            f"note: no document has more than {plural(longest, 'score')}; --best is lowered to that"
        )
        best = max(1, longest)
    weights = evidence_grid(step, best) if evidence else simplex_grid(len(runs), step)
    judgments = read_qrels(qrels)
    if is_count(folds):
        query_folds = make_folds(judgments.grades, int(folds), seed)
    else:
        query_folds = read_folds(Path(folds), judgments.grades)
    first, *others = map(read_run, runs)
    if others:
        for file, run in zip(runs, (first, *others), strict=True):
            _check_scores(file, run.head(depth), Scale(scale))
    scaled = partial(scale_scores, scale=Scale(scale))
    if evidence:
        candidates = with_evidence(first, scores, best, depth, scaled)
        _report_scores(evidence, scores, candidates)
    else:
        query_ids = dict.fromkeys(q for run in (first, *others) for q in run.rankings)
        candidates = run_candidates([first, *others], query_ids, depth, scaled)
    ranked = max(map(len, first.rankings.values())) if evidence else depth
    tuning = tune(candidates, judgments, weights, measure_name, query_folds, ranked)
    mixed = mixed_run(candidates, tuning, tag or "mixed").head(ranked)
    if others:
        _report_left_out([first, *others], mixed)
    made = {
        "name": mixed.tag,
        "method": f"weights by cross-validation for {measure_name}",
        "interpolates": [run.tag for run in (first, *others)],
        "weight": [list(tuning.chosen_weights(fold)) for fold in range(len(tuning.folds))],
    }
    write_described_run(
        mixed, output, [*known_stages(zip(runs, (first, *others), strict=True)), made]
    )
    if unjudged := len(mixed.rankings.keys() - judgments.grades.keys()):
        notify(
            f"note: {plural(unjudged, 'query')} without judgments: ranked with the weights of the "
            "first fold"
        )
    results = [measure(judgments, run, [measure_name]) for run in (first, *others, mixed)]
    names = [*_run_names(runs), output.name]
    results = [replace(result, tag=name) for result, name in zip(results, names, strict=True)]
    weight_names = _run_names(runs)  # what each weight multiplies
    if evidence:
        weight_names += [f"segment {n}" for n in range(1, best + 1)]
    differences = compare_to_first(results, seed)
    if as_json:
        rows = zip((*runs, output), results, differences, strict=True)
        tuned = _tuning_fields(tuning, weight_names, measure_name)
        print_json(tuned | {"runs": [result_fields(*row) for row in rows]})
    else:
        show_tuning(tuning, weight_names, measure_name)
        show_results(results, differences)


def _check_scores(file: Path, run: Run, scale: Scale) -> None:
    """Raise InputError for scores that cannot be mixed with those of other runs."""
    from birchbark.combine.fusion import check_above_unranked

    for query_id, ranking in run.rankings.items():
        try:
            check_above_unranked(ranking, scale)
        except InputError as error:
            raise error.at(f"{file}: query {query_id}") from None


def _report_left_out(runs: Sequence[Run], mixed: Run) -> None:
    """Print how many documents of the runs are below the depth of the mixed run."""
    left_out = 0
    for query_id, ranking in mixed.rankings.items():
        rankings = [run.rankings[query_id] for run in runs if query_id in run.rankings]
        left_out += len({d for ranking in rankings for d in ranking.doc_ids}) - len(ranking)
    if left_out:
        notify(f"note: {plural(left_out, 'document')} below --depth: left out")


def _report_scores(evidence: Path, scores: Scores, candidates: Mapping[str, Candidates]) -> None:
    """Print how many documents have scores, and how many scores belong to no document of the run.

    Raises InputError if no document has scores.
    """
    counts = {query_id: len(of_query.doc_ids) for query_id, of_query in candidates.items()}
    used, queries = sum(counts.values()), sum(count > 0 for count in counts.values())
    if not used:
        raise InputError(
            "no document of the run has scores",
            where=str(evidence),
            remedy="check that the query ids and document ids are those of the run",
        )
    lists = [of_document for of_query in scores.values() for of_document in of_query.values()]
    notify(f"{plural(used, 'document')} of {plural(queries, 'query')} have scores")
    if unused := sum(map(bool, lists)) - used:
        notify(
            f"note: ignored the scores of {plural(unused, 'document')} not among the first --depth "
            "of the run"
        )


def _tuning_fields(tuning: Tuning, names: Sequence[str], measure_name: str) -> dict[str, object]:
    """Return what --json prints of the weights."""
    folds = []
    for number, queries in enumerate(tuning.folds):
        others, this = tuning.means(number)
        weights = dict(zip(names, tuning.chosen_weights(number), strict=True))
        folds.append(
            {"queries": list(queries), "weights": weights, "other_folds": others, "this_fold": this}
        )
    return {"measure": measure_name, "folds": folds}


def _run_names(runs: Sequence[Path]) -> list[str]:
    """Return the names of the files, with their folders if two have the same name."""
    names = [run.name for run in runs]
    return names if len(set(names)) == len(names) else list(map(str, runs))
