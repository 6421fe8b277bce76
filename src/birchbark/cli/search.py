"""`birchbark search`: one query, its best hits, and why they are there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from birchbark.cli.chosen import keeping_scores, open_engine, rankers
from birchbark.cli.options import (
    FILE,
    FIRST_STAGE_OPTIONS,
    first_stage_options,
    ranker_options,
    refuse_of_bert,
    time_option,
)
from birchbark.cli.talk import progress, say, tell_work

if TYPE_CHECKING:
    from birchbark.pipeline.answer import Answer, Hit


@click.command(
    epilog='Example: birchbark search articles.index "why do bees dance" --top 5',
    short_help="Search, and show the evidence.",
)
@click.argument("index", type=FILE)
@click.argument("text")
@click.option("--top", default=10, show_default=True, help="Hits to show.")
@first_stage_options
@ranker_options
@click.option(
    "--first-stage-only", is_flag=True, help="No BERT: hits as the first stage ranks them."
)
@time_option(
    "--budget",
    help="Answer within this time, as 500ms or 2s: documents that it does not suffice for keep the "
    "first stage's order, and the answer says so.",
)
@click.option("--json", "as_json", is_flag=True, help="A line of JSON for each hit.")
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
    """Search INDEX for TEXT: BM25, then BERT over the best candidates' sentences."""
    from birchbark.index.reader import Index
    from birchbark.pipeline.search import search, warm_up

    if first_stage_only:
        refuse_of_bert("--first-stage-only", "text", "top", "as_json")
    of_first_stage = {name: choices.pop(name) for name in FIRST_STAGE_OPTIONS}
    engine = open_engine(Index(index), threads=choices["threads"], **of_first_stage)
    if not engine.index.analyzer.terms(text):
        say("the query has no terms: nothing is left after stop words")
    with progress("searching") as advance:
        if first_stage_only:
            answer = search(engine, text, None, top)
        else:
            with keeping_scores(rankers(**choices), scores) as chosen:
                if budget is not None:
                    warm_up(engine, chosen, text)
                answer = search(engine, text, chosen, top, budget)
        advance(1)
    show(answer, as_json)
    if not first_stage_only:
        tell_work(answer.work, engine.index)


def show(answer: Answer, as_json: bool) -> None:
    """The hits on standard output; what was read for them on standard error."""
    from birchbark.cli.tables import show_hits

    if as_json:
        for hit in answer.hits:
            line = as_dict(hit) | {"exact": answer.work.exact}
            click.echo(json.dumps(line, ensure_ascii=False))
    elif answer.hits:
        show_hits(answer.hits)
    else:
        say("no document matches")


def as_dict(hit: Hit) -> dict[str, Any]:
    """What --json prints of a hit."""
    return {
        "doc_id": hit.document.doc_id,
        "title": hit.document.title,
        "score": hit.score,
        "first_stage": hit.first_stage,
        "evidence": hit.evidence,
        "embedding": hit.embedding,
        "compared": hit.compared,
        "settled": hit.settled,
        "segments": [
            {
                "start": e.segment.start,
                "end": e.segment.end,
                "text": e.segment.text,
                "score": e.score,
                "weight": e.weight,
            }
            for e in hit.segments
        ],
    }
