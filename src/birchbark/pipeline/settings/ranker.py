"""Which choices define how candidates are re-ranked?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

import numpy as np

from birchbark import defaults
from birchbark.arguments import instances_of
from birchbark.combine.aggregate import AggregatedEvidence, Aggregation, TopMean, aggregate
from birchbark.combine.interpolate import Interpolation, Scale
from birchbark.errors import InputError, require_at_least, require_share
from birchbark.pipeline.settings.duo import Duo
from birchbark.pipeline.settings.reading_plan import ReadingPlan
from birchbark.pipeline.stored.vector_scorer import bi_encoder
from birchbark.records import Float32s
from birchbark.score.cross_encoder import CrossEncoderScorer
from birchbark.score.embedding import EmbeddingScorer
from birchbark.score.scorer import DocumentScorer, Scorer
from birchbark.score_cache.cached_scorer import uncached
from birchbark.segment.by_name import Segmenter, segmenter_name
from birchbark.segment.passages import Passages
from birchbark.segment.sentences import sentences
from birchbark.segment.truncate import Limit


@dataclass(frozen=True, slots=True)
class Ranker:
    """The settings of one re-ranking stage.

    With a for the first-stage weight and e for the embedding weight, a document's score is
    a · first stage + (1 − a) · ((1 − e) · evidence + e · evidence by the embedding).

    Attributes:
        scorer: The main scorer, from `load_scorer`; it scores query–segment pairs.
        segmenter: Splits documents into segments. Defaults to `Passages()`: whole sentences, up to
            120 words; a document that is not longer is one segment.
        aggregation: How segment scores become evidence; unused if the scorer scores whole
            documents (PARADE). Defaults to `TopMean((1.0, 0.5, 0.25))`.
        interpolation: How evidence and first-stage score are combined. Defaults to
            `Interpolation()`: a first-stage weight of 0.2, with first-stage scores divided by the
            highest.
        depth: Number of candidates to re-rank; the others keep their order below the re-ranked
            ones. Defaults to 100.
        limit: How much of each document is read. Defaults to all of it.
        embedding: An embedding model or late interaction, which scores all candidates before the
            main scorer reads any. Defaults to None: no embedding model.
        embedding_weight: e, from 0 to 1; unused without `embedding`. Defaults to 0.5.
        precise: A scorer that scores the highest-weighted segments of the best documents again,
            for use with a less precise main scorer (int8). Defaults to None: no rescoring.
        rescore_depth: Number of best documents that `precise` scores again. Defaults to 20.
        plan: Which segments of which candidates are read. Defaults to `ReadingPlan()`: all of all.
            A plan that chooses segments requires a scorer of segments, and no `limit`.
        duo: Pairwise re-ranking of the best documents. Defaults to None: no comparisons.
        query_tokens: Number of tokens at the beginning of a query that models read; the others are
            counted, and only the first stage uses them. Defaults to None: all of them, and a query
            that is too long is refused.
        fast_embedding: A less precise copy of `embedding` (int8), which reads documents without
            stored vectors in its place; unused without `embedding`. Defaults to None: no copy.
        static: A static embedding. Where the index has its vectors of a document and none of
            `embedding`, they are the document's evidence until the embedding has read it, and
            choose what is read of it. Unused without `embedding`. Defaults to None: query terms
            choose.
    """

    scorer: Scorer
    segmenter: Segmenter = field(default_factory=Passages)
    aggregation: Aggregation = field(default_factory=TopMean)
    interpolation: Interpolation = field(default_factory=Interpolation)
    depth: int = defaults.RERANKING_DEPTH
    limit: Limit = field(default_factory=Limit)
    embedding: Scorer | None = None
    embedding_weight: float = defaults.EMBEDDING_WEIGHT
    precise: Scorer | None = None
    rescore_depth: int = defaults.RESCORE_DEPTH
    duo: Duo | None = None
    plan: ReadingPlan = field(default_factory=ReadingPlan)
    fast_embedding: Scorer | None = None
    query_tokens: int | None = None
    static: Scorer | None = None

    def __post_init__(self) -> None:
        for name, method in (("segmenter", "__call__"), ("aggregation", "weights")):
            if not hasattr(getattr(self, name), method):
                raise InputError(
                    f"invalid {name}",
                    found=repr(getattr(self, name)),
                    remedy="load_ranker takes the names that `birchbark rerank` takes",
                )
        require_at_least("depth", self.depth, 1)
        require_share("embedding weight", self.embedding_weight)
        if self.query_tokens is not None:
            require_at_least("number of query tokens", self.query_tokens, 1)
        if self.embedding and self.embedding.width > 1:
            raise InputError(
                f"{self.embedding.name} scores whole documents, not segments",
                wanted="an embedding model",
            )
        if self.plan.segments is not None or self.plan.embedded is not None:
            if self.scorer.width > 1:
                raise InputError(f"{self.scorer.name} must read all segments of a document")
            if self.limit != Limit():
                raise InputError(
                    "max_segments and max_length cannot be combined with reading only some "
                    "segments",
                    remedy="set read_segments and embed_segments to all, or leave out max_segments "
                    "and max_length",
                )
        if self.precise and self.precise.encoding != self.scorer.encoding:
            raise InputError("the precise scorer encodes texts differently from the main scorer")
        fast, embedding = self.fast_embedding, self.embedding
        if fast and embedding and fast.encoding != embedding.encoding:
            raise InputError("fast_embedding encodes texts differently from the embedding")

    def evidence_of(self, values: Float32s, unread: int = 0) -> AggregatedEvidence:
        """Aggregate the segment scores (n,), or segment vectors (n, width), of one document.

        unread: how many further segments are to be read, whose scores are not known.
        """
        if self.scorer.width > 1:
            score, shares = cast(DocumentScorer, self.scorer).score_document(values)
            return AggregatedEvidence(score, np.full(len(values), score, np.float32), shares)
        return aggregate(values, self.aggregation, unread)

    def max_evidence(self, segments: int | None = None) -> float:
        """Return the highest possible evidence of a document for segment scores in [0, 1].

        segments: the number of its segments; None if it is unknown.
        """
        return (
            float(segments != 0)
            if self.scorer.width > 1
            else self.aggregation.max_evidence(segments)
        )

    @property
    def max_score(self) -> float | None:
        """The highest score that a document can have; None if first-stage scores have no limit."""
        a = self.interpolation.first_stage_weight
        if self.interpolation.scale is Scale.RAW and a:
            return None
        return a + (1 - a) * self.max_evidence()

    @property
    def scorers(self) -> list[Scorer]:
        """The models that read segments, without that of `duo`.

        The static embedding reads none: only its stored vectors are used.
        """
        embeddings = (self.embedding, self.fast_embedding) if self.embedding else ()
        return [scorer for scorer in (self.scorer, *embeddings, self.precise) if scorer]

    def map_scorers(self, function: Callable[[Scorer], Scorer]) -> Ranker:
        """Return a copy with each scorer but the static one replaced by `function` of it."""
        return replace(
            self,
            scorer=function(self.scorer),
            embedding=self.embedding and function(self.embedding),
            precise=self.precise and function(self.precise),
            fast_embedding=self.fast_embedding and function(self.fast_embedding),
            duo=self.duo and replace(self.duo, scorer=function(self.duo.scorer)),
        )

    def forget_vectors(self) -> None:
        """Drop the vectors of texts that the models remember, as for measuring their speed."""
        for scorer in map(uncached, self.scorers):
            if isinstance(scorer, EmbeddingScorer):
                scorer.forget()

    @property
    def vector_scorer(self) -> Scorer | None:
        """The embedding model or late interaction whose stored vectors are used, if there are any.

        None if it has no such model, or if its segments are cut or have no name, so that stored
        vectors cannot be those of its segments.
        """
        scorer = self.embedding or self.scorer
        named = segmenter_name(self.segmenter) is not None and self.limit == Limit()
        return scorer if named and bi_encoder(scorer) else None

    @property
    def has_stated_scales(self) -> bool:
        """Whether it is a cross-encoder beside an embedding, and both state the scale of scores."""
        main = uncached(self.scorer)
        second = uncached(self.embedding) if self.embedding else None
        return (
            isinstance(main, CrossEncoderScorer)
            and isinstance(second, EmbeddingScorer)
            and main.checkpoint.scale.stated
            and second.checkpoint.scale.stated
        )

    @property
    def scoring_key(self) -> tuple[object, ...]:
        """A key that is equal for rankers that score the same segments with the same models."""
        scorers = self.scorer, self.embedding, self.fast_embedding, self.static, self.precise
        return *scorers, self.segmenter, self.limit

    @property
    def unit(self) -> str:
        """What a segment is called where counts are shown: sentences or passages."""
        return "sentences" if self.segmenter is sentences else "passages"

    @property
    def embedding_share(self) -> float:
        """The embedding weight e; 0 without an embedding."""
        return self.embedding_weight if self.embedding else 0.0


def stages_of(rankers: Ranker | Sequence[Ranker]) -> list[Ranker]:
    """Return one or several stages as a list.

    Raises InputError for anything else, such as the name of a model.
    """
    return [rankers] if isinstance(rankers, Ranker) else instances_of(rankers, Ranker, "rankers")
