"""`birchbark mcp`: how does an agent search an index? By the Model Context Protocol."""

from __future__ import annotations

from pathlib import Path
from threading import Thread
from typing import Any

import click

from birchbark import defaults
from birchbark.cli.console import notify
from birchbark.cli.from_options import open_searcher, take_ranker
from birchbark.cli.grouped_help import GroupedCommand
from birchbark.cli.index_of_folder import index_and_folders
from birchbark.cli.options import (
    PATH,
    check_given_options,
    filter_option,
    ranker_options,
    time_option,
)


@click.command(
    cls=GroupedCommand,
    epilog="Example, as an agent's configuration names it: birchbark mcp /home/me/notes",
    short_help="Let agents search an index (Model Context Protocol).",
)
@click.argument("index", nargs=-1, required=True, type=PATH)
@time_option(
    "--budget",
    default=f"{defaults.BUDGET_SECONDS:g}s",
    help="Time for a search. Documents that cannot be scored in time follow in the order of first "
    "stage and embedding.",
)
@filter_option
@ranker_options
def command(
    index: tuple[Path, ...],
    budget: float,
    scores: Path | None,
    device: str,
    threads: int | None,
    **choices: Any,
) -> None:
    """Let an agent search INDEX, or folders of documents, with the tools search, read and explain.

    Agents start this command themselves and speak with it on standard input and output; `birchbark
    serve` lets them in over HTTP. The index
    of a folder is FOLDER.index. Its new and changed files are read while the command runs, every
    few seconds. On the first run every file is new, and answers tell how many documents have been
    read.
    """
    from birchbark.adapters.mcp import in_threads, make_server
    from birchbark.serve.background_sync import BackgroundSync

    check_given_options()
    first_stage, stages = take_ranker(choices)
    directory, folders = index_and_folders(index)
    with open_searcher(
        directory,
        first_stage,
        stages,
        scores=scores,
        device=device,
        threads=threads,
    ) as searcher:
        sync = BackgroundSync(directory, folders, notify) if folders else None
        reading = (lambda: sync.reading) if sync else (lambda: None)
        name = ", ".join(map(str, index))
        server = make_server(searcher, name, in_threads(budget), reading=reading)
        Thread(target=searcher.warm_up, daemon=True).start()  # while the agent gets ready
        if sync:
            sync.start_with(lambda c: searcher.add(c.documents, delete=c.delete, origin=c.origin))
        try:
            server.run()
        finally:
            if sync:
                sync.stop()
