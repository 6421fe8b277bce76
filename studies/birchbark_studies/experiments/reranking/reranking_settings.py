"""Which settings does a study of re-ranking have? The table [reranking] of a recipe."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from birchbark import InputError
from birchbark.checkpoint.heads import POOLING_MODES
from birchbark.retrieve.match import ALL, Match, parse_match
from birchbark.section import Section
from birchbark.segment.by_name import parse_segmenter
from birchbark_studies.models import Models

AFTER, BEFORE = "after", "before"
ALL_PAIRS, JUDGED_PAIRS = "all", "judged"


@dataclass(frozen=True, slots=True)
class ModelParameter:
    """A number in which the models differ, over which AUC is plotted.

    Attributes:
        axis: The axis label.
        at: Model → its number, ascending; models without one are not plotted.
    """

    axis: str
    at: Mapping[str, float]

    @classmethod
    def read(cls, section: Section, models: Sequence[str]) -> ModelParameter:
        """Read the table [reranking.over] of a recipe."""
        axis, table = section.text("axis"), section.section("at")
        at = {name: table.number(name) for name in models if name in table.keys}
        table.reject_unknown_keys()
        section.reject_unknown_keys()
        return cls(axis, dict(sorted(at.items(), key=lambda item: item[1])))


@dataclass(frozen=True, slots=True)
class VectorFirstStage:
    """A first stage that ranks documents by the cosine of their vector with the query's.

    Attributes:
        model: Name or directory of the encoder.
        segments: The segmenter; a document's segments are joined into one text.
        mode: The pooling mode; the layer is the last one.
        match: Which documents are candidates; by default all.
    """

    model: str
    segments: str
    mode: str
    match: Match = ALL

    @classmethod
    def read(cls, section: Section) -> VectorFirstStage:
        """Read the table [reranking.nearest] of a recipe."""
        match = section.text("match", "all")
        stage = cls(
            section.text("model"),
            section.text("segments", "whole"),
            section.one_of("pooling", POOLING_MODES, "mean"),
            parse_match(match),
        )
        parse_segmenter(stage.segments)
        section.reject_unknown_keys()
        return stage


@dataclass(frozen=True, slots=True)
class RerankingSettings:
    """The settings of the tables and plots.

    Attributes:
        compared: The models by name.
        depths: The numbers of documents to re-rank, ascending; most tables show the first, and
            plots also each number between the first and the last.
        tops: The numbers of best documents per query whose grades are counted, ascending.
        highest: The highest grade.
        judged_only: The collections that are shown a second time, with unjudged documents removed
            from the rankings.
        removed: Whether they are removed `after` re-ranking the top documents, or `before`, so that
            as many judged documents are re-ranked.
        auc_pairs: The pairs of which AUC is computed: `all` that are scored, or the `judged` ones.
        histograms: The models whose scores are plotted as histograms.
        over: The number over which AUC is plotted; None for no such plot.
    """

    compared: Models
    depths: tuple[int, ...]
    tops: tuple[int, ...]
    highest: int
    judged_only: tuple[str, ...]
    removed: str
    auc_pairs: str
    histograms: tuple[str, ...]
    over: ModelParameter | None

    @classmethod
    def read(cls, section: Section, compared: Models) -> RerankingSettings:
        """Read the table [reranking] of a recipe."""
        models = compared.shown
        histograms = section.texts("histograms", ())
        if unknown := [name for name in histograms if name not in models]:
            raise InputError(
                f"no model {unknown[0]!r}",
                where=section.where("histograms"),
                wanted=f"one of {', '.join(models)}",
            )
        has_over = "over" in section.keys
        return cls(
            compared,
            section.integers("depths", (10, 20, 50, 100), minimum=1),
            section.integers("top", (3,), minimum=1),
            section.integer("highest", 1, minimum=1),
            section.texts("judged_only", ()),
            section.one_of("removed", (AFTER, BEFORE), AFTER),
            section.one_of("auc_pairs", (ALL_PAIRS, JUDGED_PAIRS), ALL_PAIRS),
            histograms,
            ModelParameter.read(section.section("over"), models) if has_over else None,
        )

    @property
    def shown(self) -> int:
        """The depth shown in tables with a single depth."""
        return self.depths[0]

    @property
    def deepest(self) -> int:
        """The number of top documents that are scored."""
        return self.depths[-1]
