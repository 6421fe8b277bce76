"""`birchbark pairs to-collection`: how are pairs converted to a collection with judgments?"""

from __future__ import annotations

from pathlib import Path

import click

from birchbark.cli import pairs_options as shared
from birchbark.cli.console import counted, notify, progress, report_intake
from birchbark.cli.options import BAD_RECORD_REMEDY, PATH, option, skip_bad_option
from birchbark.show.plural import plural

CROP_WORDS = (2, 10)
HIGHEST_RELEVANCE = 1000  # higher grades are rejected as mistakes


@click.command(
    "to-collection",
    epilog="Example, for distillation: birchbark pairs to-collection mb.tsv qa.tsv --to pool "
    "--crops 20000; birchbark index pool/documents.jsonl --to pool.index; birchbark retrieve "
    "pool.index --queries pool/queries.tsv --depth 300 --output pool.run; birchbark pairs judged "
    "pool/documents.jsonl --queries pool/queries.tsv --qrels pool/qrels.txt --run pool.run "
    "--negatives 12 --random-negatives 2 --output pool.tsv",
    short_help="Turn pairs into documents, queries and judgments.",
)
@click.argument("files", nargs=-1, required=True, type=PATH)
@option("--to", "target", required=True, type=PATH, help="Folder to write.")
@option(
    "--crops",
    type=click.IntRange(1),
    metavar="N",
    help=f"Add N queries, each made of {CROP_WORDS[0]} to {CROP_WORDS[1]} consecutive words of a "
    "random text.",
)
@shared.seed_option
@shared.all_encoding_option
@skip_bad_option
def to_collection(
    files: tuple[Path, ...],
    target: Path,
    crops: int | None,
    seed: int,
    encoding: str,
    skip_bad: bool | None,
) -> None:
    """Write the distinct texts and queries of the pairs in FILES as a collection with judgments.

    Candidates for the queries can then be retrieved, for `birchbark pairs judged --run`.
    """
    from birchbark.artifact import refuse_existing
    from birchbark.collection.parsing.intake import Intake
    from birchbark.pairs.read import read_pairs
    from birchbark.pairs.to_collection import PairCollection

    refuse_existing(target, remedy="choose another path")
    intake, unpacked = Intake(skip_bad, encoding, BAD_RECORD_REMEDY), PairCollection()
    with progress("reading pairs") as advance:
        for path in files:
            unpacked.add(counted(read_pairs(path, intake, highest=HIGHEST_RELEVANCE), advance))
    added = unpacked.add_crops(crops, *CROP_WORDS, seed) if crops else 0
    unpacked.write(target)
    notify(
        f"{target}: {plural(len(unpacked.texts), 'document')}, "
        f"{plural(len(unpacked.queries), 'query')}, {added:,} of them crops"
    )
    report_intake(intake)
