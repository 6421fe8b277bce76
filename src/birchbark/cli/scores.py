"""`birchbark scores`: which scores does a store contain, and how are they deleted?"""

from __future__ import annotations

from pathlib import Path

import click

from birchbark.cli.console import notify, print_json
from birchbark.cli.options import PATH, json_option, option
from birchbark.show.plural import plural

COLUMNS = ("scorer", "pairs", "bytes", "name")


@click.command(
    epilog="Examples: birchbark scores bert.scores --prune 3f9a2c0b51d7e846; "
    "birchbark scores bert.scores --add shard-1.scores --add shard-2.scores",
    short_help="List, join or delete stored scores of BERT.",
)
@click.argument("store", type=PATH)
@option(
    "--prune",
    "pruned",
    multiple=True,
    metavar="SCORER",
    help="Delete the scores of this scorer, given by its name or the beginning of its identifier; "
    "repeat for several.",
)
@option(
    "--add",
    "added",
    type=PATH,
    multiple=True,
    metavar="STORE",
    help="Add the scores of this other store, such as that of a shard; repeat for several.",
)
@json_option
def command(store: Path, pruned: tuple[str, ...], added: tuple[Path, ...], as_json: bool) -> None:
    """List the scorers in STORE, a folder written with --scores, with their pairs and bytes.

    A model is listed once per precision and version of ONNX Runtime that it was run with.
    """
    from birchbark.score_cache.join_stores import join_stores
    from birchbark.score_cache.store_folder import entries, prune

    for joined in join_stores(store, *added) if added else ():
        name = joined.header.name
        notify(f"added {plural(joined.added, 'pair')} of {name} from {joined.source}")
        if joined.processors:
            notify(f"  note: computed by unlike processors: {'; '.join(joined.processors)}")
        if joined.unequal:
            notify(f"  note: {plural(joined.unequal, 'pair')} had another score; it was not added")
    for name in pruned:
        deleted = prune(store, name)
        notify(
            f"deleted {plural(deleted.pairs, 'pair')} of {deleted.identifier}, "
            f"{deleted.header.name}"
        )
    remaining = entries(store)
    rows = [(entry.identifier, entry.pairs, entry.bytes, entry.header.name) for entry in remaining]
    if as_json:
        print_json([dict(zip(COLUMNS, row, strict=True)) for row in rows])
    else:
        click.echo("\t".join(COLUMNS))
        for identifier, pairs, size, name in rows:
            click.echo(f"{identifier}\t{pairs:,}\t{size:,}\t{name}")
    notify(f"{plural(sum(entry.pairs for entry in remaining), 'pair')} in {store}")
