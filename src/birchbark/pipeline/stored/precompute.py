"""Which data about an index's documents are computed once and stored? Token ids and vectors.

Stored token ids save splitting and tokenising, and change no score. Stored vectors save running
BERT; they are rounded to 16 or 8 bits, those of tokens (late interaction) to 8 or 4. For documents
without stored vectors, vectors are computed when they are needed and rounded in the same way
(unless an int8 copy of the embedding computes them), so that scores are comparable.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from birchbark.errors import InputError
from birchbark.index.attachment_schema import AttachmentSchema, RowForm, Rows
from birchbark.index.attachment_writer import AttachmentJob
from birchbark.index.sharded_writer import Writer
from birchbark.pipeline.stored.rounding_error import RoundingError, rounding_error
from birchbark.pipeline.stored.vector_scorer import (
    bi_encoder,
    fast_copy,
    is_static,
    rounded_vector_scorer,
)
from birchbark.records import Document, Ids, Segment
from birchbark.score.batches import similar_lengths
from birchbark.score.bert_scorer import BiEncoderScorer
from birchbark.score.rounded_vector_scorer import RoundedVectors
from birchbark.score.scorer import LoadScorer, Scorer
from birchbark.segment.by_name import Segmenter, parse_segmenter, segmenter_name, splitter_version
from birchbark.segment.split_long import Encoded, split_long

TOKENS, VECTORS, STATIC = "tokens", "vectors", "static"
_VECTOR_SET = re.compile(rf"{VECTORS}(-[1-9][0-9]*)?")
TOKENS_EMBEDDED_AT_ONCE = 8_192  # of segments that are embedded in one call, approximately
UINT16_VOCABULARY = 1 << 16  # ids of vocabularies up to this size fit into 16 bits

# Per segment: length of the prefix (a title) before the segment's own text, start, end; all −1 if
# the segment's text cannot be restored from these three.
SPANS = RowForm("int32", (3,))
LOADED_BY = ("model", "pooling")  # keys of a config that say how its scorer is loaded again


@dataclass(frozen=True, slots=True)
class Precomputation(AttachmentJob):
    """An attachment that is computed from the segments of documents.

    rounding: measures on the first documents how rounding, and computing in int8, change scores;
    None if nothing is rounded.
    """

    rounding: Callable[[Iterable[Document]], RoundingError] | None = None

    def attach(
        self, writer: Writer, advance: Callable[[int], object] = lambda documents: None
    ) -> None:
        """Compute the rows that the index lacks; an attachment with another schema is replaced."""
        writer.attach(self.name, self.schema, self.compute, advance)


def precompute_tokens(scorer: Scorer, segmenter: Segmenter, model: str) -> Precomputation:
    """Return the precomputation of the token ids of all segments.

    model: the name by which `load_precomputations` loads the scorer again.
    """
    ids_form = RowForm("uint16" if scorer.vocabulary <= UINT16_VOCABULARY else "uint32")
    forms = {"spans": SPANS, "lengths": RowForm("uint32"), "ids": ids_form}

    def compute(documents: Sequence[Document]) -> Iterator[Rows]:
        segments = [segmenter(document) for document in documents]
        texts = [segment.text for of_document in segments for segment in of_document]
        encoded = iter(scorer.encode(texts))
        for document, of_document in zip(documents, segments, strict=True):
            token_ids = [next(encoded) for _ in of_document]
            lengths = np.array([len(ids) for ids in token_ids], np.uint32)
            joined = np.concatenate([np.empty(0, np.int32), *token_ids]).astype(ids_form.dtype)
            yield {"spans": _spans(document, of_document), "lengths": lengths, "ids": joined}

    config = tokens_config(scorer, segmenter) | {"model": model}
    return Precomputation(TOKENS, AttachmentSchema(config, forms), compute)


def precompute_vectors(
    scorer: Scorer,
    segmenter: Segmenter,
    model: str,
    bits: int | None = None,
    *,
    fast: Scorer | None = None,
    batch_tokens: int = TOKENS_EMBEDDED_AT_ONCE,
    on_batch: Callable[[], object] = lambda: None,
) -> Precomputation:
    """Return the precomputation of the vectors of all segments.

    An embedding has a vector per segment, late interaction one per token. A segment that exceeds
    the token budget is several chunks.

    model: see `precompute_tokens`. bits, fast: see `rounded_vector_scorer`. batch_tokens: the
    approximate number of tokens that are embedded in one call. on_batch: called before each of
    these calls, and before each document is split; an exception that it raises ends the
    computation. Raises InputError if the scorer computes no vectors.
    """
    encoder = bi_encoder(scorer)
    if encoder is None:
        raise InputError(f"{scorer.name} computes no vectors", wanted="an embedding model")
    quantized, token_budget = rounded_vector_scorer(encoder, bits, fast), encoder.token_budget("")
    empty = quantized.no_rows
    forms = {array: RowForm(a.dtype.name, a.shape[1:]) for array, a in empty.items()}
    forms["spans"] = SPANS

    def embed(token_ids: Sequence[Ids]) -> list[RoundedVectors]:
        order, packed = list[int](), list[RoundedVectors]()
        for batch in similar_lengths([len(ids) for ids in token_ids], batch_tokens):
            on_batch()
            order += batch
            packed += quantized.quantize([token_ids[i] for i in batch])
        return [packed[i] for i in np.argsort(order, kind="stable")]

    def split(document: Document) -> Sequence[Segment]:
        on_batch()
        return segmenter(document)

    def chunks_of(documents: Sequence[Document]) -> list[list[Encoded]]:
        segments = list(map(split, documents))
        flat = [segment for of_document in segments for segment in of_document]
        fitted = iter(split_long(flat, token_budget, encoder.encode, encoder.spans))
        return [[chunk for _ in of_document for chunk in next(fitted)] for of_document in segments]

    def compute(documents: Sequence[Document]) -> Iterator[Rows]:
        chunks = chunks_of(documents)
        packed = iter(embed([ids for of_document in chunks for _, ids in of_document]))
        for document, of_document in zip(documents, chunks, strict=True):
            of_chunks = [empty, *(next(packed) for _ in of_document)]
            rows = {array: np.concatenate([one[array] for one in of_chunks]) for array in empty}
            yield rows | {"spans": _spans(document, [segment for segment, _ in of_document])}

    def rounding(documents: Iterable[Document]) -> RoundingError:
        texts = (segment.text for d in documents for segment, _ in chunks_of([d])[0])
        return rounding_error(encoder, quantized, texts)

    config = vectors_config(encoder, segmenter, quantized.bits) | {"model": model}
    if encoder.checkpoint.pooling:
        config["pooling"] = encoder.checkpoint.pooling
    name = STATIC if is_static(encoder) else VECTORS  # of the first set, see vector_sets.py
    return Precomputation(name, AttachmentSchema(config, forms), compute, rounding)


def load_precomputations(
    writer: Writer, load: LoadScorer, leave_out: Collection[str] = ()
) -> list[Precomputation]:
    """Return the precomputations of an index's attachments, to complete them for new documents.

    Attachments of other programs are ignored. load: loads the scorer of a model by its name.
    leave_out: names of attachments that are not wanted. Raises InputError if an attachment was
    computed by another scorer than the loaded one.
    """
    where = str(writer.directory)
    return [
        _load_precomputation(name, schema.config, load, where)
        for name, schema in writer.attachments.items()
        if (name in (TOKENS, STATIC) or is_vectors(name))
        and name not in leave_out
        and is_own(schema.config)
    ]


def is_own(config: Mapping[str, Any]) -> bool:
    """Return whether an attachment is Birchbark's own, which states its segments and its model."""
    return {"segments", "model"} <= config.keys()


