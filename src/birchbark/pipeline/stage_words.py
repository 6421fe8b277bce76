"""What words name a stage? Those of the options, which files of stages and recipes use as well."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from birchbark.checkpoint.heads import parse_pooling
from birchbark.checkpoint.named import DEFAULT_MODEL
from birchbark.combine.aggregate import parse_aggregation
from birchbark.combine.interpolate import Interpolation, Scale
from birchbark.combine.pairwise import parse_pairwise
from birchbark.errors import InputError
from birchbark.pipeline.ranker import DEPTH
from birchbark.score.precision import Precision
from birchbark.section import Section
from birchbark.segment.named import parse_segmenter

NEEDS = {  # word → the one without which it does nothing
    "embedding_weight": "embedding",
    "duo_depth": "duo",
    "duo_aggregate": "duo",
    "duo_most": "duo",
}
WHOLES = ("depth", "max_segments", "max_length", "duo_depth", "duo_most")
NUMBERS = ("first_stage_weight", "embedding_weight")
KNOWN = {
    "first_stage_scale": tuple(str(scale.value) for scale in Scale),
    "precision": tuple(str(precision.value) for precision in Precision),
}


@dataclass(frozen=True, slots=True)
class StageWords:
    """All choices of a stage as people write them; `Opener` makes a Ranker of them.

    Names and defaults are those of the options of `birchbark rerank`. segments, aggregate: None
    where nothing was said, which is sentences and top:1,0.5,0.25; or the passages paper's windows
    and the model's own way, where it judges documents (PARADE).
    """

    model: str = DEFAULT_MODEL
    pooling: str | None = None
    depth: int = DEPTH
    segments: str | None = None
    aggregate: str | None = None
    first_stage_weight: float = 0.4
    first_stage_scale: str = "max"
    max_segments: int | None = None
    max_length: int | None = None
    embedding: str | None = None
    embedding_weight: float = 0.5
    duo: str | None = None
    duo_depth: int = 10
    duo_aggregate: str = "sum"
    duo_most: int | None = None
    precision: str = "fp32"

    def but(self, section: Section) -> StageWords:
        """These, with what `section` says else; InputError for what it cannot say, with its key."""
        said = {name: _value(section, name, getattr(self, name)) for name in NAMES}
        section.end()
        found = replace(self, **said)
        try:
            found.check(section.keys)
        except InputError as fault:
            raise fault.at(section.where()) from None
        return found

    def check(self, given: Collection[str], spelt: Callable[[str], str] = str) -> None:
        """Raise InputError for words that name nothing, or of `given` do nothing without others.

        spelt: a word as people give it.
        """
        for name in given:
            if (needed := NEEDS.get(name)) and not getattr(self, needed):
                raise InputError(f"{spelt(name)} does nothing without {spelt(needed)}")
        for name, value, wanted in (
            ("duo_depth", self.duo_depth >= 2, "2 or more"),
            ("embedding_weight", 0 <= self.embedding_weight <= 1, "0 to 1"),
        ):
            if not value:
                found = str(getattr(self, name))
                raise InputError(f"{spelt(name)} is out of range", wanted=wanted, found=found)
        if "duo_depth" in given and self.duo_depth > self.depth:
            raise InputError(
                f"{spelt('duo_depth')} is above {spelt('depth')}: no more are ranked",
                wanted=f"{self.depth} at most",
                found=str(self.duo_depth),
            )
        parse_pairwise(self.duo_aggregate)
        Interpolation(self.first_stage_weight, Scale(self.first_stage_scale))
        if self.segments:
            parse_segmenter(self.segments)
        if self.aggregate:
            parse_aggregation(self.aggregate)
        if self.pooling:
            parse_pooling(self.pooling)


NAMES = tuple(field.name for field in fields(StageWords))


def read_stages(path: Path, usual: StageWords) -> list[StageWords]:
    """Each [[stage]] of the TOML file at `path`, in their order; what one does not say is `usual`.

    Raises InputError for any fault, naming the file and the key.
    """
    top = Section.read(path)
    found = [usual.but(section) for section in top.sections("stage")]
    top.end()
    if not found:
        raise InputError("no stages", where=str(path), wanted="[[stage]], once or more")
    return found


def _value(section: Section, name: str, usual: Any) -> Any:
    if name in WHOLES:
        return section.whole(name, usual, least=1)
    if name in NUMBERS:
        return section.number(name, usual)
    if name in KNOWN:
        return section.one_of(name, KNOWN[name], usual)
    return section.text(name, usual)
