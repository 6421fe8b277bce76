"""`birchbark bench`: does re-ranking help on one's own documents?"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from contextlib import closing
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import click

from birchbark import defaults
from birchbark.cli.console import notify, print_json, progress
from birchbark.cli.from_options import check_tag, make_rankers, models_on
from birchbark.cli.index_of_folder import index_of
from birchbark.cli.options import (
    PATH,
    check_given_options,
    given_options,
    json_option,
    option,
    spell_option,
)
from birchbark.cli.retrieve import check_ids
from birchbark.cli.serve import LOOPBACK, check_service_installed
from birchbark.errors import InputError, MissingPackageError
from birchbark.show.plural import plural

if TYPE_CHECKING:
    from birchbark.bench.bench import Bench
    from birchbark.bench.bench_folder import BenchFolder
    from birchbark.pipeline.searcher import Searcher

BASELINE = "BM25"
PACKAGES = ("jinja2", "scipy")  # of the report


@click.command(
    epilog="Examples: birchbark bench notes   # drafts questions, ranks, reports; then birchbark "
    "bench notes --judge",
    short_help="Find out whether re-ranking helps on your documents.",
)
@click.argument("index", type=PATH)
@option(
    "--queries",
    type=PATH,
    metavar="FILE",
    help="Questions of your own, as TSV (id TAB text), instead of drafted ones.",
)
@option(
    "--count",
    type=click.IntRange(1),
    default=defaults.BENCH_QUESTIONS,
    help="Number of questions to draft.",
)
@option(
    "--model",
    "names",
    multiple=True,
    default=(defaults.MODEL, defaults.SMALL_MODEL),
    help="Model to compare with BM25; repeat for several. The first one marks sentences of the "
    "documents to judge.",
)
@option("--judge", is_flag=True, help="Judge what was found, in a browser, until Ctrl-C.")
@option(
    "--port",
    type=click.IntRange(0, 65535),
    default=defaults.PORT,
    help="Port of the page for judging; 0 for any free port.",
)
@option(
    "--to",
    type=PATH,
    metavar="DIR",
    help="Folder for questions, runs, judgments and the report.  [default: NAME.bench beside the "
    "index]",
)
@json_option
def command(
    index: Path,
    queries: Path | None,
    count: int,
    names: tuple[str, ...],
    judge: bool,
    port: int,
    to: Path | None,
    as_json: bool,
) -> None:
    """Compare BM25 with models on questions to INDEX, or to a folder of documents.

    Questions are drafted from headings and sentences of the documents, and kept in questions.tsv,
    which you may edit. What each system finds is kept, too, until questions or documents change.
    With --judge you grade, from 0 to 3, what the systems have among their first five documents, not
    knowing which. The report recommends a system once ten questions are judged.
    """
    check_given_options()
    if missing := [name for name in PACKAGES if not find_spec(name)]:
        raise MissingPackageError(
            f"the command needs {missing[0]}", remedy="pip install 'birchbark[study]'"
        )
    if judge:
        check_service_installed()
        from birchbark.serve.server import open_socket

        open_socket(defaults.HOST, port).close()  # fails before anything is ranked
    from birchbark.bench.bench import Bench
    from birchbark.bench.bench_folder import BenchFolder

    tags = [Path(name).name for name in names]
    if len({BASELINE, *tags}) <= len(tags):
        raise InputError("systems need different names", found=", ".join([BASELINE, *tags]))
    for tag in tags:
        check_tag(tag)
    directory, _ = index_of([index])
    name = directory.resolve().name.removesuffix(".index")
    with closing(BenchFolder(to or directory.with_name(f"{name}.bench"))) as folder:
        searchers = _searchers(directory, dict(zip(tags, names, strict=True)))
        check_ids(searchers[BASELINE].index)
        _take_questions(folder, searchers, queries, count)
        bench = Bench(name, folder, searchers)
        for tag in searchers:
            with progress(tag, len(bench.questions)) as advance:
                bench.rank(tag, partial(advance, 1))
        if judge:
            _serve(bench, searchers[tags[0]], port)
        report, left = bench.report(), bench.unjudged
        file = folder.write_report(report.page())
    if as_json:
        print_json(report.to_dict())
    else:
        for sentence in report.verdict:
            click.echo(sentence)
    notify(f"report: {file}")
    if left:
        given = ["--to", str(to)] if to else []
        if "names" in given_options():
            given += [word for name in names for word in ("--model", name)]
        words = shlex.join(["birchbark", "bench", str(index), *given, "--judge"])
        notify(f"{plural(left, 'document')} to judge: {words}")


def _take_questions(
    folder: BenchFolder, searchers: Mapping[str, Searcher], queries: Path | None, count: int
) -> None:
    """Store the questions of a file, or draft some, unless there are questions already."""
    from birchbark.bench.draft import draft_questions
    from birchbark.bench.rank_questions import check_questions
    from birchbark.collection.queries import read_queries

    questions = folder.path / "questions.tsv"
    asked = read_queries(queries) if queries else []
    if folder.has_questions:
        known = folder.questions
        is_known = {
            "queries": [(q.query_id, q.text.split()) for q in asked]
            == [(q.query_id, q.text.split()) for q in known],
            "count": count in (len(known), folder.count),
        }
        for name, is_same in is_known.items():
            if name in given_options() and not is_same:
                raise InputError(
                    "has questions already",
                    where=str(questions),
                    found=spell_option(name),
                    remedy="edit them, or choose another folder: --to DIR",
                )
        check_questions(searchers.values(), known)
        return
    if queries is not None:
        check_questions(searchers.values(), asked)
        folder.write_questions(asked)
        return
    index = searchers[BASELINE].index
    with progress("drafting questions") as advance:
        drafted = draft_questions(index, count, on_document=lambda: advance(1))
    if not drafted:
        raise InputError(
            "no question could be drafted from these documents",
            where=str(index.directory),
            remedy="write questions of your own: --queries FILE",
        )
    folder.write_drafted(drafted, count)
    notify(f"drafted {plural(len(drafted), 'question')}, which you may edit: {questions}")


def _searchers(index: Path, names: Mapping[str, str]) -> dict[str, Searcher]:
    """Return a searcher for BM25 and for each model. names: tag → name or directory of a model."""
    from birchbark.pipeline.searcher import Searcher
    from birchbark.pipeline.stage_options import StageOptions

    searchers = {BASELINE: Searcher(index, ())}
    for tag, name in names.items():
        models = models_on(defaults.DEVICE, None)  # not shared, so that none saves another time
        rankers = make_rankers(models, [StageOptions(model=name)], auto_int8=True)
        searchers[tag] = Searcher(index, rankers, loaded=models)
    return searchers


def _serve(bench: Bench, searcher: Searcher, port: int) -> None:
    """Serve the page for judging until interrupted."""
    from birchbark.bench.judge_routes import judge_routes
    from birchbark.serve.app import application
    from birchbark.serve.limits import Limits
    from birchbark.serve.server import open_socket, run
    from birchbark.serve.service import Service

    service = Service(searcher)
    with open_socket(defaults.HOST, port) as listening:
        port = listening.getsockname()[1]
        left = plural(bench.unjudged, "document")
        notify(f"{left} to judge at http://{defaults.HOST}:{port}/  (stop with Ctrl-C)")
        app = application(service, hosts=LOOPBACK, front=judge_routes(service, bench))
        run(app, listening, Limits().max_time + 5)
