"""What do the words of the options stand for?"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from birchbark.cli.options import NEEDS, refuse_aggregation, refuse_void
from birchbark.cli.talk import say
from birchbark.errors import InputError

if TYPE_CHECKING:
    from birchbark.pipeline.ranker import Ranker
    from birchbark.records import Query
    from birchbark.retrieve.first_stage import FirstStage
    from birchbark.retrieve.model import Model
    from birchbark.score.heads import Pooling
    from birchbark.score.scorer import Scorer


def first_stage(
    first_stage_model: str,
    k1: float,
    b: float,
    match: str,
    fields: tuple[str, ...],
    field_bm25: tuple[str, ...],
    filters: tuple[str, ...],
    rm3: bool,
    rm3_documents: int,
    rm3_terms: int,
    rm3_weight: float,
    rm3_max_df: float,
) -> FirstStage:
    """The FirstStage that the options above describe."""
    from birchbark.retrieve.bm25 import BM25
    from birchbark.retrieve.first_stage import FirstStage
    from birchbark.retrieve.match import parse_match
    from birchbark.retrieve.rm3 import RM3
    from birchbark.retrieve.tfidf import TfIdf

    refuse_void()
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
        match=parse_match(match),
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


def rankers(stages: Path | None, **choices: Any) -> list[Ranker]:
    """The Ranker that the options describe; or one for each stage of the file."""
    refuse_void()
    if stages is None:
        return [ranker(**choices)]
    from birchbark.cli.stages import read_stages

    found = []
    for number, own in enumerate(read_stages(stages), 1):
        where, chosen = f"{stages}: stage[{number}]", choices | own
        for name in own:
            if (needed := NEEDS.get(name)) and not chosen[needed]:
                raise InputError(f"{name} does nothing without {needed}", where=where)
        one = ranker(**chosen)
        if "aggregate" in own and one.scorer.width > 1:
            raise InputError("aggregate does nothing: the model judges documents", where=where)
        found.append(one)
    return found


def ranker(
    model: str,
    pooling: str | None,
    device: str,
    depth: int,
    segments: str,
    aggregate: str,
    first_stage_weight: float,
    first_stage_scale: str,
    max_segments: int | None,
    max_length: int | None,
    embedding: str | None,
    embedding_weight: float,
    duo: str | None,
    duo_depth: int,
    duo_aggregate: str,
    duo_most: int | None,
    threads: int | None,
    precision: str,
) -> Ranker:
    """The Ranker that the options above describe."""
    from birchbark.combine.aggregate import parse_aggregation
    from birchbark.combine.interpolate import Interpolation, Scale
    from birchbark.combine.pairwise import parse_pairwise
    from birchbark.device.session import session_on
    from birchbark.pipeline.duo import Duo
    from birchbark.pipeline.ranker import Ranker
    from birchbark.score.duo import load_duo
    from birchbark.score.model import load_scorer
    from birchbark.score.precision import Precision
    from birchbark.segment.limit import Limit
    from birchbark.segment.named import parse_segmenter

    interpolation = Interpolation(first_stage_weight, Scale(first_stage_scale))
    aggregation, segmenter = parse_aggregation(aggregate), parse_segmenter(segments)
    pooled, session = parse_pooling(pooling) if pooling else None, session_on(device)
    scorer = load_scorer(model, threads, pooled, Precision(precision), session)
    if scorer.width > 1:
        refuse_aggregation(model)
    exact = scorer if precision == "fp32" else load_scorer(model, threads, pooled)
    stage = None
    if duo:
        comparer = load_duo(duo, threads, Precision(precision), session)
        pairwise = parse_pairwise(duo_aggregate)
        stage = Duo(comparer, comparer, duo_depth, pairwise, duo_most)
    return Ranker(
        scorer,
        segmenter,
        aggregation,
        interpolation,
        depth,
        Limit(max_segments, max_length),
        load_scorer(embedding, threads, session=session) if embedding else None,
        embedding_weight,
        None if exact is scorer else exact,
        duo=stage,
    )


def parse_pooling(text: str) -> Pooling:
    """The pooling that `text` names: cls, mean or max, with :LAYER or without."""
    from birchbark.score.heads import MODES, Pooling

    mode, colon, layer = text.partition(":")
    if mode not in MODES or bool(colon) != (layer.isascii() and layer.isdecimal()):
        raise InputError(
            "not a pooling", found=repr(text), wanted="cls, mean or max, or with a layer: mean:6"
        )
    return Pooling(mode, int(layer) if layer else None)


@contextmanager
def remembering(rankers: Sequence[Ranker], scores: Path | None) -> Iterator[list[Ranker]]:
    """`rankers`, which keep their scores in the store `scores`; at the end it tells how many."""
    from dataclasses import replace

    from birchbark.score.remembering import Remembering
    from birchbark.score.store import ScoreStore

    if scores is None:
        yield list(rankers)
        return
    stores: list[ScoreStore] = []
    asked: dict[str, Remembering] = {}  # by fingerprint: two roles may have one model
    with ExitStack() as stack:

        def kept(scorer: Scorer) -> Remembering:
            if scorer.fingerprint not in asked:
                store = ScoreStore(scores, scorer, under=stores[0] if stores else None)
                stores.append(stack.enter_context(store))
                asked[scorer.fingerprint] = Remembering(scorer, store)
            return asked[scorer.fingerprint]

        yield [
            replace(
                one,
                scorer=kept(one.scorer),
                embedding=one.embedding and kept(one.embedding),
                precise=one.precise and kept(one.precise),
                duo=one.duo and replace(one.duo, scorer=kept(one.duo.scorer)),
            )
            for one in rankers
        ]
    not_kept = sum(store.not_kept for store in stores)
    scored, known = (sum(getattr(s, n) for s in asked.values()) for n in ("scored", "known"))
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
