"""What do the verbs of `birchbark pairs` share: options, drawing, and how they end?"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import click

from birchbark.cli.chosen import check_output
from birchbark.cli.options import FILE
from birchbark.cli.talk import counted, progress, report_intake, say
from birchbark.errors import InputError

if TYPE_CHECKING:
    from birchbark.collection.intake import Intake
    from birchbark.pairs.write import Tally
    from birchbark.records import Document, Pair, Qrels

OUTPUT = click.option("--output", required=True, type=FILE, help="The pairs, TSV.")
QRELS = click.option("--qrels", required=True, type=FILE, help="Judgments in TREC form.")
ENCODING = click.option("--encoding", default="utf-8", show_default=True, help="Of all files.")
LIMIT = click.option("--limit", type=click.IntRange(1), metavar="N", help="Only the first N pairs.")
SEED = click.option("--seed", default=0, show_default=True, help="Of all that is drawn.")
IN_COLLECTION = click.option(
    "--in-collection",
    type=click.IntRange(1),
    metavar="N",
    help="Add N documents a query from anywhere in the collection, unjudged, as not relevant. The "
    "collection is read twice.",
)


def judgments(path: Path, intake: Intake, query_ids: Iterable[str] | None = None) -> Qrels:
    """The judgments in `path`, or those of these queries; InputError if none is relevant."""
    from birchbark.collection.judged import of_queries
    from birchbark.collection.qrels import read_qrels

    qrels = read_qrels(path)
    if query_ids is not None:
        qrels = of_queries(qrels, query_ids, intake)
    if not any(grade > 0 for grades in qrels.grades.values() for grade in grades.values()):
        raise InputError(
            "no document is judged relevant for these queries",
            where=str(path),
            wanted="a grade of 1 or more",
            remedy="nothing can be learnt from pairs of relevance 0 alone",
        )
    return qrels


def drawn_anywhere(
    qrels: Qrels, documents: Iterable[Document], count: int, seed: int
) -> dict[str, list[str]]:
    """Unjudged documents with text for each query, told to the user."""
    from birchbark.pairs.anywhere import from_collection

    with progress("drawing documents") as advance:
        doc_ids = (d.doc_id for d in counted(documents, advance) if d.contents.strip())
        sample = from_collection(qrels, doc_ids, count, seed)
    tell_documents("drew", sample, count, "the collection")
    return sample


def tell_documents(
    verb: str, found: Mapping[str, Collection[str]], count: int | None, source: str
) -> None:
    """Say how many documents of `source` were found, and for how many queries under `count`."""
    short = sum(len(doc_ids) < count for doc_ids in found.values()) if count else 0
    fewer = f"; fewer than {count:,} for {short:,} of them" if short else ""
    number = sum(map(len, found.values()))
    say(f"{verb} {number:,} documents from {source} for {len(found):,} queries{fewer}")


def write_and_tell(
    pairs: Callable[[Callable[[int], None]], Iterable[Pair]],
    output: Path,
    intake: Intake,
    limit: int | None = None,
    apart: Collection[str] = (),
) -> list[Tally]:
    """Write what `pairs` gives, which is handed the progress bar; say what was written where."""
    from birchbark.pairs.write import write_pairs

    held = held_file(output) if apart else None
    with progress("making pairs") as advance:
        tallies = write_pairs(islice(pairs(advance), limit), output, intake, held, apart)
    for tally, path in zip(tallies, (output, held), strict=False):
        say(
            f"wrote {tally.pairs:,} pairs of {len(tally.queries):,} queries to {path}: "
            f"{tally.relevant:,} relevant, {tally.words / tally.pairs:.1f} words on average"
        )
        _tell_some(sorted(tally.queries - tally.answered), "have no relevant pair")
    highest = max(tally.highest for tally in tallies)
    if highest > 1:
        say(f"  note: relevance goes up to {highest}: a training needs highest = {highest}")
    report_intake(intake)
    return tallies


def tell_without_pairs(query_ids: Iterable[str], tallies: Sequence[Tally]) -> None:
    """Say which of the queries have no pair in any file."""
    paired = {query_id for tally in tallies for query_id in tally.queries}
    _tell_some([query_id for query_id in query_ids if query_id not in paired], "have no pair")


def _tell_some(query_ids: Sequence[str], what: str) -> None:
    if query_ids:
        more = ", …" if len(query_ids) > 5 else ""
        say(f"  note: {len(query_ids):,} queries {what}: {', '.join(query_ids[:5])}{more}")


def held_file(output: Path) -> Path:
    """Where pairs that are held apart go: pairs.held.tsv beside pairs.tsv."""
    return output.with_name(f"{output.stem}.held{output.suffix}")


def check_outputs(output: Path, split: bool) -> None:
    """Raise InputError now, not after the work, if the files could not be written."""
    check_output(output, None)
    if not split:
        return
    if output.exists() and not output.is_file():
        raise InputError("--split writes two files", where=str(output), found="a stream")
    check_output(held_file(output), None)
