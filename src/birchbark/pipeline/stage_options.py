"""Which keys describe a re-ranking stage, in TOML files, in Python and with --set?"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, fields

from birchbark import defaults
from birchbark.arguments import is_count
from birchbark.checkpoint.heads import parse_pooling
from birchbark.combine.aggregate import parse_aggregation
from birchbark.combine.interpolate import Interpolation, Scale
from birchbark.combine.pairwise import parse_pairwise
from birchbark.errors import InputError, require_at_least, require_share
from birchbark.pipeline.ranker_keys import Options, key, one_of, positive
from birchbark.score.precision import Precision
from birchbark.section import Section
from birchbark.segment.by_name import parse_segmenter

NONE = "none"
ALL = "all"
AUTO = "auto"
text, number, count = Section.text, Section.number, Section.count


@dataclass(frozen=True, slots=True)
class StageOptions(Options):
    """The options of one stage as users write them; `make_ranker` turns them into a ranker.

    Those that are None have a default that depends on the model.
    """

    model: str = key(
        text,
        defaults.MODEL,
        "A directory, a name listed by `birchbark model list`, or the id of a model downloaded "
        "with `birchbark model fetch`. none: no re-ranking.",
    )
    pooling: str | None = key(
        text,
        None,
        "METHOD or METHOD:LAYER: ignore the model's head and score with token vectors of a layer "
        "(0 is the input embeddings). cls, mean, max: cosine of pooled vectors. tokens: late "
        "interaction, the cosine of each query token with its most similar text token. By default "
        "the model's own head; last layer.",
    )
    depth: int = key(
        positive, defaults.RERANKING_DEPTH, "Number of candidates to re-rank per query."
    )
    segments: str | None = key(
        text,
        None,
        "How documents are split: passages:SIZE (whole sentences, up to a number of words), "
        "sentences, paragraphs, sections, windows:SIZE/OVERLAP (words), whole, title or text. By "
        f"default {defaults.SEGMENTS}; {defaults.DOCUMENT_SCORER_SEGMENTS} for models that score "
        "whole documents (PARADE).",
    )
    aggregate: str | None = key(
        text,
        None,
        "How segment scores are aggregated: first, max, sum, mean, top:W1,W2,… or "
        "topmean:W1,W2,… (weighted sum or mean of the best segments). By default "
        f"{defaults.AGGREGATION}.",
    )
    first_stage_weight: float = key(
        number,
        defaults.FIRST_STAGE_WEIGHT,
        "Interpolation weight A: score = A · first stage + (1 - A) · evidence.",
    )
    first_stage_scale: str = key(
        one_of(*(str(scale.value) for scale in Scale)),
        defaults.FIRST_STAGE_SCALE,
        "How first-stage scores are scaled: divided by the query's highest (max), mapped to 0 to "
        "1 (minmax), or not at all (raw).",
    )
    max_segments: int | None = key(
        positive, None, "Number of segments at the beginning of a document that can be read."
    )
    max_length: int | None = key(
        positive, None, "Number of tokens at the beginning of a segment that are read."
    )
    query_tokens: int | None = key(
        positive,
        None,
        "Have models read only the first N tokens of a query, and say how many were cut. By "
        "default all; a query that is too long is refused.",
    )
    embedding: str | None = key(
        text,
        None,
        "Embedding model that scores all candidates first and chooses what the model reads; none "
        f"to leave it out. By default {defaults.EMBEDDING}; none if the model is an embedding "
        "model or scores whole documents.",
    )
    read_segments: str | None = key(
        count,
        None,
        "Number of segments of each document that the model reads, chosen by the embedding; or "
        f"all. By default {defaults.READ_SEGMENTS}, or more if aggregate has more weights; all "
        "for models and aggregations that need all.",
    )
    read_documents: str = key(
        count,
        defaults.READ_DOCUMENTS,
        "Number of candidates that the model reads, the best ones by first stage and embedding; "
        "or all. The others keep their order below.",
    )
    read_pairs: str | None = key(
        count,
        None,
        "Number of segments that the model reads in total, those of the best candidates; or all. "
        f"By default {defaults.READ_PAIRS}; all with read_segments all.",
    )
    embed_segments: str | None = key(
        count,
        None,
        "Number of segments that the embedding reads of a document without stored vectors; or all. "
        f"By default {defaults.EMBED_SEGMENTS}; all where read_segments is all by default.",
    )
    embed_documents: str | None = key(
        count,
        None,
        "Number of candidates that the embedding reads if the index has only static vectors of "
        "them, or all; the others are judged by these. "
        f"By default {defaults.EMBED_DOCUMENTS}; all where read_segments is all by default, and "
        "with another embedding than the bundled one.",
    )
    embedding_weight: float | None = key(
        number,
        None,
        "Share of the embedding score in the evidence. By default what the model states, such as "
        f".7 for {defaults.SMALL_MODEL}, or else {defaults.EMBEDDING_WEIGHT:g}.",
    )
    duo: str | None = key(
        text,
        None,
        "Model that re-ranks the best documents once more by pairwise comparison (duoBERT).",
    )
    duo_depth: int = key(positive, defaults.DUO_DEPTH, "Number of documents that duo compares.")
    duo_aggregate: str = key(
        text,
        defaults.DUO_AGGREGATION,
        "How a document's comparisons are aggregated: sum, binary, min, max or sample:M.",
    )
    duo_max_comparisons: int | None = key(
        positive, None, "Fail early if all queries together would need more comparisons."
    )
    precision: str = key(
        one_of(AUTO, *(str(precision.value) for precision in Precision)),
        defaults.PRECISION,
        "Arithmetic of BERT; see --precision of `birchbark search`.",
    )

    def check(self, given: Collection[str]) -> None:
        """Raise InputError for an unknown value, or if an option in `given` has no effect."""
        for name in ("duo_depth", "duo_aggregate", "duo_max_comparisons"):
            if name in given and not self.duo:
                raise InputError(f"{name} has no effect without duo")
        require_at_least("duo_depth", self.duo_depth, 2)
        if self.embedding_weight is not None:
            require_share("embedding_weight", self.embedding_weight)
        if "duo_depth" in given and self.duo_depth > self.depth:
            raise InputError(
                "duo_depth exceeds depth",
                wanted=f"at most {self.depth}",
                found=str(self.duo_depth),
            )
        for name in ("embedding_weight", "embed_segments", "embed_documents"):
            if name in given and self.embedding == NONE:
                raise InputError(f"{name} has no effect without an embedding")
        for name in COUNTS:
            if value := getattr(self, name):
                parse_count(value, name)
        parse_pairwise(self.duo_aggregate)
        Interpolation(self.first_stage_weight, self.first_stage_scale)
        if self.segments:
            parse_segmenter(self.segments)
        if self.aggregate:
            parse_aggregation(self.aggregate)
        if self.pooling:
            parse_pooling(self.pooling)


def parse_count(value: str, name: str) -> int | None:
    """Parse a number of 1 or more; None for ALL. name: what the InputError names."""
    if value == ALL:
        return None
    if not is_count(value) or int(value) < 1:
        raise InputError(f"invalid {name}", wanted=f"1 or more, or {ALL}", found=value)
    return int(value)


NAMES = tuple(each.name for each in fields(StageOptions))
COUNTS = tuple(each.name for each in fields(StageOptions) if each.metadata["read"] is count)
NUMBERS = tuple(each.name for each in fields(StageOptions) if each.metadata["read"] is number)
