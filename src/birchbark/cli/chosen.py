"""What do the words of the options stand for?"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from birchbark.cli.options import given, refuse_void, spelled
from birchbark.cli.talk import say
from birchbark.errors import BirchbarkError, InputError

if TYPE_CHECKING:
    from birchbark.index.reader import Index
    from birchbark.pipeline.dense import DenseEngine, Near
    from birchbark.pipeline.ranker import Ranker
    from birchbark.records import Query
    from birchbark.retrieve.engine import IndexEngine
    from birchbark.retrieve.first_stage import FirstStage
    from birchbark.retrieve.match import Match
    from birchbark.retrieve.model import Model
    from birchbark.score.session import NewSession


def open_engine(
    index: Index,
    first_stage_model: str,
    match: str | None,
    threads: int | None = None,
    **words: Any,
) -> IndexEngine | DenseEngine:
    """What ranks `index` as the options of the first stage say; threads: of the vectors' model."""
    from birchbark.pipeline.dense import DenseEngine
    from birchbark.retrieve.engine import IndexEngine
    from birchbark.score.model import load_scorer

    near, stage = near_and_stage(first_stage_model, match, **words)
    if not near.used:
        return IndexEngine(index, stage)
    engine = DenseEngine(index, partial(load_scorer, threads=threads), near, stage)
    if engine.missing:
        say(f"note: {engine.missing:,} documents have no vectors yet: birchbark index attach")
    return engine


def near_and_stage(
    first_stage_model: str, match: str | None, **words: Any
) -> tuple[Near, FirstStage]:
    """How candidates are found, as the options say: by vectors, and by terms."""
    from birchbark.pipeline.dense import parse_near
    from birchbark.retrieve.match import OR

    refuse_void()
    near = parse_near(match or "", dense=first_stage_model == "dense")
    return near, first_stage(first_stage_model, near.terms or OR, **words)


def first_stage(
    first_stage_model: str,
    match: Match,
    k1: float,
    b: float,
    fields: tuple[str, ...],
    field_bm25: tuple[str, ...],
    filters: tuple[str, ...],
    rm3: bool,
    rm3_documents: int,
    rm3_terms: int,
    rm3_weight: float,
    rm3_max_df: float,
) -> FirstStage:
    """The FirstStage that the options describe."""
    from birchbark.retrieve.bm25 import BM25
    from birchbark.retrieve.first_stage import FirstStage
    from birchbark.retrieve.rm3 import RM3
    from birchbark.retrieve.tfidf import TfIdf

    model = TfIdf() if first_stage_model == "tfidf" else BM25(k1, b)
    expansion = RM3(rm3_documents, rm3_terms, rm3_weight, rm3_max_df) if rm3 else None
    weights = parse_fields(fields or ("contents",))
    of_fields = parse_field_bm25(field_bm25)
    if of_fields and first_stage_model != "bm25":
        raise InputError("--field-bm25 is for BM25", found=f"--first-stage {first_stage_model}")
    if unknown := [name for name in of_fields if name not in weights]:
        raise InputError(
            f"--field-bm25 for the field {unknown[0]!r}, which is not searched",
            wanted=f"one of {', '.join(weights)}",
        )
    return FirstStage(
        model,
        weights,
        of_fields,
        match=match,
        filters=parse_filters(filters),
        expansion=expansion,
    )


def parse_fields(fields: tuple[str, ...]) -> dict[str, float]:
    """Field → weight from NAME=WEIGHT; 1 where no weight is given."""
    found = {}
    for field in fields:
        name, _, weight = field.partition("=")
        try:
            found[name] = float(weight or 1)
        except ValueError:
            raise InputError("not a field weight", found=field, wanted="NAME=WEIGHT") from None
    return found


def parse_field_bm25(fields: tuple[str, ...]) -> dict[str, Model]:
    """Field → BM25 from NAME=K1/B."""
    from birchbark.retrieve.bm25 import BM25

    found: dict[str, Model] = {}
    for one in fields:
        name, _, numbers = one.partition("=")
        try:
            k1, b = map(float, numbers.split("/"))
        except ValueError:
            raise InputError("not a field's k1 and b", found=one, wanted="NAME=K1/B") from None
        found[name] = BM25(k1, b)
    return found


def parse_filters(filters: tuple[str, ...]) -> dict[str, str]:
    """Field → value from FIELD=VALUE."""
    found = {}
    for one in filters:
        name, equals, value = one.partition("=")
        if not (name and equals and value):
            raise InputError("not a filter", found=one, wanted="FIELD=VALUE")
        found[name] = value
    return found


def rankers(
    stages: Path | None,
    device: str,
    threads: int | None,
    sessions: Callable[[NewSession], NewSession] = lambda session: session,
    **words: Any,
) -> list[Ranker]:
    """The Ranker that the options describe; or one for each stage of the file.

    sessions: what is made of those that run the models.
    """
    from birchbark.device.session import session_on
    from birchbark.pipeline.opening import Opener
    from birchbark.pipeline.stage_words import NEEDS, StageWords, read_stages
    from birchbark.score.session import Session

    refuse_void()
    session = sessions(session_on(device) or Session)
    usual, opener, said = StageWords(**words), Opener(threads, session), given()
    if stages is None:
        usual.check(said, spelled)
        return [opener.ranker(usual)]
    named = read_stages(stages, usual)
    for name in said:
        if (needed := NEEDS.get(name)) and not any(getattr(own, needed) for own in named):
            raise InputError(f"{spelled(name)} does nothing: no stage has {spelled(needed)}")
    found = []
    for number, own in enumerate(named, 1):
        try:
            found.append(opener.ranker(own))
        except BirchbarkError as fault:
            raise fault.at(f"{stages}: stage[{number}]") from None
    return found


@contextmanager
def keeping_scores(rankers: Sequence[Ranker], scores: Path | None) -> Iterator[Sequence[Ranker]]:
    """`rankers`, which keep their scores in the store `scores`; at the end it tells how many."""
    from birchbark.pipeline.opening import remembering

    if scores is None:
        yield rankers
        return
    with remembering(rankers, scores) as kept:
        yield kept.rankers
    not_kept = sum(store.not_kept for store in kept.stores)
    scored, known = (sum(getattr(s, n) for s in kept.asked) for n in ("scored", "known"))
    lost = f", {not_kept:,} not kept" if not_kept else ""
    say(f"{scored:,} pairs scored, {known:,} known before{lost}; scores in {scores}")


def check_output(path: Path, tag: str | None) -> None:
    """Raise InputError now, not after the work, if a run could not be written."""
    if tag is not None and (not tag or len(tag.split()) != 1 or tag != tag.strip()):
        raise InputError("a tag is one word", found=repr(tag))
    if path.is_dir():
        raise InputError("is a folder", where=str(path), wanted="a file to write")
    place = path if path.exists() else next(p for p in path.absolute().parents if p.exists())
    if not os.access(place, os.W_OK):
        raise InputError("may not be written", where=str(place))


def load_queries(path: Path, topic_fields: tuple[str, ...], encoding: str) -> list[Query]:
    """The queries in `path`."""
    from birchbark.collection.queries import read_queries

    return read_queries(path, topic_fields, encoding)
