"""`birchbark pairs unpack`: pairs become a collection with queries."""

from __future__ import annotations

from pathlib import Path

import click

from birchbark.cli import pairs_parts as parts
from birchbark.cli.options import FILE, REMEDY, SKIP_BAD
from birchbark.cli.talk import counted, progress, report_intake, say

CROP = (2, 10)  # words
HIGHEST = 1000  # a grade that is higher is none


@click.command(
    epilog="Example, to distil from: birchbark pairs unpack mb.tsv qa.tsv --to pool --crops 20000; "
    "birchbark index pool/documents.jsonl --to pool.index; birchbark retrieve pool.index "
    "--queries pool/queries.tsv --depth 300 --output pool.run; birchbark pairs judged "
    "pool/documents.jsonl --queries pool/queries.tsv --qrels pool/qrels.txt --run pool.run "
    "--negatives 12 --in-collection 2 --output pool.tsv",
    short_help="Turn pairs into documents, queries and judgments.",
)
@click.argument("files", nargs=-1, required=True, type=FILE)
@click.option("--to", "target", required=True, type=FILE, help="Folder, which is made.")
@click.option(
    "--crops",
    type=click.IntRange(1),
    metavar="N",
    help="Add N queries: 2 to 10 words of a text, in their order.",
)
@parts.SEED
@parts.ENCODING
@SKIP_BAD
def unpack(
    files: tuple[Path, ...],
    target: Path,
    crops: int | None,
    seed: int,
    encoding: str,
    skip_bad: bool,
) -> None:
    """Write the distinct texts and queries of FILES, pairs, as a collection with judgments.

    So candidates can be retrieved for the queries, as `pairs judged --run` wants them.
    """
    from birchbark.artifact import refuse_existing
    from birchbark.collection.intake import Intake
    from birchbark.collection.pairs import read_pairs
    from birchbark.pairs.unpack import Unpacked

    refuse_existing(target, remedy="choose another name")
    intake, found = Intake(skip_bad, encoding, REMEDY), Unpacked()
    with progress("reading pairs") as advance:
        for path in files:
            found.add(counted(read_pairs(path, intake, highest=HIGHEST), advance))
    made = found.crop(crops, *CROP, seed) if crops else 0
    found.write(target)
    say(
        f"{target}: {len(found.texts):,} documents, {len(found.queries):,} queries, "
        f"{made:,} of them crops"
    )
    report_intake(intake)
