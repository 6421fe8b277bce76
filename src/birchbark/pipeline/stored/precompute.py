"""Which data about an index's documents are computed once and stored? Token ids and vectors.

Stored token ids save splitting and tokenising, and change no score. Stored vectors save running
BERT; they are rounded to 16 or 8 bits. For documents without stored vectors, vectors are computed
when they are needed and rounded in the same way, so that scores are comparable.

Documents longer than WHOLE_DOCUMENT are stored without vectors: computing them would take minutes,
and comparing them with each query longer than a search may take. Such a document is complete with
zero rows, and its segments are chosen when it is searched (reading/stretches.py).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from birchbark import defaults
from birchbark.errors import InputError
from birchbark.index.attachment_schema import AttachmentSchema, RowForm, Rows
from birchbark.index.attachment_writer import AttachmentJob
from birchbark.index.sharded_writer import Writer
from birchbark.records import Document, Ids, Segment
from birchbark.score.embedding import EmbeddingScorer
from birchbark.score.scorer import Scorer
from birchbark.score.vector_quantization import QuantizedVectors, quantize_vectors
from birchbark.score_cache.cached_scorer import uncached
from birchbark.segment.by_name import Segmenter, parse_segmenter, segmenter_name, splitter_version
from birchbark.segment.split_long import split_long

TOKENS, VECTORS = "tokens", "vectors"
WHOLE_DOCUMENT = 200_000  # characters; longer documents have no vectors
_VECTOR_SET = re.compile(rf"{VECTORS}(-[1-9][0-9]*)?")
BATCH_TOKENS = 8_192  # of segments that are embedded in one call, approximately
UINT16_VOCABULARY = 1 << 16  # ids of vocabularies up to this size fit into 16 bits

# Per segment: length of the prefix (a title) before the segment's own text, start, end; all −1 if
# the segment's text cannot be restored from these three.
SPANS = RowForm("int32", (3,))


@dataclass(frozen=True, slots=True)
class Precomputation(AttachmentJob):
    """An attachment that is computed from the segments of documents."""

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
    bits: int = defaults.VECTOR_BITS,
    *,
    name: str = VECTORS,
    batch_tokens: int = BATCH_TOKENS,
    on_batch: Callable[[], object] = lambda: None,
) -> Precomputation:
    """Return the precomputation of the vectors of all segments.

    A segment that exceeds the token budget has a vector per chunk; a document longer than
    WHOLE_DOCUMENT has no vectors. For `model` see `precompute_tokens`. bits: 16 or 8 per dimension.
    name: that of the set of vectors (vector_sets.py). batch_tokens: approximate number of tokens
    that are embedded in one call. on_batch: called before each of these calls, and before each
    document is split; an exception that it raises ends the computation. Raises InputError if the
    scorer computes no vectors.
    """
    embedding = embedding_scorer(scorer)
    if embedding is None:
        raise InputError(f"{scorer.name} computes no vectors", wanted="an embedding model")
    token_budget = embedding.token_budget("")
    empty = quantize_vectors(embedding.embed([]), bits)
    forms = {array: RowForm(a.dtype.name, a.shape[1:]) for array, a in empty.items()}
    forms["spans"] = SPANS

    def embed(token_ids: Sequence[Ids]) -> QuantizedVectors:
        lengths = [len(ids) for ids in token_ids]
        order = np.argsort(lengths, kind="stable")  # inputs of equal length run together
        packed = [empty]
        for begin, end in batches_of_tokens([lengths[i] for i in order], batch_tokens):
            on_batch()
            # the vectors are on disk soon: others need the place in the scorer's cache more
            vectors = embedding.embed([token_ids[i] for i in order[begin:end]], keep=False)
            packed.append(quantize_vectors(vectors, bits))
        restore = np.argsort(order, kind="stable")
        return {array: np.concatenate([one[array] for one in packed])[restore] for array in empty}

    def split(document: Document) -> Sequence[Segment]:
        on_batch()
        return segmenter(document) if len(document.contents) <= WHOLE_DOCUMENT else []

    def compute(documents: Sequence[Document]) -> Iterator[Rows]:
        segments = list(map(split, documents))
        flat = [segment for of_document in segments for segment in of_document]
        fitted = iter(split_long(flat, token_budget, embedding.encode, embedding.spans))
        chunks = [
            [chunk for _ in of_document for chunk in next(fitted)] for of_document in segments
        ]
        packed = embed([ids for of_document in chunks for _, ids in of_document])
        begin = 0
        for document, of_document in zip(documents, chunks, strict=True):
            end = begin + len(of_document)
            rows = {array: values[begin:end] for array, values in packed.items()}
            yield rows | {"spans": _spans(document, [segment for segment, _ in of_document])}
            begin = end

    config = vectors_config(embedding, segmenter, bits) | {"model": model}
    return Precomputation(name, AttachmentSchema(config, forms), compute)


def batches_of_tokens(lengths: Sequence[int], max_tokens: int) -> Iterator[tuple[int, int]]:
    """Yield the (begin, end) of consecutive texts with at most `max_tokens` tokens, or one text.

    lengths: the number of tokens of each text.
    """
    begin, tokens = 0, 0
    for position, length in enumerate(lengths):
        if position > begin and tokens + length > max_tokens:
            yield begin, position
            begin, tokens = position, 0
        tokens += length
    if begin < len(lengths):
        yield begin, len(lengths)


def load_precomputations(
    writer: Writer, load: Callable[[str], Scorer], leave_out: Collection[str] = ()
) -> list[Precomputation]:
    """Return the precomputations of an index's attachments, to complete them for new documents.

    Attachments of other programs are ignored. load: returns the scorer of a model by its name.
    leave_out: names of attachments that are not wanted. Raises InputError if an attachment was
    computed by another scorer than the loaded one.
    """
    where = str(writer.directory)
    return [
        _load_precomputation(name, schema.config, load, where)
        for name, schema in writer.attachments.items()
        if (name == TOKENS or is_vectors(name)) and name not in leave_out
    ]


def _load_precomputation(
    name: str, config: Mapping[str, Any], load: Callable[[str], Scorer], where: str
) -> Precomputation:
    segmenter, model = parse_segmenter(config["segments"]), config["model"]
    scorer = load(model)
    if name == TOKENS:
        precomputation = precompute_tokens(scorer, segmenter, model)
    else:
        precomputation = precompute_vectors(scorer, segmenter, model, config["bits"], name=name)
    if precomputation.schema.config != config:
        raise InputError(
            f"the {name} of this index were made by a model or version other than {model}",
            where=where,
            remedy="birchbark index attach replaces them",
        )
    return precomputation


def tokens_config(scorer: Scorer, segmenter: Segmenter) -> dict[str, Any]:
    """Return all settings that stored token ids depend on."""
    return {"encoding": scorer.encoding, **_segmenter_config(segmenter)}


def vectors_config(scorer: EmbeddingScorer, segmenter: Segmenter, bits: int) -> dict[str, Any]:
    """Return all settings that stored vectors depend on."""
    return {"fingerprint": scorer.fingerprint, **_segmenter_config(segmenter), "bits": bits}


def has_config(schema: AttachmentSchema, config: Mapping[str, Any]) -> bool:
    """Return whether an attachment was made with `config`, whatever its model's name is."""
    return {key: value for key, value in schema.config.items() if key != "model"} == config


def is_vectors(name: str) -> bool:
    """Return whether an attachment of this name is a set of vectors (vector_sets.py)."""
    return bool(_VECTOR_SET.fullmatch(name))


def embedding_scorer(scorer: Scorer) -> EmbeddingScorer | None:
    """Return `scorer` without its score cache if it is an embedding scorer; otherwise None."""
    computing = uncached(scorer)
    return computing if isinstance(computing, EmbeddingScorer) else None


def _segmenter_config(segmenter: Segmenter) -> dict[str, str]:
    name = segmenter_name(segmenter)
    if name is None:
        raise InputError("tokens and vectors can only be stored for a segmenter that has a name")
    return {"segments": name, "rules": splitter_version(segmenter)}


def _spans(document: Document, segments: Sequence[Segment]) -> NDArray[np.int32]:
    """Return the rows (n, 3) of SPANS for a document's n segments."""
    spans = np.empty((len(segments), 3), np.int32)
    for row, segment in zip(spans, segments, strict=True):
        prefix = len(segment.text) - (segment.end - segment.start)
        restored = document.contents[:prefix] + document.contents[segment.start : segment.end]
        row[:] = (prefix, segment.start, segment.end) if restored == segment.text else -1
    return spans
