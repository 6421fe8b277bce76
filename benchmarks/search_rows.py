"""Which ways to search are compared: which scorer reads which segments of which candidates?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from birchbark import Interpolation, Ranker, defaults
from birchbark.pipeline.settings.reading_plan import ReadingPlan
from birchbark.pipeline.stage_options import parse_count
from birchbark.score.precision import Precision
from birchbark.score.scorer import Scorer
from birchbark.segment.by_name import Segmenter

Load = Callable[[str, Precision], Scorer]
FORMER_WEIGHT = 0.4  # of the first stage, when the cross-encoder read everything alone
ALL = ReadingPlan()
DEFAULT_PLAN = ReadingPlan(
    segments=parse_count(defaults.READ_SEGMENTS, "segments"),
    documents=parse_count(defaults.READ_DOCUMENTS, "documents"),
    pairs=parse_count(defaults.READ_PAIRS, "pairs"),
    embedded=parse_count(defaults.EMBED_SEGMENTS, "embedded"),
    embedded_documents=parse_count(defaults.EMBED_DOCUMENTS, "embedded_documents"),
)

FIRST, EVERYTHING, STORED, COMPUTED, NONE = GROUPS = (
    "first stage or embedding alone",
    "every segment",
    "stored vectors",
    "no stored vectors",
    "no embedding",
)


@dataclass(frozen=True, slots=True)
class Row:
    """One way to search.

    name: unique. label: its name in the plot. group: one of GROUPS. model: None for the first stage
    alone. embedding: whether the embedding is the second scorer. vectors: whether the index has
    stored vectors.
    """

    name: str
    label: str
    group: str
    model: str | None = defaults.MODEL
    embedding: bool = True
    plan: ReadingPlan = ALL
    vectors: bool = True
    first_stage_weight: float = defaults.FIRST_STAGE_WEIGHT
    precision: Precision = Precision.FP32

    @property
    def is_default(self) -> bool:
        """Whether `birchbark search` searches like this where `precision` is its default."""
        mixed = self.embedding and self.group in (STORED, COMPUTED)
        return mixed and self.plan == DEFAULT_PLAN

    def ranker(self, load: Load, segmenter: Segmenter) -> Ranker | None:
        """Return the ranker; None for the first stage alone."""
        if self.model is None:
            return None
        scorer = load(self.model, self.precision)
        interpolation = Interpolation(self.first_stage_weight)
        embedding = load(defaults.EMBEDDING, Precision.FP32) if self.embedding else None
        fast = embedding and self.precision is Precision.INT8
        return Ranker(
            scorer,
            segmenter,
            interpolation=interpolation,
            embedding=embedding,
            plan=self.plan,
            fast_embedding=load(defaults.EMBEDDING, Precision.INT8) if fast else None,
        )


def rows() -> tuple[Row, ...]:
    """Return all rows, in the order of the report."""
    return (*_alone(), *_stored(), *_computed(), *_without_embedding(), *_int8(), *_everything())


BM25 = Row("BM25 alone", "BM25", FIRST, model=None, embedding=False, vectors=False)
MIXTURE = Row("cross-encoder and embedding read everything", "both, all", EVERYTHING)


def _alone() -> Iterator[Row]:
    yield BM25
    name = "BM25 and embedding, no cross-encoder"
    yield Row(name, "embedding", FIRST, model=defaults.EMBEDDING, embedding=False)


def _everything() -> Iterator[Row]:
    yield MIXTURE
    yield Row(
        f"cross-encoder alone reads everything, a = {FORMER_WEIGHT}",
        "cross-encoder, all",
        EVERYTHING,
        embedding=False,
        vectors=False,
        first_stage_weight=FORMER_WEIGHT,
    )


def _stored() -> Iterator[Row]:
    for plan in dict.fromkeys([*_grid(), *_by_pairs(), DEFAULT_PLAN]):
        read = _read(plan)
        name = f"stored vectors, cross-encoder reads {read}"
        yield Row(name, _short(plan), STORED, plan=plan)


def _grid() -> Iterator[ReadingPlan]:
    for documents in (10, 20, 30, 100):
        for segments in (1, 2, 3, 5):
            yield replace(DEFAULT_PLAN, segments=segments, documents=documents, pairs=None)


def _by_pairs() -> Iterator[ReadingPlan]:
    for segments in (3, 5):
        for pairs in (30, 45, 60, 90, 150):
            yield replace(DEFAULT_PLAN, segments=segments, documents=None, pairs=pairs)


def _computed() -> Iterator[Row]:
    plans = [
        replace(plan, embedded=embedded)
        for embedded in (1, 2)
        for plan in (*_grid(), *_by_pairs())
        if (plan.segments == 3 and plan.documents in (20, 30)) or plan.pairs == DEFAULT_PLAN.pairs
    ]
    for plan in dict.fromkeys([*plans, DEFAULT_PLAN]):
        yield _without_vectors(plan)


def _without_vectors(plan: ReadingPlan) -> Row:
    return Row(
        f"no vectors, embedding reads {plan.embedded}, cross-encoder {_read(plan)}",
        f"{plan.embedded} embedded, {_short(plan)}",
        COMPUTED,
        plan=plan,
        vectors=False,
    )


def _read(plan: ReadingPlan) -> str:
    """Say what the cross-encoder reads."""
    if plan.pairs is None:
        return f"{plan.segments} of {plan.documents}"
    if plan.documents is None:
        return f"{plan.segments} each, {plan.pairs} pairs"
    return f"{plan.segments} of {plan.documents}, {plan.pairs} pairs"


def _short(plan: ReadingPlan) -> str:
    """Say the same in the plot."""
    return _read(plan).replace(f"{DEFAULT_PLAN.segments} each, ", "")


def _without_embedding() -> Iterator[Row]:
    yield _bare(DEFAULT_PLAN)
    for documents in (30, 100):
        yield _bare(replace(DEFAULT_PLAN, documents=documents, pairs=None))


def _bare(plan: ReadingPlan) -> Row:
    return Row(
        f"no embedding, cross-encoder reads {_read(plan)}",
        _short(plan),
        NONE,
        embedding=False,
        plan=plan,
        vectors=False,
    )


def _int8() -> Iterator[Row]:
    read_by_search = [row for row in (*_stored(), *_computed()) if row.is_default]
    for row in (*read_by_search, next(_without_embedding())):
        name, label = f"{row.name}, int8", f"{row.label}, int8"
        yield replace(row, name=name, label=label, precision=Precision.INT8)
