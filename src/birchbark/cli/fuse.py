"""`birchbark fuse`: how are several runs combined into one, without judgments?"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from birchbark import defaults
from birchbark.cli.console import notify
from birchbark.cli.from_options import check_tag, check_writable
from birchbark.cli.options import PATH, Range, check_given_options, option, scale_option
from birchbark.errors import InputError
from birchbark.show.plural import plural


@click.command(
    epilog="Examples: birchbark fuse bm25.run dense.run --output both.run; "
    "birchbark fuse bm25.run bert.run --by scores --weight .2 --weight .8 --output mixed.run",
    short_help="Combine runs by ranks or scores.",
)
@click.argument("runs", nargs=-1, required=True, type=PATH)
@option("--output", required=True, type=PATH, help="Run to write, in TREC format.")
@option(
    "--by",
    "fused_by",
    type=click.Choice(["ranks", "scores"]),
    default=defaults.FUSED_BY,
    help="ranks: reciprocal rank fusion, the sum of weight / (constant + rank). scores: the sum of "
    "weight · scaled score.",
)
@option(
    "--weight",
    "weights",
    type=Range(0),
    multiple=True,
    metavar="W",
    help="Weight of a run; repeat for each, in the order of the runs.  [default: 1 for each]",
)
@option(
    "--rank-constant",
    type=Range(0),
    default=defaults.RANK_CONSTANT,
    help="Constant of reciprocal rank fusion; the larger, the less the first ranks stand out.",
)
@scale_option
@option(
    "--depth",
    type=click.IntRange(1),
    default=defaults.RETRIEVAL_DEPTH,
    help="Number of documents to rank per query.",
)
@option("--tag", help="Tag of the run.  [default: rrf or fused]")
def command(
    runs: tuple[Path, ...],
    output: Path,
    fused_by: str,
    weights: tuple[float, ...],
    rank_constant: float,
    scale: str,
    depth: int,
    tag: str | None,
) -> None:
    """Rank the documents of RUNS by a weighted sum of reciprocal ranks, or of scaled scores.

    A document that a run does not rank gets nothing from it. `birchbark tune` chooses weights from
    judgments.
    """
    from birchbark.collection.run_metadata import known_stages, write_described_run
    from birchbark.collection.runs import read_run
    from birchbark.combine.fusion import reciprocal_rank_fusion, score_fusion
    from birchbark.combine.interpolate import Scale

    check_given_options()
    check_tag(tag)
    check_writable(output)
    if len(runs) < 2:
        raise InputError("nothing to combine", wanted="two runs or more", found="one")
    given = [read_run(path) for path in runs]
    if fused_by == "ranks":
        fused = reciprocal_rank_fusion(given, weights or None, rank_constant)
    else:
        fused = score_fusion(given, weights or None, Scale(scale))
    combined = replace(fused.head(depth), tag=tag or fused.tag)
    made = {
        "name": combined.tag,
        "method": f"fusion by {fused_by}",
        "interpolates": [run.tag for run in given],
        "weight": list(weights) or "equal",
    }
    write_described_run(combined, output, [*known_stages(zip(runs, given, strict=True)), made])
    left_out = sum(len(fused.rankings[q]) - len(x) for q, x in combined.rankings.items())
    partial = [
        query_id for query_id in fused.rankings if any(query_id not in x.rankings for x in given)
    ]
    notify(f"ranked {plural(len(fused.rankings), 'query')} by {len(runs)} runs")
    if partial:
        notify(f"  note: queries that are not in all runs: {len(partial)}")
    if left_out:
        notify(f"  left out, below --depth: {plural(left_out, 'document')}")
