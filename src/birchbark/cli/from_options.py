"""How are command-line options converted to the library's objects?"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from birchbark import defaults
from birchbark.cli.console import notify
from birchbark.cli.options import given_options, spell_option
from birchbark.errors import BirchbarkError, InputError
from birchbark.option_rules import FIRST_STAGE_OPTIONS
from birchbark.show.plural import plural

if TYPE_CHECKING:
    from birchbark.cluster.serving import ServingProcesses
    from birchbark.cluster.shard import Shard
    from birchbark.pipeline.loaded_models import LoadedModels
    from birchbark.pipeline.searcher import Searcher
    from birchbark.pipeline.settings.ranker import Ranker
    from birchbark.records import Query
    from birchbark.retrieve.first_stage import FirstStage
    from birchbark.retrieve.vector_match import VectorMatch
    from birchbark.score.session import SessionFactory
    from birchbark.section import Section


# How long a shard waits for the process of a lost node, which may still hold its score store.
SECONDS_OF_A_LOST_SHARD = 180.0  # NFS keeps the locks of a lost client for 90


def take_first_stage(choices: dict[str, Any]) -> tuple[VectorMatch | None, FirstStage]:
    """Return the VectorMatch and the FirstStage that options and the file of a ranker describe.

    The VectorMatch is None if they leave open whether vectors find candidates. choices: a command's
    options, from which those of the first stage are removed.
    """
    from birchbark.pipeline.first_stage_options import FirstStageOptions
    from birchbark.pipeline.ranker_file import first_stage_of
    from birchbark.retrieve.rm3 import RM3

    taken = {name: choices.pop(name) for name in FIRST_STAGE_OPTIONS}
    options = FirstStageOptions(
        taken["first_stage_model"],
        match=taken["match"],
        vector_set=taken["vector_set"],
        fields=parse_fields(taken["fields"]),
        filters=taken["filters"],
        rm3=RM3() if taken["rm3"] else None,
    )
    if (file := choices["ranker_file"]) is not None:
        given = [name for name in given_options() if name in taken]
        options = first_stage_of(file, options, given, spell_option)
    return options.make()


def check_query_reading(match: VectorMatch | None) -> None:
    """Raise InputError if options of a model are given, although the first stage needs none.

    match: that of the command's first stage; no other stage follows.
    """
    if match is None or not match.used:
        for name in given_options():
            if name in ("query_tokens", "threads"):
                raise InputError(
                    f"{spell_option(name)} has no effect: a first stage by terms uses no model"
                )


def parse_fields(fields: tuple[str, ...]) -> dict[str, float]:
    """Parse options NAME[=WEIGHT] into field → weight; the default weight is 1."""
    weights: dict[str, float] = {}
    for field in fields:
        name, _, weight = field.partition("=")
        if name in weights:
            raise InputError(f"--field is given twice for the field {name!r}", wanted="once")
        try:
            weights[name] = float(weight or 1)
        except ValueError:
            raise InputError("not a field weight", found=field, wanted="NAME=WEIGHT") from None
    return weights


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


def make_rankers(
    models: LoadedModels, ranker_file: Section | None, *, auto_int8: bool = False, **options: Any
) -> list[Ranker]:
    """Return the Ranker that the options describe, or one per stage of the file.

    auto_int8: whether --precision auto is the fastest one that is safe on this machine, or fp32.
    """
    from birchbark.pipeline.load_rankers import make_ranker
    from birchbark.pipeline.ranker_file import stages_of
    from birchbark.pipeline.stage_options import StageOptions

    base, given = StageOptions(**options), [name for name in given_options() if name in options]
    if ranker_file is None:
        base.check(given, spell_option)
        return [make_ranker(base, models, auto_int8=auto_int8)]
    rankers = []
    for number, stage in enumerate(stages_of(ranker_file, base, given, spell_option), 1):
        try:
            rankers.append(make_ranker(stage, models, auto_int8=auto_int8))
        except BirchbarkError as fault:
            raise fault.at(ranker_file.where(f"stage[{number}]")) from None
    return rankers


@contextmanager
def open_searcher(
    directory: Path,
    vector_match: VectorMatch | None,
    stage: FirstStage,
    *,
    first_stage_only: bool,
    scores: Path | None,
    device: str,
    threads: int | None,
    elsewhere: ServingProcesses | None = None,
    **ranker_options: Any,
) -> Iterator[Searcher]:
    """Yield a Searcher for a process that answers many queries.

    scores: the folder in which scores are stored; None to cache them in memory alone.
    elsewhere: the processes of a cluster that rank and score; None to do both here.
    ranker_options: see `make_rankers`.
    """
    from birchbark.pipeline.searcher import Searcher
    from birchbark.score.dynamic_batching import dynamic_batcher

    session = elsewhere.session if elsewhere else None

    def shared(usual: SessionFactory) -> SessionFactory:
        return dynamic_batcher(session or usual)

    models = models_on(device, threads, shared)
    on_cpu = device == defaults.DEVICE
    rankers: Sequence[Ranker] = ()
    if not first_stage_only:
        rankers = make_rankers(models, **ranker_options, auto_int8=on_cpu)
    # queries are embedded on the CPU, like the stored vectors
    searched = models if on_cpu else models_on(defaults.DEVICE, threads, shared)
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


def check_tag(tag: str | None) -> None:
    """Raise InputError unless `tag` is None or can be written to a run file."""
    if tag is not None and (not tag or len(tag.split()) != 1 or tag != tag.strip()):
        raise InputError("a tag must be a single word", found=repr(tag))


def check_writable(path: Path | None) -> None:
    """Raise InputError if the file `path` cannot be written; call it before any work."""
    if path is None:
        return
    if path.is_dir():
        raise InputError("is a folder", where=str(path), wanted="a file to write")
    existing = path if path.exists() else next(p for p in path.absolute().parents if p.exists())
    if not os.access(existing, os.W_OK):
        raise InputError("is not writable", where=str(existing))


def load_queries(path: Path, topic_fields: tuple[str, ...], encoding: str) -> list[Query]:
    """Return the queries in the file `path`; for the arguments see read_queries."""
    from birchbark.collection.queries import read_queries

    return read_queries(path, topic_fields, encoding)
