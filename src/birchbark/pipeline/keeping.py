"""What is computed of an index's documents once, and kept beside them? Token ids, and vectors.

Kept token ids spare splitting and tokenising, and change no score. Kept vectors spare BERT; they
are rounded to 16 or 8 bits, and so are the vectors of documents of which none are kept yet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from birchbark.errors import InputError
from birchbark.index.attachment_schema import AttachmentSchema, RowForm, Rows
from birchbark.index.attachment_writer import Compute
from birchbark.index.reader import Index
from birchbark.index.writer import IndexWriter
from birchbark.records import Document, Segment
from birchbark.remember.remembering import beneath
from birchbark.retrieve.graphs import build_graphs, vectors_without
from birchbark.score.embedding import EmbeddingScorer
from birchbark.score.rounding import pack, unpack
from birchbark.score.scorer import Scorer
from birchbark.segment.fit import fit
from birchbark.segment.named import Segmenter, parse_segmenter, rules, spell

TOKENS, VECTORS = "tokens", "vectors"
SMALL = 1 << 16  # vocabularies up to this size have ids of 16 bits

SPANS = RowForm("int32", (3,))  # characters in front, start and end; −1 where that is not all

Advance = Callable[[int], object]


@dataclass(frozen=True, slots=True)
class Keeping:
    """Something to keep: the attachment's name and schema, and the function that computes it."""

    name: str
    schema: AttachmentSchema
    compute: Compute

    def attach(self, writer: IndexWriter, advance: Advance = lambda documents: None) -> None:
        """Compute what the index lacks of it; what was made otherwise is replaced."""
        writer.attach(self.name, self.schema, self.compute, advance)


def tokens(scorer: Scorer, segmenter: Segmenter, model: str) -> Keeping:
    """Token ids of all segments. model: the name by which `complete` finds the scorer again."""
    ids_form = RowForm("uint16" if scorer.vocabulary <= SMALL else "uint32")
    forms = {"spans": SPANS, "lengths": RowForm("uint32"), "ids": ids_form}

    def compute(documents: Sequence[Document]) -> Iterator[Rows]:
        segments = [segmenter(document) for document in documents]
        pieces = iter(scorer.encode([s.text for some in segments for s in some]))
        for document, some in zip(documents, segments, strict=True):
            own = [next(pieces) for _ in some]
            lengths = np.array([len(piece) for piece in own], np.uint32)
            ids = np.concatenate([np.empty(0, np.int32), *own]).astype(ids_form.dtype)
            yield {"spans": _spans(document, some), "lengths": lengths, "ids": ids}

    config = tokens_config(scorer, segmenter) | {"model": model}
    return Keeping(TOKENS, AttachmentSchema(config, forms), compute)


def vectors(scorer: Scorer, segmenter: Segmenter, model: str, bits: int = 16) -> Keeping:
    """Vectors of all segments, over-long ones in chunks; InputError unless `scorer` embeds."""
    embedding = embedding_of(scorer)
    if embedding is None:
        raise InputError(f"{scorer.name} has no vectors to keep", wanted="an embedding model")
    room = embedding.room("")
    empty = pack(embedding.embed([]), bits)
    forms = {name: RowForm(a.dtype.name, a.shape[1:]) for name, a in empty.items()}
    forms["spans"] = SPANS

    def compute(documents: Sequence[Document]) -> Iterator[Rows]:
        segments = [segmenter(document) for document in documents]
        whole = [segment for some in segments for segment in some]
        fitted = iter(fit(whole, room, embedding.encode, embedding.spans))
        chunks = [[chunk for _ in some for chunk in next(fitted)] for some in segments]
        packed = pack(embedding.embed([ids for some in chunks for _, ids in some]), bits)
        begin = 0
        for document, some in zip(documents, chunks, strict=True):
            rows = {name: values[begin : begin + len(some)] for name, values in packed.items()}
            yield rows | {"spans": _spans(document, [segment for segment, _ in some])}
            begin += len(some)

    config = vectors_config(embedding, segmenter, bits) | {"model": model}
    return Keeping(VECTORS, AttachmentSchema(config, forms), compute)


def kept_by(writer: IndexWriter, load: Callable[[str], Scorer]) -> list[Keeping]:
    """What an index keeps of its documents, to be computed of those that will be added.

    Attachments that others made are passed over. load: gives the scorer of a model by its name.
    Raises InputError if that is not the scorer that the rest was computed by.
    """
    own = {n: s.config for n, s in writer.attachments.items() if n in (TOKENS, VECTORS)}
    return [_kept(name, config, load, str(writer.directory)) for name, config in own.items()]


def _kept(
    name: str, config: Mapping[str, Any], load: Callable[[str], Scorer], where: str
) -> Keeping:
    segmenter, model = parse_segmenter(config["segments"]), config["model"]
    scorer = load(model)
    if name == TOKENS:
        keeping = tokens(scorer, segmenter, model)
    else:
        keeping = vectors(scorer, segmenter, model, config["bits"])
    if keeping.schema.config != config:
        raise InputError(
            f"{name} of this index were made by another model, or other rules, than {model} is",
            where=where,
            remedy="birchbark index attach makes them anew",
        )
    return keeping


def complete(
    writer: IndexWriter, kept: Sequence[Keeping], advance: Advance = lambda documents: None
) -> None:
    """Compute what is kept of the documents that lack it, as of the last commit."""
    missing = writer.incomplete()
    for keeping in kept:
        if keeping.name in missing:
            keeping.attach(writer, advance)


def without_graphs(index: Index) -> int:
    """Vectors of the index that are too many to be looked at one by one, and have no graph."""
    found = index.attachment(VECTORS)
    return vectors_without(found) if found else 0


def make_graphs(writer: IndexWriter, advance: Callable[[int], object]) -> None:
    """Make those graphs (retrieve/graphs.py). advance: called with numbers of vectors.

    Raises MissingPackageError without faiss.
    """
    index = Index(writer.directory)
    if found := index.attachment(VECTORS):
        build_graphs(index, found, unpack, advance)


def tokens_config(scorer: Scorer, segmenter: Segmenter) -> dict[str, Any]:
    """All that kept token ids depend on."""
    return {"encoding": scorer.encoding, **_cut(segmenter)}


def vectors_config(scorer: EmbeddingScorer, segmenter: Segmenter, bits: int) -> dict[str, Any]:
    """All that kept vectors depend on."""
    return {"fingerprint": scorer.fingerprint, **_cut(segmenter), "bits": bits}


def embedding_of(scorer: Scorer) -> EmbeddingScorer | None:
    """The scorer that makes vectors, behind one that remembers scores."""
    computing = beneath(scorer)
    return computing if isinstance(computing, EmbeddingScorer) else None


def _cut(segmenter: Segmenter) -> dict[str, str]:
    word = spell(segmenter)
    if word is None:
        raise InputError("nothing can be kept of segments by a rule that has no name")
    return {"segments": word, "rules": rules(segmenter)}


def _spans(document: Document, segments: Sequence[Segment]) -> NDArray[np.int32]:
    """A row each: how many of the first characters stand in front, and where the segment is."""
    spans = np.empty((len(segments), 3), np.int32)
    for row, segment in zip(spans, segments, strict=True):
        front = len(segment.text) - (segment.end - segment.start)
        whole = document.contents[:front] + document.contents[segment.start : segment.end]
        row[:] = (front, segment.start, segment.end) if whole == segment.text else -1
    return spans
