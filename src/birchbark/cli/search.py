"""`birchbark search`: one query, its best hits, and why they are there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from birchbark.cli.options import (
    FILE,
    FIRST_STAGE_OPTIONS,
    first_stage,
    first_stage_options,
    ranker,
    ranker_options,
    remembering,
)
from birchbark.cli.talk import progress, say

if TYPE_CHECKING:
    from birchbark.pipeline import Hit


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
@click.option("--json", "as_json", is_flag=True, help="A line of JSON for each hit.")
def command(
    index: Path,
    text: str,
    top: int,
    first_stage_only: bool,
    as_json: bool,
    scores: Path | None,
    **choices: Any,
) -> None:
    """Search INDEX for TEXT: BM25, then BERT over the best candidates' sentences."""
    from birchbark.cli.tables import show_hits
    from birchbark.index.reader import Index
    from birchbark.pipeline import search
    from birchbark.retrieve.engine import IndexEngine

    of_first_stage = {name: choices.pop(name) for name in FIRST_STAGE_OPTIONS}
    engine = IndexEngine(Index(index), first_stage(**of_first_stage))
    if not engine.index.analyzer.terms(text):
        say("the query has no terms: nothing is left after stop words")
    with progress("searching") as advance:
        if first_stage_only:
            hits = search(engine, text, None, top)
        else:
            with remembering(ranker(**choices), scores) as chosen:
                hits = search(engine, text, chosen, top)
        advance(1)
    if as_json:
        for hit in hits:
            click.echo(json.dumps(as_dict(hit), ensure_ascii=False))
    elif hits:
        show_hits(hits)
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
