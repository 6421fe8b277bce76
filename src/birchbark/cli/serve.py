"""`birchbark serve`: how is an index served over HTTP, with a search page?"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from importlib.util import find_spec
from ipaddress import ip_address
from pathlib import Path
from platform import node
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, TypeVar

import click

from birchbark import defaults
from birchbark.cli.console import notify
from birchbark.cli.from_options import open_searcher, parse_secret, take_ranker
from birchbark.cli.grouped_help import GroupedCommand, option_group
from birchbark.cli.index_of_folder import index_and_folders
from birchbark.cli.options import (
    PATH,
    check_given_options,
    filter_option,
    given_options,
    option,
    ranker_options,
    spell_option,
    time_option,
)
from birchbark.errors import InputError, MissingPackageError
from birchbark.show.plural import plural

if TYPE_CHECKING:
    from birchbark.cluster.serving import ServingProcesses
    from birchbark.serve.agents import Agents
    from birchbark.serve.service import Service

T = TypeVar("T")
LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
KEY_VARIABLE = "BIRCHBARK_API_KEY"
INDEX_OPTIONS = ("writable", "no_background_vectors", "reports", "filters", "default_budget")

limit_options = option_group(
    time_option(
        "--budget",
        "default_budget",
        default=f"{defaults.BUDGET_SECONDS:g}s",
        help="Time budget of a search whose request does not set one.",
    ),
    time_option(
        "--max-time",
        default=f"{defaults.MAX_SECONDS:g}s",
        help="Maximum time for any request.",
    ),
    option(
        "--max-concurrent",
        type=click.IntRange(1),
        help="Maximum number of searches that BERT scores at the same time. A search that would "
        "wait too long is answered by the first stage and stored vectors.  [default: number of CPU "
        "cores]",
    ),
    option(
        "--max-requests",
        type=click.IntRange(1),
        default=defaults.MAX_REQUESTS,
        help="Maximum number of concurrent requests; further requests get 503 with Retry-After.",
    ),
    option(
        "--max-request-bytes",
        type=click.IntRange(1),
        default=defaults.MAX_REQUEST_BYTES,
        help="Maximum size of a request body.",
    ),
    title="Limits",
)


@click.command(
    cls=GroupedCommand,
    epilog="Examples: birchbark serve notes   # an index, a folder of documents, or several; "
    "birchbark serve --models-only   # for texts that requests bring",
    short_help="Serve an index: search page and HTTP API.",
)
@click.argument("index", nargs=-1, type=PATH)
@option("--models-only", is_flag=True, help="Re-rank and embed texts of requests; no index.")
@option("--host", default=defaults.HOST, help="Address to listen on.")
@option(
    "--port",
    type=click.IntRange(0, 65535),
    default=defaults.PORT,
    help="Port to listen on; 0 for any free port.",
)
@option(
    "--allowed-host",
    "allowed_hosts",
    multiple=True,
    metavar="HOST",
    help="Host name that requests may use; repeat for several. IP addresses are always accepted.  "
    "[default: those of --host and of this machine; with a key, on an address that is not a "
    "loopback address, any]",
)
@option(
    "--key-file",
    type=PATH,
    help="File with the API key that requests must send (Authorization: Bearer KEY).  "
    f"[default: ${KEY_VARIABLE}, else no key]",
)
@option("--writable", is_flag=True, help="Allow requests to add and delete documents.")
@option(
    "--insecure",
    is_flag=True,
    help="Allow --writable without a key on an address that other machines can reach.",
)
@limit_options
@option(
    "--no-background-vectors",
    is_flag=True,
    help="Do not compute vectors of documents that lack them while no request is active.",
)
@option("--reports", type=PATH, metavar="DIR", help="Folder of studies whose reports are served.")
@filter_option
@ranker_options
@click.pass_obj
def command(
    elsewhere: ServingProcesses | None,
    /,
    index: tuple[Path, ...],
    models_only: bool,
    host: str,
    port: int,
    allowed_hosts: tuple[str, ...],
    key_file: Path | None,
    writable: bool,
    insecure: bool,
    default_budget: float,
    max_time: float,
    max_concurrent: int | None,
    max_requests: int,
    max_request_bytes: int,
    no_background_vectors: bool,
    reports: Path | None,
    scores: Path | None,
    device: str,
    threads: int | None,
    **choices: Any,
) -> None:
    """Serve INDEX, or folders of documents, until interrupted.

    The index of a folder is FOLDER.index. Its new and changed files are read while the service
    runs, every few seconds. On its first run every file is new, and the page tells how many
    documents have been read. Of several folders, the index is called NAME+NAME.index, and the
    folders' names can be filtered by: --filter path=NAME/*

    The search page is at /, the description of the API at /docs and /openapi.json. /v1/rerank,
    /v2/rerank, /rerank, /embed and /v1/embeddings are compatible with Cohere, Jina,
    text-embeddings-inference and OpenAI; --models-only serves no documents. If the package mcp is
    installed, agents can search at /mcp (Model Context Protocol). Changes to the index take
    effect immediately. --filter applies only to searches: any document can be fetched by its id.
    --scores stores all scores on disk and in memory; without it, the most recently used scores are
    cached in memory, up to 100 MB per model. While no request is active, vectors of the documents'
    segments are computed and stored in INDEX, which makes later searches faster.
    """
    check_service_installed()
    from birchbark.pipeline.stage_options import NONE
    from birchbark.serve.agents import AGENTS_PATH
    from birchbark.serve.app import application
    from birchbark.serve.background_sync import BackgroundSync
    from birchbark.serve.background_vectors import BackgroundVectors
    from birchbark.serve.limits import Limits
    from birchbark.serve.middleware import host_name
    from birchbark.serve.original_files import OriginalFiles
    from birchbark.serve.server import open_socket, run
    from birchbark.serve.service import Service

    check_given_options()
    _check_index(index, models_only=models_only)
    for name in allowed_hosts:
        if host_name(name) != name.lower():
            wanted = "HOST, without port or scheme"
            raise InputError("--allowed-host: not a host name", found=name, wanted=wanted)
    limits = Limits(
        default_budget,
        max_time,
        max_requests=max_requests,
        max_request_bytes=max_request_bytes,
    )
    if max_concurrent:
        limits = replace(limits, max_concurrent=max_concurrent)
    key = _read_key(key_file)
    if writable and key is None and not insecure and not _is_loopback(host):
        raise InputError(
            "anyone who can reach this address could change documents",
            found=f"--writable --host {host} without a key",
            remedy="--key-file FILE; or --insecure, if only trusted people can reach it",
        )
    if reports is not None and not reports.is_dir():
        raise InputError("no such folder", where=str(reports))
    first_stage, stages = take_ranker(choices, unused="first_stage" if models_only else "")
    vector_match, _ = first_stage.make()
    with ExitStack() as stack:
        folders: tuple[Path, ...] = ()
        if models_only:
            directory = stack.enter_context(_no_documents())
        else:
            directory, folders = index_and_folders(index)
        searcher = stack.enter_context(
            open_searcher(
                directory,
                first_stage,
                stages,
                scores=scores,
                device=device,
                threads=threads,
                elsewhere=elsewhere,
            )
        )
        searcher.warm_up()
        own = stages[0].embedding if stages else None
        embedding = own if own not in (None, NONE) else defaults.EMBEDDING
        # The index's vectors are computed on the CPU. A service that retrieves by them needs all.
        retrieves_by_vectors = vector_match is not None and vector_match.used
        fills = device == defaults.DEVICE and not retrieves_by_vectors and not models_only
        background = None
        if fills and not no_background_vectors:
            background = BackgroundVectors.of(searcher, notify)
        sync = BackgroundSync(directory, folders, notify) if folders else None
        service = Service(
            searcher,
            embedding,
            limits,
            writable=writable,
            background=background,
            sync=sync,
            files=OriginalFiles(directory, folders),
        )
        with open_socket(host, port) as listening:
            address, port = listening.getsockname()[:2]
            loopback = ip_address(address).is_loopback
            hosts = allowed_hosts or (_in_url(host), *LOOPBACK, node())
            if key is not None and not loopback and not allowed_hosts:
                hosts = ()  # without the key, another site's page can do nothing
            if not loopback and key is None:
                actions = "search and change documents" if writable else "search"
                notify(f"note: anyone who can reach this address can {actions}; see --key-file")
            url = f"http://{_in_url(host)}:{port}/"
            count = len(searcher.index)
            so_far = " so far" if folders and not count else ""
            served = f"{plural(count, 'document')}{so_far}"
            if models_only:
                served = " and ".join(filter(None, (service.model, f"vectors by {embedding}")))
            notify(f"{served} at {url}  (stop with Ctrl-C)")
            agents = None if models_only else _agents(service, limits.budget)
            if agents:
                notify(f"agents: {url.rstrip('/')}{AGENTS_PATH} (Model Context Protocol)")
            app = application(service, key, hosts, reports, models_only=models_only, agents=agents)
            run(app, listening, max_time + 5)


def _agents(service: Service, budget: float) -> Agents | None:
    """Return what answers agents within a time budget; None without the package mcp, 2 or later."""
    try:
        from birchbark.adapters.mcp import Work, agents_of, make_server
    except MissingPackageError:
        return None

    def run(work: Work[T]) -> Awaitable[T]:
        return service.run_scoring(lambda seconds, step: work(min(seconds, budget), step))

    searcher = service.searcher
    name = searcher.directory.resolve().name.removesuffix(".index")
    server = make_server(searcher, name, run, service.run_quick, lambda: service.reading)
    return agents_of(server)


def _check_index(index: Sequence[Path], *, models_only: bool) -> None:
    """Raise InputError unless exactly one of an index and --models-only is given."""
    if not models_only:
        if not index:
            wanted = "an index, or a folder of documents; or --models-only"
            raise InputError("there is nothing to serve", wanted=wanted)
        return
    if index:
        raise InputError("--models-only serves no index", found=str(index[0]))
    for name in INDEX_OPTIONS:
        if name in given_options():
            raise InputError(f"{spell_option(name)} has no effect with --models-only")


@contextmanager
def _no_documents() -> Iterator[Path]:
    """Yield an index without documents."""
    from birchbark.index.build_index import build_index

    with TemporaryDirectory(prefix="birchbark-") as folder:
        yield build_index(None, Path(folder) / "index").directory


def _is_loopback(host: str) -> bool:
    """Whether only this machine can reach the host; False for a name other than localhost."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _read_key(path: Path | None) -> str | None:
    if path is None:
        return parse_secret(os.environ.get(KEY_VARIABLE, ""), KEY_VARIABLE)
    try:
        key = parse_secret(path.read_text("utf-8", "replace"), str(path))
    except OSError as error:
        raise InputError(f"the key cannot be read: {error.strerror}", where=str(path)) from None
    if key is None:
        raise InputError("contains no key", where=str(path))
    return key


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def check_service_installed() -> None:
    """Raise MissingPackageError if a package that the service needs is not installed."""
    missing = [name for name in ("fastapi", "prometheus_client", "uvicorn") if not find_spec(name)]
    if missing:
        raise MissingPackageError(
            f"the service needs {missing[0]}", remedy="pip install 'birchbark[serve]'"
        )
