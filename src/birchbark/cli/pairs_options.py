"""How do `birchbark pairs` and `birchbark study title-pairs` sample, write and report?"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from birchbark.artifact import is_stream
from birchbark.cli.console import counted, first_few, notify, progress, report_intake
from birchbark.cli.from_options import check_writable
from birchbark.cli.options import PATH, encoding_option, option, random_seed_option
from birchbark.errors import InputError
from birchbark.show.plural import plural

if TYPE_CHECKING:
    from birchbark.collection.parsing.intake import Intake
    from birchbark.pairs.write import PairFileStats
    from birchbark.records import Document, Pair, Qrels

output_option = option("--output", required=True, type=PATH, help="TSV file of pairs.")
qrels_option = option("--qrels", required=True, type=PATH, help="Judgments in TREC format.")
all_encoding_option = encoding_option("all input files")
seed_option = random_seed_option("all sampling")
random_negatives_option = option(
    "--random-negatives",
    type=click.IntRange(1),
    metavar="N",
    help="Add N random unjudged documents of the collection per query, as not relevant. The "
    "collection is read twice.",
)


def read_judgments(path: Path, intake: Intake, query_ids: Iterable[str]) -> Qrels:
    """Return the judgments in `path`, restricted to `query_ids`.

    Queries that are not in `query_ids` are noted in `intake`. Raises InputError if no document is
    judged relevant.
    """
    from birchbark.collection.qrels import read_qrels
    from birchbark.pairs.judged import qrels_of_queries

    qrels = qrels_of_queries(read_qrels(path), query_ids, intake)
    if not any(grade > 0 for grades in qrels.grades.values() for grade in grades.values()):
        raise InputError(
            "no document is judged relevant for these queries",
            where=str(path),
            wanted="a grade of 1 or more",
            remedy="a model cannot be trained on irrelevant pairs only",
        )
    return qrels


def with_random_negatives(
    qrels: Qrels, documents: Iterable[Document], count: int, seed: int
) -> Qrels:
    """Return `qrels` with `count` random unjudged documents per query as not relevant."""
    from birchbark.pairs.judged import add_negatives
    from birchbark.pairs.random_negatives import random_negatives

    with progress("sampling documents") as advance:
        doc_ids = (d.doc_id for d in counted(documents, advance) if d.contents.strip())
        sample = random_negatives(qrels, doc_ids, count, seed)
    report_sample("sampled", sample, count, "the collection")
    return add_negatives(qrels, sample)


def report_sample(
    verb: str, doc_ids_of: Mapping[str, Collection[str]], count: int | None, source: str
) -> None:
    """Print how many documents come from `source`, and for how many queries fewer than `count`.

    verb: past participle for the message, such as "sampled". count: None if there is no target.
    """
    short = sum(len(doc_ids) < count for doc_ids in doc_ids_of.values()) if count else 0
    fewer = f"; fewer than {count:,} for {short:,} of them" if short else ""
    total = sum(map(len, doc_ids_of.values()))
    documents, queries = plural(total, "document"), plural(len(doc_ids_of), "query")
    notify(f"{verb} {documents} from {source} for {queries}{fewer}")


def write_and_report(
    pairs: Callable[[Callable[[int], None]], Iterable[Pair]],
    output: Path,
    intake: Intake,
    held_out_ids: Collection[str] = (),
) -> list[PairFileStats]:
    """Write the pairs that `pairs(advance)` yields, print a summary, and return it per file.

    held_out_ids: queries whose pairs are written to `held_out_path(output)` instead.
    """
    from birchbark.pairs.write import write_pairs

    held_out = held_out_path(output) if held_out_ids else None
    with progress("writing pairs") as advance:
        all_stats = write_pairs(pairs(advance), output, intake, held_out, held_out_ids)
    for stats, path in zip(all_stats, (output, held_out), strict=False):
        notify(
            f"wrote {plural(stats.pairs, 'pair')} of {plural(len(stats.queries), 'query')} "
            f"to {path}: "
            f"{stats.relevant:,} relevant, {stats.words / stats.pairs:.1f} words on average"
        )
        _report_queries(sorted(stats.queries - stats.answered), "have no relevant pair")
    highest = max(stats.highest for stats in all_stats)
    if highest > 1:
        notify(f"  note: the highest relevance is {highest}: train with highest = {highest}")
    report_intake(intake)
    return all_stats


def report_queries_without_pairs(
    query_ids: Iterable[str], all_stats: Sequence[PairFileStats]
) -> None:
    """Print which of the queries have no pair in any file."""
    paired = {query_id for stats in all_stats for query_id in stats.queries}
    _report_queries([query_id for query_id in query_ids if query_id not in paired], "have no pair")


def _report_queries(query_ids: Sequence[str], predicate: str) -> None:
    if query_ids:
        notify(f"  note: queries that {predicate}: {len(query_ids):,} ({first_few(query_ids)})")


def held_out_path(output: Path) -> Path:
    """Return the path for held-out pairs: pairs.held.tsv for pairs.tsv."""
    return output.with_name(f"{output.stem}.held{output.suffix}")


def check_outputs(output: Path, *, holdout: bool = False) -> None:
    """Raise InputError if the output files cannot be written; call it before any work."""
    check_writable(output)
    if not holdout:
        return
    if is_stream(output):
        raise InputError("--holdout writes two files", where=str(output), found="a stream")
    check_writable(held_out_path(output))
