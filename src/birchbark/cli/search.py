"""`birchbark search`: which documents answer a query best, and what is the evidence?"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from birchbark import defaults
from birchbark.cli.console import notify, progress, report_stats
from birchbark.cli.from_options import (
    check_threads,
    make_rankers,
    models_of_queries,
    models_on,
    stored_scores,
    take_ranker,
)
from birchbark.cli.grouped_help import GroupedCommand
from birchbark.cli.options import (
    Range,
    check_given_options,
    filter_option,
    index_argument,
    option,
    ranker_options,
    time_option,
)
from birchbark.cli.report_vectors import report_missing_vectors
from birchbark.show.plural import plural

if TYPE_CHECKING:
    from birchbark.pipeline.answers.answer import Answer
    from birchbark.pipeline.settings.ranker import Ranker


@click.command(
    cls=GroupedCommand,
    epilog='Example: birchbark search articles.index "why do bees dance" --top 5',
    short_help="Search, and show the evidence.",
)
@index_argument
@click.argument("words", metavar="TEXT", nargs=-1, required=True)
@option("--top", default=defaults.TOP, help="Number of hits to show.")
@option(
    "--min-probability",
    type=Range(0, 1),
    metavar="P",
    help="Show only hits that answer the query with at least this probability.",
)
@option(
    "--sort",
    "order",
    metavar="FIELD",
    help="Show the best hits in the order of a field: modified, or -modified for the newest first.",
)
@filter_option
@ranker_options
@time_option(
    "--budget",
    help="Time for the answer, such as 500ms or 2s, including the time to load the models. "
    "Documents that cannot be scored in time follow in the order of first stage and embedding.",
)
@option("--literal", is_flag=True, help="Take TEXT as it is: nothing in it is an operator.")
@option("--json", "as_json", is_flag=True, help="Print one JSON object per hit, each on a line.")
@option("--csv", "as_csv", is_flag=True, help="Print the hits for a spreadsheet.")
@option("--markdown", "as_markdown", is_flag=True, help="Print the hits for notes.")
def command(
    index: Path,
    words: tuple[str, ...],
    top: int,
    min_probability: float | None,
    order: str | None,
    budget: float | None,
    literal: bool,
    as_json: bool,
    as_csv: bool,
    as_markdown: bool,
    scores: Path | None,
    device: str,
    threads: int | None,
    **choices: Any,
) -> None:
    """Search INDEX for TEXT: BM25 and vectors find candidates, BERT ranks them by their passages.

    TEXT may have operators: "exact phrase", -word, -"phrase", FIELD:VALUE, -FIELD:VALUE,
    before:2024-05, after:2024-05-01. Put it in single quotation marks, so that the shell keeps
    them: 'jaguar "top speed" -car type:pdf'. If it begins with a minus, put -- in front of it.
    """
    started = time.perf_counter()
    from birchbark.deadline import NO_TIME
    from birchbark.pipeline.answers.sort_hits import sorted_by_field
    from birchbark.pipeline.searcher import Searcher
    from birchbark.score.lazy_session import when_needed

    check_given_options()
    text = " ".join(words)  # quotation marks around a query are not needed
    first_stage, stages = take_ranker(choices)
    match, stage = first_stage.make()
    if not stages:
        check_threads(match)
    models = models_on(device, threads, when_needed)
    for_queries = models_of_queries(models, device, threads, when_needed)
    searcher_with = partial(
        Searcher, index, first_stage=stage, vector_match=match, loaded=for_queries
    )
    searcher = searcher_with(model=())
    query = searcher.parse(text, literal=literal)
    if match is not None and match.used:
        report_missing_vectors(searcher.index)
    rankers: Sequence[Ranker] = ()
    with progress("searching"):
        if not stages:
            answer = searcher.search(query, top)
        else:
            with ThreadPoolExecutor(1) as pool:  # loads what is needed later
                pool.submit(searcher.search, query, 1)  # compiled code
                loaded = make_rankers(models, stages, auto_int8=device == defaults.DEVICE)
                pool.submit(_open_scorers, loaded)
                with stored_scores(loaded, scores) as rankers:
                    searcher = searcher_with(model=rankers)
                    if budget is not None:
                        searcher.warm_up()
                    loaded_at = time.perf_counter()
                    remaining = budget and max(budget - (loaded_at - started), NO_TIME)
                    answer = searcher.search(query, top, remaining)
                    seconds = time.perf_counter() - loaded_at
    shown = answer if min_probability is None else answer.above(min_probability)
    shown = shown if order is None else sorted_by_field(shown, order, searcher.index.keywords)
    if as_csv or as_markdown:
        _export_hits(shown, text if as_markdown else None)
    else:
        _print_hits(index, shown, rankers, as_json)
    left = None if budget is None else max(0.0, started + budget - time.perf_counter())
    for note in searcher.notes(query, answer, stage.filters, left):
        notify(note)
    if len(shown.hits) < len(answer.hits):
        left_out = plural(len(answer.hits) - len(shown.hits), "hit")
        notify(f"left out {left_out} whose probability is below {min_probability} or unknown")
    if stages:
        report_stats(answer.stats, searcher.index, rankers, seconds)
        if not answer.stats.exact:
            taken = f"{loaded_at - started:.1f} s"
            notify(
                f"loading the models took {taken} of the budget; birchbark serve keeps them loaded"
            )


def _open_scorers(rankers: Sequence[Ranker]) -> None:
    """Load the main scorers, which every search needs; errors come when they are used."""
    from birchbark.score.bert_scorer import BertScorer

    for ranker in rankers:
        if isinstance(ranker.scorer, BertScorer):
            ranker.scorer.open()


def _files(index: Path, answer: Answer) -> dict[str, Path]:
    """Return the paths of the hits' files, if a terminal can show links to them."""
    if not sys.stdout.isatty():
        return {}
    from birchbark.pipeline.upkeep.folder_index import files_of

    return files_of(index, (hit.document.doc_id for hit in answer.hits))


def _export_hits(answer: Answer, query: str | None) -> None:
    """Print hits as Markdown below the query; as CSV if it is None."""
    from birchbark.pipeline.answers.hit_fields import hit_fields
    from birchbark.pipeline.answers.search_notes import probably_unanswered
    from birchbark.show.exported_hits import hits_as_csv, hits_as_markdown

    hits = map(hit_fields, answer.hits)
    if query is None:
        text = hits_as_csv(hits)
    else:
        text = hits_as_markdown(query, hits, unanswered=probably_unanswered(answer))
    click.echo(text, nl=False)


def _print_hits(index: Path, answer: Answer, rankers: Sequence[Ranker], as_json: bool) -> None:
    from birchbark.pipeline.answers.hit_fields import hit_fields
    from birchbark.pipeline.reading_summary import reading_summary
    from birchbark.show.printable import printable_json
    from birchbark.show.terminal import show_hits

    if as_json:
        of_answer = {"exact": answer.stats.exact, "stats": reading_summary(answer.stats, rankers)}
        for hit in answer.hits:
            click.echo(printable_json(hit_fields(hit) | of_answer))
    else:
        show_hits(answer.hits, [ranker.scorer.kind for ranker in rankers], _files(index, answer))
