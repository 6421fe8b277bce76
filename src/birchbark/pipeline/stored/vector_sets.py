"""Which sets of vectors does an index have, and which set fits a model and a segmenter?

A set holds the vectors of all documents' segments by one model: one per segment by an embedding
model, which find candidates, too, or one per token by late interaction. The first set is the
attachment `vectors`, further ones are `vectors-2`, `vectors-3`, … Vectors of a static embedding are
the attachment `static`. They stand in for vectors of an embedding where these are missing, and are
none of the sets that users name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import count

from birchbark import defaults
from birchbark.index.attachment_schema import AttachmentSchema
from birchbark.index.index import Index
from birchbark.pipeline.stored.precompute import (
    LOADED_BY,
    STATIC,
    VECTORS,
    Precomputation,
    has_config,
    is_vectors,
    vectors_config,
)
from birchbark.pipeline.stored.vector_scorer import is_static
from birchbark.score.bert_scorer import BiEncoderScorer
from birchbark.score.token_vectors import PER_SEGMENT
from birchbark.segment.by_name import Segmenter, segmenter_name

Attachments = Mapping[str, AttachmentSchema]


def vector_sets(attachments: Attachments) -> list[str]:
    """Return the names of the sets of vectors among an index's attachments, oldest first."""
    return sorted(filter(is_vectors, attachments), key=_number)


def has_token_vectors(schema: AttachmentSchema) -> bool:
    """Return whether a set has a vector per token, and not per segment."""
    return PER_SEGMENT in schema.arrays


def default_bits(schema: AttachmentSchema) -> int:
    """Return the bits per number in which a set of this kind is stored by default."""
    return defaults.TOKEN_VECTOR_BITS if has_token_vectors(schema) else defaults.VECTOR_BITS


def searched_sets(attachments: Attachments) -> list[str]:
    """Return the names of the sets that find candidates: those with a vector per segment."""
    return [name for name in vector_sets(attachments) if not has_token_vectors(attachments[name])]


def fitting_set(
    attachments: Attachments, scorer: BiEncoderScorer, segmenter: Segmenter
) -> str | None:
    """Return the name of the set that this model made of these segments; None if there is none."""
    if not segmenter_name(segmenter):
        return None
    static = {STATIC} & attachments.keys()
    for name in static if is_static(scorer) else vector_sets(attachments):
        schema = attachments[name]
        bits = schema.config.get("bits", 0)  # not in vectors of other programs
        if has_config(schema, vectors_config(scorer, segmenter, bits)):
            return name
    return None


def count_missing(index: Index, name: str) -> int:
    """Return how many documents' vectors of a set have not been computed yet."""
    vectors = index.attachment(name)
    if vectors is None:
        return len(index)
    return sum(len(vectors.missing(part)) for part in range(len(index.parts)))


def in_own_set(computation: Precomputation, attachments: Attachments) -> Precomputation:
    """Return a computation of vectors under the name that its set has, or gets, in an index.

    It replaces a set of the same segments by the same model, even if their version or
    number of bits differs. Computations of other attachments are returned as they are.
    """
    if not is_vectors(computation.name):
        return computation
    config = computation.schema.config
    for name in vector_sets(attachments):
        stored = attachments[name].config
        if stored.get("segments") == config["segments"] and (
            all(stored.get(key) == config.get(key) for key in LOADED_BY)
            or stored.get("fingerprint") == config["fingerprint"]
        ):
            return replace(computation, name=name)
    names = (VECTORS if number == 1 else f"{VECTORS}-{number}" for number in count(1))
    return replace(computation, name=next(name for name in names if name not in attachments))


def _number(name: str) -> int:
    return int(name.partition("-")[2] or 1)
