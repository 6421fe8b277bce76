"""`birchbark search`: which documents answer a query best, and what is the evidence?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from birchbark import defaults
from birchbark.cli.console import notify, progress, report_stats
from birchbark.cli.from_options import make_rankers, open_engine, stored_scores
from birchbark.cli.options import (
    check_given_options,
    first_stage_options,
    index_argument,
    option,
    ranker_options,
    time_option,
)
from birchbark.option_rules import FIRST_STAGE_OPTIONS

if TYPE_CHECKING:
    from birchbark.pipeline.answer import Answer, Hit


@click.command(
    epilog='Example: birchbark search articles.index "why do bees dance" --top 5',
    short_help="Search, and show the evidence.",
)
@index_argument
@click.argument("text")
@option("--top", default=defaults.TOP, help="Number of hits to show.")
@first_stage_options
@ranker_options
@option("--first-stage-only", is_flag=True, help="Rank by the first stage, without BERT.")
@time_option(
    "--budget",
    help="Time for the answer, such as 500ms or 2s. Documents that cannot be scored in time follow "
    "in the order of the first stage.",
)
@option("--json", "as_json", is_flag=True, help="Print one JSON object per hit, each on a line.")
def command(
    index: Path,
    text: str,
    top: int,
    first_stage_only: bool,
    budget: float | None,
    as_json: bool,
    scores: Path | None,
    **choices: Any,
) -> None:
    """Search INDEX for TEXT: first with BM25, then with BERT on the segments of the candidates."""
    from birchbark.index.index import Index
    from birchbark.pipeline.search import search, warm_up

    check_given_options()
    first_stage_choices = {name: choices.pop(name) for name in FIRST_STAGE_OPTIONS}
    engine = open_engine(Index(index), threads=choices["threads"], **first_stage_choices)
    if not engine.index.analyzer.terms(text):
        notify("the query has no terms: it holds only punctuation, stop words or the like")
    with progress("searching") as advance:
        if first_stage_only:
            answer = search(engine, text, None, top)
        else:
            with stored_scores(make_rankers(**choices, for_searches=True), scores) as rankers:
                if budget is not None:
                    warm_up(engine, rankers, text)
                answer = search(engine, text, rankers, top, budget)
        advance(1)
    _print_hits(answer, as_json)
    if not first_stage_only:
        report_stats(answer.stats, engine.index)


def _print_hits(answer: Answer, as_json: bool) -> None:
    from birchbark.show.terminal import show_hits

    if as_json:
        for hit in answer.hits:
            line = _json_object(hit) | {"exact": answer.stats.exact}
            click.echo(json.dumps(line, ensure_ascii=False))
    elif answer.hits:
        show_hits(answer.hits)
    else:
        notify("no document matches")


def _json_object(hit: Hit) -> dict[str, Any]:
    """Return what --json prints for a hit."""
    return {
        "doc_id": hit.document.doc_id,
        "title": hit.document.title,
        "score": hit.score,
        "first_stage": hit.first_stage,
        "evidence": hit.evidence,
        "embedding": hit.embedding,
        "compared": hit.compared,
        "scored": hit.scored,
        "segments": [
            {
                "start": evidence.segment.start,
                "end": evidence.segment.end,
                "text": evidence.segment.text,
                "score": evidence.score,
                "weight": evidence.weight,
            }
            for evidence in hit.segments
        ],
    }
