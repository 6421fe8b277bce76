"""What is computed of an index's documents once, and kept beside them? Token ids, and vectors.

Kept token ids spare splitting and tokenising, and change no score. Kept vectors spare BERT; they
are rounded to 16 or 8 bits, and so are the vectors of documents of which none are kept yet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from birchbark.errors import InputError
from birchbark.index.attachment_reader import Attachment
from birchbark.index.attachment_schema import AttachmentSchema, RowForm, Rows
from birchbark.index.attachment_writer import Compute
from birchbark.index.writer import IndexWriter
from birchbark.records import Document, Float32s, Ids, Segment
from birchbark.retrieve.engine import DocumentStore
from birchbark.score.embedding import EmbeddingScorer
from birchbark.score.remembering import Remembering
from birchbark.score.rounding import RoundedScorer, pack
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

    config = {"encoding": scorer.encoding, **_cut(segmenter), "model": model}
    return Keeping(TOKENS, AttachmentSchema(config, forms), compute)


def vectors(scorer: Scorer, segmenter: Segmenter, model: str, bits: int = 16) -> Keeping:
    """Vectors of all segments, over-long ones in chunks; InputError unless `scorer` embeds."""
    embedding = _embedding(scorer)
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

    config = {"fingerprint": embedding.fingerprint, **_cut(segmenter), "bits": bits, "model": model}
    return Keeping(VECTORS, AttachmentSchema(config, forms), compute)


def complete(writer: IndexWriter, load: Callable[[str], Scorer], advance: Advance) -> None:
    """Compute what is kept of an index's documents for those that were added since.

    load: gives the scorer of a model by its name. Raises InputError if that is not the scorer that
    the rest was computed by.
    """
    for name in writer.incomplete():
        config = writer.attachments[name].config
        segmenter, model = parse_segmenter(config["segments"]), config["model"]
        scorer = load(model)
        if name == TOKENS:
            keeping = tokens(scorer, segmenter, model)
        else:
            keeping = vectors(scorer, segmenter, model, config["bits"])
        if keeping.schema.config != config:
            raise InputError(
                f"{name} of this index were made by another model, or other rules, than {model} is",
                where=str(writer.directory),
                remedy="birchbark index attach makes them anew",
            )
        keeping.attach(writer, advance)


@runtime_checkable
class Keeps(Protocol):
    """A store that may keep something of its documents."""

    def attachment(self, name: str) -> Attachment | None:
        """The attachment of this name, if there is one."""
        ...


class Kept:
    """What a store keeps that fits a scorer and a segmenter; nothing, where it does not."""

    def __init__(self, store: DocumentStore, scorer: Scorer, segmenter: Segmenter) -> None:
        self._tokens = self._vectors = None
        self.scorer, embedding = scorer, _embedding(scorer)
        if isinstance(store, Keeps) and spell(segmenter):
            wanted = tokens(scorer, segmenter, "").schema.config
            self._tokens = _fitting(store.attachment(TOKENS), wanted)
        if isinstance(store, Keeps) and spell(segmenter) and embedding:
            found = store.attachment(VECTORS)
            bits = int(found.schema.config["bits"]) if found else 16
            wanted = vectors(embedding, segmenter, "", bits).schema.config
            self._vectors = _fitting(found, wanted)
            if self._vectors:
                self.scorer = self._rounded = RoundedScorer(embedding, bits)

    def pieces(self, doc_ids: Sequence[str], room: int) -> list[tuple[Ids, ...] | None]:
        """Token ids of each document's segments; None where they are not kept, or do not fit."""
        if self._tokens is None:
            return [None] * len(doc_ids)
        return [
            None if rows is None or self._cuts(rows, room) else _split(rows)
            for rows in self._tokens.rows(doc_ids)
        ]

    def segments(self, documents: Sequence[Document], room: int) -> list[list[Segment] | None]:
        """The segments that `pieces` or `scores` are of; None where they are not kept."""
        attachment = self._vectors or self._tokens
        if attachment is None:
            return [None] * len(documents)
        kept = attachment.rows([document.doc_id for document in documents])
        return [
            None if rows is None or self._cuts(rows, room) else _segments(document, rows["spans"])
            for document, rows in zip(documents, kept, strict=True)
        ]

    def _cuts(self, rows: Rows, room: int) -> bool:
        """Whether segments do not fit as they are kept, or cannot be told by their places."""
        too_long = "lengths" in rows and rows["lengths"].max(initial=0) > room
        return bool(too_long or (rows["spans"] < 0).any())

    def scores(self, query: str, doc_ids: Sequence[str]) -> list[Float32s | None]:
        """Scores of each document's segments by kept vectors; None where there are none."""
        if self._vectors is None:
            return [None] * len(doc_ids)
        found = self._vectors.rows(doc_ids)
        there = [rows for rows in found if rows is not None]
        if not there:
            return [None] * len(doc_ids)
        packed = {name: np.concatenate([rows[name] for rows in there]) for name in there[0]}
        ends = np.cumsum([len(rows["vectors"]) for rows in there])
        own = iter(np.split(self._rounded.cosines(query, packed), ends[:-1]))
        return [None if rows is None else next(own) for rows in found]


def _embedding(scorer: Scorer) -> EmbeddingScorer | None:
    """The scorer that makes vectors, behind one that remembers scores."""
    scorer = scorer.scorer if isinstance(scorer, Remembering) else scorer
    return scorer if isinstance(scorer, EmbeddingScorer) else None


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


def _segments(document: Document, spans: NDArray[np.int32]) -> list[Segment]:
    contents = document.contents
    return [
        Segment(document.doc_id, start, end, contents[:front] + contents[start:end])
        for front, start, end in spans.tolist()
    ]


def _fitting(found: Attachment | None, wanted: Mapping[str, Any]) -> Attachment | None:
    """`found`, if it was made as is wanted, whatever its model is called."""
    if found and {**found.schema.config, "model": ""} == {**wanted, "model": ""}:
        return found
    return None


def _split(rows: Rows) -> tuple[Ids, ...]:
    ids: NDArray[np.int32] = rows["ids"].astype(np.int32)
    ends = np.cumsum(rows["lengths"]).tolist()
    return tuple(ids[begin:end] for begin, end in zip([0, *ends], ends, strict=False))
