"""`birchbark index sync`: how is an index brought up to date with its folder?"""

from __future__ import annotations

from pathlib import Path

import click

from birchbark.cli.index_of_folder import index_of, sync_and_report
from birchbark.cli.options import PATH
from birchbark.cli.report_vectors import report_vectors


@click.command(
    epilog="Example: birchbark index sync notes   # notes.index, built the first time",
    short_help="Bring an index up to date with its folder.",
)
@click.argument("folder", nargs=-1, required=True, type=PATH)
def sync(folder: tuple[Path, ...]) -> None:
    """Add, replace and delete documents so that the index of FOLDER equals one built afresh.

    The index is FOLDER.index, of several folders NAME+NAME.index beside the first; it is built if
    it does not exist. Or give the path of an index that was built from folders. Only files that are
    new, or whose size or times have changed, are read. Files are chosen and read as when the index
    was built. What `index delete`, `index add` or a service has changed stays until the file
    changes.
    """
    index, was_built = index_of(folder)
    if was_built:
        return
    folders = tuple(path.resolve() for path in folder)
    sync_and_report(index, () if folders == (index,) else folders)
    report_vectors(index)
