"""How are command-line options converted to the library's objects?"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from birchbark import defaults
from birchbark.artifact import is_stream
from birchbark.cli.console import notify
from birchbark.cli.options import given_options, spell_option
from birchbark.errors import BirchbarkError, InputError
from birchbark.show.plural import plural

if TYPE_CHECKING:
    from birchbark.cluster.serving import ServingProcesses
    from birchbark.cluster.shard import Shard
    from birchbark.pipeline.first_stage_options import FirstStageOptions
    from birchbark.pipeline.loaded_models import LoadedModels
    from birchbark.pipeline.searcher import Searcher
    from birchbark.pipeline.settings.ranker import Ranker
    from birchbark.pipeline.stage_options import StageOptions
    from birchbark.retrieve.vector_match import VectorMatch
    from birchbark.score.session import SessionFactory


KEYS = {  # options of commands → keys of a ranker's file, as for --set
    "model": "model",
    "embedding": "embedding",
    "precision": "precision",
    "first_stage_model": "first_stage.model",
    "match": "first_stage.match",
    "filters": "first_stage.filters",
    "rm3": "first_stage.rm3",
}
# How long a shard waits for the process of a lost node, which may still hold its score store.
SECONDS_OF_A_LOST_SHARD = 180.0  # NFS keeps the locks of a lost client for 90


def take_ranker(
    choices: dict[str, Any], *, unused: str = ""
) -> tuple[FirstStageOptions, list[StageOptions]]:
    """Return the first stage and the stages that options and the file of a ranker describe.

    choices: a command's options, from which those of a ranker are removed. unused: the table that
    the command does not use, first_stage or stage; no option may set its keys.
    """
    from birchbark.pipeline.ranker_file import FIRST_STAGE, read_ranker
    from birchbark.retrieve.filters import parse_filters

    path, given = choices.pop("ranker_file"), given_options()
    settings: dict[str, Any] = {}
    for text in choices.pop("settings"):
        key, value = parse_setting(text)
        if unused == ("first_stage" if key.startswith(FIRST_STAGE) else "stage"):
            raise InputError(f"--set {key} has no effect: the command does not use this table")
        settings[key] = value
    for name, key in KEYS.items():
        value = choices.pop(name, None)
        if name not in given:
            continue
        if key in settings:
            raise InputError(f"{spell_option(name)} and --set {key} exclude each other")
        if name == "filters":
            try:
                parse_filters(value)
            except InputError as fault:
                raise fault.at("--filter") from None
        settings[key] = {} if name == "rm3" else [*value] if name == "filters" else value
    first_stage, stages = read_ranker(path, settings)
    if not stages:
        for name in ("device", "scores", "budget", "min_probability"):
            if name in given:
                raise InputError(f"{spell_option(name)} has no effect without BERT (model none)")
    return first_stage, stages


def check_threads(match: VectorMatch | None) -> None:
    """Raise InputError if --threads is given, although no model is run.

    match: that of the command's first stage; no other stage follows.
    """
    if "threads" in given_options() and (match is None or not match.used):
        raise InputError("--threads has no effect: a first stage by terms uses no model")


def parse_setting(text: str) -> tuple[str, Any]:
    """Parse KEY=VALUE; a value that is not TOML is a string, unless it is a number such as .5.

    An empty value is None, which stands for the default.
    """
    key, found, value = text.partition("=")
    if not found or not key.strip():
        raise InputError("not a setting", found=text, wanted="--set KEY=VALUE")
    if not value.strip():
        return key.strip(), None
    try:
        parsed = tomllib.loads(f"value = {'0' * value.startswith('.')}{value}")
    except ValueError:  # also of an integer with thousands of digits
        parsed = {}
    return key.strip(), parsed["value"] if parsed.keys() == {"value"} else value


def models_on(
    device: str,
    threads: int | None,
    wrap_session: Callable[[SessionFactory], SessionFactory] = lambda session: session,
) -> LoadedModels:
    """Return the models on a device, none of them loaded yet.

    wrap_session: applied to the factory for the sessions that run the models.
    """
    from birchbark.device.torch_session import session_factory
    from birchbark.pipeline.loaded_models import LoadedModels
    from birchbark.score.session import OnnxSession

    return LoadedModels(threads, wrap_session(session_factory(device) or OnnxSession))


def models_of_queries(
    models: LoadedModels,
    device: str,
    threads: int | None,
    wrap_session: Callable[[SessionFactory], SessionFactory],
) -> LoadedModels:
    """Return the models that embed queries, on the CPU like the stored vectors: `models` if there.

    device, threads, wrap_session: those of `models`; see `models_on`.
    """
    if device == defaults.DEVICE:
        return models
    return models_on(defaults.DEVICE, threads, wrap_session)


def make_rankers(
    models: LoadedModels, stages: Sequence[StageOptions], *, auto_int8: bool = False
) -> list[Ranker]:
    """Return the Ranker of each stage.

    auto_int8: whether the precision auto is the fastest one that is safe on this machine, or fp32.
    """
    from birchbark.pipeline.load_rankers import make_ranker

    rankers = []
    for number, stage in enumerate(stages, 1):
        try:
            rankers.append(make_ranker(stage, models, auto_int8=auto_int8))
        except BirchbarkError as fault:
            raise (fault if len(stages) == 1 else fault.at(f"stage[{number}]")) from None
    return rankers


@contextmanager
def open_searcher(
    directory: Path,
    first_stage: FirstStageOptions,
    stages: Sequence[StageOptions],
    *,
    scores: Path | None,
    device: str,
    threads: int | None,
    elsewhere: ServingProcesses | None = None,
) -> Iterator[Searcher]:
    """Yield a Searcher for a process that answers many queries.

    scores: the folder in which scores are stored; None to cache them in memory alone.
    elsewhere: the processes of a cluster that rank and score; None to do both here.
    """
    from birchbark.pipeline.searcher import Searcher
    from birchbark.score.dynamic_batching import dynamic_batcher

    session = elsewhere.session if elsewhere else None

    def shared(usual: SessionFactory) -> SessionFactory:
        return dynamic_batcher(session or usual)

    models = models_on(device, threads, shared)
    rankers = make_rankers(models, stages, auto_int8=device == defaults.DEVICE)
    searched = models_of_queries(models, device, threads, shared)
    vector_match, stage = first_stage.make()
    with stored_scores(rankers, scores) as cached:
        remote = elsewhere.rankers if elsewhere else None
        yield Searcher(directory, cached, stage, vector_match, searched, remote)


@contextmanager
def stored_scores(
    rankers: Sequence[Ranker], store: Path | None, shard: Shard | None = None
) -> Iterator[Sequence[Ranker]]:
    """Yield `rankers` with scores cached in the folder `store`; then report cache hits and misses.

    If `store` is None, `rankers` are yielded unchanged. shard: if given, only reads `store`, and
    adds to a store of its own beside it; `birchbark merge` joins them.
    """
    from birchbark.pipeline.load_rankers import with_score_caches

    if store is None:
        yield rankers
        return
    known, wait = (store, SECONDS_OF_A_LOST_SHARD) if shard else (None, 0.0)
    store = shard.file(store) if shard else store
    with with_score_caches(rankers, store, known=known, wait=wait) as cached:
        yield cached.rankers
    unsaved = sum(store.unsaved for store in cached.stores)
    computed = sum(scorer.misses for scorer in cached.scorers)
    reused = sum(scorer.hits for scorer in cached.scorers)
    failed = f", {unsaved:,} not stored" if unsaved else ""
    notify(f"{plural(computed, 'pair')} scored, {reused:,} reused{failed}; scores in {store}")


def parse_secret(text: str, where: str) -> str | None:
    """Return a key or token, which white space may surround; None if it is empty.

    InputError, which does not show it, if it could not be sent in a header. where: names the file
    or variable.
    """
    secret = text.strip()
    if not (secret.isascii() and secret.isprintable() and " " not in secret):
        raise InputError("a key must be a single word of printable ASCII characters", where=where)
    return secret or None


def check_tag(tag: str | None) -> None:
    """Raise InputError unless `tag` is None or can be written to a run file."""
    if tag is not None and (not tag or len(tag.split()) != 1 or tag != tag.strip()):
        raise InputError("a tag must be a single word", found=repr(tag))


def check_writable(path: Path | None) -> None:
    """Raise InputError if the file `path` cannot be written; call it before any work."""
    if path is None:
        return
    if str(path) == "-":
        raise InputError("is no name of a file", where="-", remedy="standard output: /dev/stdout")
    if path.is_dir():
        raise InputError("is a folder", where=str(path), wanted="a file to write")
    if is_stream(path):
        existing = path
    else:  # a new file takes its place
        existing = next(folder for folder in path.resolve().parents if folder.exists())
        if not existing.is_dir():
            raise InputError("is a file", where=str(existing), wanted="a folder")
    if not os.access(existing, os.W_OK):
        raise InputError("is not writable", where=str(existing))
