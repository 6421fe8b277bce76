"""Which options describe a re-ranking stage on the command line and in TOML files?"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from birchbark import defaults
from birchbark.arguments import is_count
from birchbark.checkpoint.heads import parse_pooling
from birchbark.combine.aggregate import parse_aggregation
from birchbark.combine.interpolate import Interpolation, Scale
from birchbark.combine.pairwise import parse_pairwise
from birchbark.errors import InputError, require_at_least, require_share
from birchbark.option_rules import check_options
from birchbark.score.precision import Precision
from birchbark.section import Section
from birchbark.segment.by_name import parse_segmenter

NONE = "none"
ALL = "all"
AUTO = "auto"
INTEGERS = (
    "depth",
    "max_segments",
    "max_length",
    "query_tokens",
    "duo_depth",
    "duo_max_comparisons",
)
COUNTS = (  # integers or ALL
    "read_segments",
    "read_documents",
    "read_pairs",
    "embed_segments",
    "embed_documents",
)
NUMBERS = ("first_stage_weight", "embedding_weight")
CHOICES = {
    "first_stage_scale": tuple(str(scale.value) for scale in Scale),
    "precision": (AUTO, *(str(precision.value) for precision in Precision)),
}


@dataclass(frozen=True, slots=True)
class StageOptions:
    """The options of one stage as users write them; `make_ranker` turns them into a ranker.

    Some are options of the command line, too. segments, aggregate, embedding,
    embedding_weight, read_segments, read_pairs: None for the default, which depends on the model.
    For models that score segments it is passages of 120 words, topmean:1,0.5,0.25, the bundled
    embedding model (unless the model is an embedding model itself) with the weight that the model
    states or .5, three segments (more if the aggregation has more weights), and 30 pairs. For
    models that score whole documents (PARADE) it is windows of 150 words, the model's own
    aggregation, no embedding, and all segments and pairs. embedding: NONE for no embedding.
    read_segments, read_documents, read_pairs, embed_segments, embed_documents: a number, or ALL.
    precision: AUTO for fp32 or, with `auto_int8`, the fastest one that is safe.
    """

    model: str = defaults.MODEL
    pooling: str | None = None
    depth: int = defaults.RERANKING_DEPTH
    segments: str | None = None
    aggregate: str | None = None
    first_stage_weight: float = defaults.FIRST_STAGE_WEIGHT
    first_stage_scale: str = defaults.FIRST_STAGE_SCALE
    max_segments: int | None = None
    max_length: int | None = None
    query_tokens: int | None = None
    embedding: str | None = None
    read_segments: str | None = None
    read_documents: str = defaults.READ_DOCUMENTS
    read_pairs: str | None = None
    embed_segments: str = defaults.EMBED_SEGMENTS
    embed_documents: str = defaults.EMBED_DOCUMENTS
    embedding_weight: float | None = None
    duo: str | None = None
    duo_depth: int = defaults.DUO_DEPTH
    duo_aggregate: str = defaults.DUO_AGGREGATION
    duo_max_comparisons: int | None = None
    precision: str = defaults.PRECISION

    def updated(self, section: Section) -> StageOptions:
        """Return these options, overridden by a TOML section.

        Raises InputError, which names the key, for an unknown key or value.
        """
        values = {name: _value(section, name, getattr(self, name)) for name in NAMES}
        section.reject_unknown_keys()
        options = replace(self, **values)
        try:
            options.check(section.keys)
        except InputError as error:
            raise error.at(section.where()) from None
        return options

    def check(self, given: Collection[str], spell: Callable[[str], str] = str) -> None:
        """Raise InputError for an unknown value, or if an option in `given` has no effect.

        given: the options that the user has set. spell: returns an option's name as users write it.
        """
        check_options(given, {name: getattr(self, name) for name in NAMES}, spell)
        require_at_least(spell("duo_depth"), self.duo_depth, 2)
        require_share(spell("embedding_weight"), self.embedding_weight)
        if "duo_depth" in given and self.duo_depth > self.depth:
            raise InputError(
                f"{spell('duo_depth')} exceeds {spell('depth')}",
                wanted=f"at most {self.depth}",
                found=str(self.duo_depth),
            )
        check_embedding(given, [self], spell)
        for name in COUNTS:
            if text := getattr(self, name):
                parse_count(text, spell(name))
        parse_pairwise(self.duo_aggregate)
        Interpolation(self.first_stage_weight, self.first_stage_scale)
        if self.segments:
            parse_segmenter(self.segments)
        if self.aggregate:
            parse_aggregation(self.aggregate)
        if self.pooling:
            parse_pooling(self.pooling)


def check_embedding(
    given: Collection[str], stages: Sequence[StageOptions], spell: Callable[[str], str]
) -> None:
    """Raise InputError if an option in `given` needs an embedding and no stage has one."""
    if all(stage.embedding == NONE for stage in stages):
        for name in ("embedding_weight", "embed_segments", "embed_documents"):
            if name in given:
                raise InputError(f"{spell(name)} has no effect without an embedding")


def parse_count(text: str, name: str) -> int | None:
    """Parse a number of 1 or more; None for ALL. name: what the InputError names."""
    if text == ALL:
        return None
    if not is_count(text) or int(text) < 1:
        raise InputError(f"invalid {name}", wanted=f"1 or more, or {ALL}", found=text)
    return int(text)


NAMES = tuple(field.name for field in fields(StageOptions))


def _value(section: Section, name: str, default: Any) -> Any:
    if name in INTEGERS:
        return section.integer(name, default, minimum=1)
    if name in COUNTS:
        return section.count(name, default)
    if name in NUMBERS:
        return section.number(name, default)
    if name in CHOICES:
        return section.one_of(name, CHOICES[name], default)
    return section.text(name, default)