def _load_precomputation(
    name: str, config: Mapping[str, Any], load: LoadScorer, where: str
) -> Precomputation:
    segmenter, model = parse_segmenter(config["segments"]), config["model"]
    pooling = config.get("pooling")
    scorer = load(model, pooling=pooling)
    if name == TOKENS:
        precomputation = precompute_tokens(scorer, segmenter, model)
    else:
        fast, bits = None if pooling else fast_copy(model, load), config["bits"]
        computation = precompute_vectors(scorer, segmenter, model, bits, fast=fast)
        precomputation = replace(computation, name=name)
    if precomputation.schema.config != config and name != STATIC:  # which are made anew, quickly
        raise InputError(
            f"the {name} of this index were made by a model or version other than {model}",
            where=where,
            remedy="birchbark index attach replaces them",
        )
    return precomputation


def tokens_config(scorer: Scorer, segmenter: Segmenter) -> dict[str, Any]:
    """Return all settings that stored token ids depend on."""
    return {"encoding": scorer.encoding, **_segmenter_config(segmenter)}


def vectors_config(scorer: BiEncoderScorer, segmenter: Segmenter, bits: int) -> dict[str, Any]:
    """Return all settings that stored vectors depend on."""
    return {"fingerprint": scorer.outputs_fingerprint, **_segmenter_config(segmenter), "bits": bits}


def has_config(schema: AttachmentSchema, config: Mapping[str, Any]) -> bool:
    """Return whether an attachment was made with `config`, however its model is loaded."""
    return {key: value for key, value in schema.config.items() if key not in LOADED_BY} == config


def shown_name(name: str) -> str:
    """Return what an attachment is called in messages."""
    return "static vectors" if name == STATIC else name


def is_vectors(name: str) -> bool:
    """Return whether an attachment of this name is a set of vectors (vector_sets.py)."""
    return bool(_VECTOR_SET.fullmatch(name))


def _segmenter_config(segmenter: Segmenter) -> dict[str, str]:
    name = segmenter_name(segmenter)
    if name is None:
        raise InputError("tokens and vectors can only be stored for a segmenter that has a name")
    return {"segments": name, "rules": splitter_version(segmenter)}


def _spans(document: Document, segments: Sequence[Segment]) -> NDArray[np.int32]:
    """Return the rows (n, 3) of SPANS for a document's n segments."""
    spans = np.empty((len(segments), 3), np.int32)
    contents = document.contents  # joins the fields each time
    for row, segment in zip(spans, segments, strict=True):
        prefix = len(segment.text) - (segment.end - segment.start)
        restored = contents[:prefix] + contents[segment.start : segment.end]
        row[:] = (prefix, segment.start, segment.end) if restored == segment.text else -1
    return spans
