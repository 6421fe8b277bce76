"""Which rows are attached to documents in the tests of attachments?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from birchbark.index.attachment_reader import Attachment
from birchbark.index.attachment_schema import AttachmentSchema, RowForm, Rows
from birchbark.index.index import Index
from birchbark.records import Document

ARRAYS = {
    "spans": RowForm("int32", (2,)),
    "lengths": RowForm("int32"),
    "bytes": RowForm("uint8"),
    "halves": RowForm("float16", (3,)),
}
SCHEMA = AttachmentSchema({"made of": "words", "times": 1}, ARRAYS)
TWICE = replace(SCHEMA, config={"made of": "words", "times": 2})


def words_of(times: int = 1) -> Callable[[Sequence[Document]], list[Rows]]:
    """Return a function that computes the span, length · `times`, bytes and halves of each word."""

    def compute(documents: Sequence[Document]) -> list[Rows]:
        return [words_in(document, times) for document in documents]

    return compute


def words_in(document: Document, times: int = 1) -> Rows:
    words = document.text.split()
    ends = np.cumsum([len(word) + 1 for word in words]).astype(np.int32)
    lengths = np.array(list(map(len, words)), np.int32)
    return {
        "bytes": np.frombuffer("".join(words).encode(), np.uint8),
        "halves": np.repeat(lengths[:, None] / 2, 3, axis=1).astype(np.float16),
        "lengths": lengths * np.int32(times),
        "spans": np.stack([ends - 1 - lengths, ends - 1], axis=1),
    }


def attachment(where: Path | Index, name: str = "words") -> Attachment:
    opened = (where if isinstance(where, Index) else Index(where)).attachment(name)
    assert opened is not None
    return opened


def assert_rows(actual: Rows | None, expected: Rows) -> None:
    """Assert that arrays and dtypes are equal."""
    assert actual is not None
    assert actual.keys() == expected.keys()
    for name, values in expected.items():
        assert actual[name].dtype == values.dtype
        assert actual[name].tolist() == values.tolist()


def refuse(documents: Sequence[Document]) -> Iterable[Rows]:
    raise AssertionError(f"asked for {[d.doc_id for d in documents]}")
