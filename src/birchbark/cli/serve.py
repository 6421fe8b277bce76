"""`birchbark serve`: an index as a service, with a page for people."""

from __future__ import annotations

import os
from functools import partial
from importlib.util import find_spec
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from birchbark.cli.chosen import keeping_scores, near_and_stage, rankers
from birchbark.cli.options import (
    FILE,
    FIRST_STAGE_OPTIONS,
    first_stage_options,
    ranker_options,
    refuse_of_bert,
    time_option,
)
from birchbark.cli.talk import counted, progress, report_intake, say
from birchbark.errors import InputError, MissingPackageError

if TYPE_CHECKING:
    from birchbark.serve.limits import Limits

LIMITS = ("budget", "longest", "at_work", "inside")
OWN = (*LIMITS, *"host port names key_file writable most_bytes reports".split())
LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
KEY_VARIABLE = "BIRCHBARK_API_KEY"


@click.command(
    epilog="Example: birchbark serve notes   # a folder of text, Markdown or HTML, or an index",
    short_help="Serve an index: a page with evidence, and an API.",
)
@click.argument("index", type=FILE)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen at.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8000,
    show_default=True,
    help="0: any that is free.",
)
@click.option(
    "--name",
    "names",
    multiple=True,
    metavar="HOST",
    help="Name by which others know this service; repeat for several.  [default: any, or at a "
    "loopback address its own]",
)
@click.option(
    "--key-file",
    type=FILE,
    help=f"File with the key that requests must carry (Authorization: Bearer KEY).  [default: "
    f"${KEY_VARIABLE}, else none]",
)
@click.option("--writable", is_flag=True, help="Documents may be added and deleted.")
@time_option(
    "--budget",
    default="2s",
    show_default=True,
    help="What a search takes at most, where it does not say.",
)
@time_option(
    "--longest",
    default="30s",
    show_default=True,
    help="What a search, a re-ranking or a document with its scores takes at most.",
)
@click.option(
    "--at-work",
    type=click.IntRange(1),
    help="Searches that BERT reads for at a time; who cannot hope for a turn in time is answered "
    "without.  [default: one for each processor]",
)
@click.option(
    "--inside",
    type=click.IntRange(1),
    default=256,
    show_default=True,
    help="Requests that are answered at a time; the next are refused, with a time to come back.",
)
@click.option(
    "--most-bytes",
    type=click.IntRange(1),
    default=4_000_000,
    show_default=True,
    help="Of a request.",
)
@click.option(
    "--beside",
    metavar="MODEL",
    help="An embedding that the page shows beside the model.  [default: all-MiniLM-L6-v2, where it "
    "is installed]",
)
@click.option(
    "--reports", type=FILE, metavar="DIR", help="Folder of studies, to show their reports."
)
@first_stage_options
@ranker_options
@click.option("--first-stage-only", is_flag=True, help="No BERT.")
def command(
    index: Path,
    host: str,
    port: int,
    names: tuple[str, ...],
    key_file: Path | None,
    writable: bool,
    beside: str | None,
    reports: Path | None,
    first_stage_only: bool,
    scores: Path | None,
    **choices: Any,
) -> None:
    """Serve INDEX, or a folder of documents, which is indexed first, until interrupted.

    The page is at /, the API described at /openapi.json; /v1/rerank, /v2/rerank and /rerank speak
    as Cohere, Jina and text-embeddings-inference do. Changes of the index are seen at once.
    --filter is for searches alone: every document can be had by its id. --scores keeps all that is
    ever asked, in memory too; without it the last 100 MB of scores are remembered.
    """
    _check_installed()
    from birchbark.pipeline.searcher import Searcher
    from birchbark.score.model import load_scorer
    from birchbark.score.together import together
    from birchbark.serve.app import application
    from birchbark.serve.server import bound, run
    from birchbark.serve.service import Service

    if first_stage_only:
        refuse_of_bert("--first-stage-only", *OWN)
    limits = _limits(choices)
    key = _key(key_file)
    if reports is not None and not reports.is_dir():
        raise InputError("no such folder", where=str(reports))
    of_first_stage = {name: choices.pop(name) for name in FIRST_STAGE_OPTIONS}
    near, stage = near_and_stage(**of_first_stage)
    directory = indexed(index)
    # as vectors were made that an index keeps, whatever the device
    load = partial(load_scorer, threads=choices["threads"], session=together())
    chosen = () if first_stage_only else rankers(**choices, sessions=together)
    with keeping_scores(chosen, scores) as kept:
        searcher = Searcher(directory, kept, stage, near, load)
        searcher.warm_up()
        service = Service(searcher, _beside(beside), limits, writable=writable)
        with bound(host, port) as listening:
            own, port = listening.getsockname()[:2]
            loopback = ip_address(own).is_loopback
            hosts = names or ((_in_address(host), *LOOPBACK) if loopback else ())
            if not loopback and key is None:
                can = "search, and change documents" if writable else "search"
                say(f"note: anyone who reaches this address can {can}: --key-file asks for a key")
            address = f"http://{_in_address(host)}:{port}/"
            say(f"{len(searcher.index):,} documents at {address}  (Ctrl-C ends)")
            run(application(service, key, hosts, reports), listening, limits.longest + 5)


def indexed(place: Path) -> Path:
    """The index at `place`; or one made beside it, if that is a folder or file of documents."""
    from birchbark.collection.documents import read_collection
    from birchbark.collection.intake import Intake
    from birchbark.index.build import build_index
    from birchbark.index.layout import is_index

    place = place.resolve()
    if is_index(place):
        return place
    if not place.exists():
        raise InputError("no such index or folder", where=str(place))
    made = place.with_name(place.name + ".index")
    if made.exists():
        say(f"{made} was made before; birchbark index add {made} {place} takes in what is new")
        return made
    intake = Intake(
        skip_bad=False, encoding="utf-8", remedy="birchbark index build has options for it"
    )
    with progress("indexing") as advance:
        build_index(counted(read_collection(str(place), intake, None), advance), made)
    say(f"indexed {place} in {made}")
    report_intake(intake)
    return made


def _limits(choices: dict[str, Any]) -> Limits:
    """Those that the options describe, which are taken out of `choices`."""
    from birchbark.serve.limits import Limits

    said = {name: choices.pop(name) for name in LIMITS}
    said["body"] = choices.pop("most_bytes")
    return Limits(**{name: value for name, value in said.items() if value is not None})


def _key(path: Path | None) -> str | None:
    key = os.environ.get(KEY_VARIABLE) if path is None else path.read_text("utf-8").strip()
    if path is not None and not key:
        raise InputError("no key in it", where=str(path))
    if key and not (key.isascii() and key.isprintable() and " " not in key):
        raise InputError("a key is one word of plain letters, digits and signs")
    return key or None


def _beside(model: str | None) -> str | None:
    """The embedding for the page; the usual one only where it is installed."""
    from birchbark.checkpoint.named import EMBEDDING_MODEL, is_installed, locate

    if model is not None:
        locate(model)
        return model
    return EMBEDDING_MODEL if is_installed(EMBEDDING_MODEL) else None


def _in_address(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _check_installed() -> None:
    missing = [name for name in ("fastapi", "prometheus_client", "uvicorn") if not find_spec(name)]
    if missing:
        raise MissingPackageError(
            f"the service needs {missing[0]}", remedy="pip install 'birchbark[serve]'"
        )
