"""How are the pairs of a data set tokenised once, and mapped from disk afterwards?

The folder of a data set is named after a hash of everything that its contents depend on: the files,
how they are read and split, and the tokeniser. Equal texts are stored, and tokenised, once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from birchbark.artifact import json_checksum, new_directory, read_json, write_json
from birchbark.checkpoint.tokenizer import CheckpointTokenizer
from birchbark.collection.parsing.intake import Intake
from birchbark.errors import ArtifactError, InputError
from birchbark.pairs.blocks import in_blocks
from birchbark.pairs.hash_table import HashTable, hashes_of
from birchbark.pairs.pair_table import PairTable
from birchbark.pairs.rows_file import Rows, RowsWriter, Texts, as_bytes, mapped
from birchbark.records import Pair

VERSION = 3
MANIFEST = "pairs.json"
BLOCK = 8192  # pairs that are tokenised together
UINT16_VOCABULARY = 1 << 16
COLUMNS = {"query": "<i4", "text": "<i4", "starts": "<i8", "grades": "<f4"}


@dataclass(frozen=True, slots=True)
class PreparedPairs:
    """Pairs with the token ids of their queries and texts, mapped from disk.

    folder: where they are. notes: observation → how often it occurred while the pairs were read.
    skipped: the number of bad records that were skipped.
    """

    folder: Path
    table: PairTable
    query_ids: Rows
    text_ids: Rows
    notes: Mapping[str, int]
    skipped: int


def folder_name(settings: Mapping[str, Any], tokenizer: CheckpointTokenizer) -> str:
    """Return the name of the folder of pairs that were read with `settings`."""
    key = {"version": VERSION, "tokenizer": tokenizer.fingerprint, **settings}
    return json_checksum(key)[:16]


def open_pairs(folder: Path) -> PreparedPairs:
    """Map the pairs in `folder`; ArtifactError if it is damaged."""
    try:
        manifest = read_json(folder / MANIFEST, "pairs")
        for name, size in manifest["bytes"].items():
            if not (folder / name).exists() or (folder / name).stat().st_size != size:
                raise ArtifactError("missing, too short or too long", where=str(folder / name))
        columns = {name: mapped(folder / name, dtype) for name, dtype in COLUMNS.items()}
        queries, texts = Texts(folder / "queries"), Texts(folder / "texts")
        query_ids, text_ids = (
            Rows(folder / name, manifest["dtype"]) for name in ("query_ids", "text_ids")
        )
        table = PairTable(queries, texts, **columns, doc_ids=Texts(folder / "doc_ids"))
    except (ArtifactError, InputError, KeyError, TypeError) as damage:
        where = getattr(damage, "where", None) or str(folder / MANIFEST)
        raise ArtifactError(
            "damaged token ids", where=where, remedy=f"delete {folder}; they are computed again"
        ) from damage
    return PreparedPairs(folder, table, query_ids, text_ids, manifest["notes"], manifest["skipped"])


def write_pairs(
    pairs: Iterable[Pair],
    folder: Path,
    tokenizer: CheckpointTokenizer,
    intake: Intake,
    *,
    documents: bool = False,
) -> None:
    """Write pairs and their token ids to the new folder `folder`, atomically.

    intake: that of the pairs, whose notes are stored as well. documents: whether all pairs of one
    query and document, even if they are not adjacent, are merged into one pair of several passages
    with the highest of their grades. If another process has written the folder meanwhile, that one
    stays.
    """
    try:
        with new_directory(folder) as scratch:
            _write(pairs, scratch, tokenizer, intake, documents=documents)
    except InputError:
        if not folder.exists():
            raise


def _write(
    pairs: Iterable[Pair],
    folder: Path,
    tokenizer: CheckpointTokenizer,
    intake: Intake,
    *,
    documents: bool,
) -> None:
    dtype = "<u2" if tokenizer.size <= UINT16_VOCABULARY else "<i4"
    with (
        closing(_DistinctTexts(folder, "queries", "query_ids", tokenizer, dtype)) as queries,
        closing(_DistinctTexts(folder, "texts", "text_ids", tokenizer, dtype)) as texts,
        closing(RowsWriter(folder / "doc_ids", "uint8")) as doc_ids,
    ):
        columns = _write_columns(pairs, queries, texts, doc_ids, documents=documents)
    for name, form in COLUMNS.items():
        columns[name].astype(form).tofile(folder / name)
    manifest = {
        "dtype": dtype,
        "bytes": {path.name: path.stat().st_size for path in folder.iterdir()},
        "notes": dict(intake.notes),
        "skipped": len(intake.skipped),
    }
    write_json(folder / MANIFEST, manifest)


def _write_columns(
    pairs: Iterable[Pair],
    queries: _DistinctTexts,
    texts: _DistinctTexts,
    doc_ids: RowsWriter,
    *,
    documents: bool,
) -> dict[str, NDArray[Any]]:
    """Write the texts of pairs; return the arrays of their PairTable by name."""
    known = HashTable(width=2)  # the rows of queries and documents
    query_of, text_of, grade_of, row_of = ([np.zeros(0, np.int32)] for _ in range(4))
    rows = 0
    for block in in_blocks(pairs, BLOCK):
        numbers = queries.numbers([pair.query for pair in block])
        if documents:
            keys = [f"{number} {p.doc_id}" for number, p in zip(numbers, block, strict=True)]
            row = known.numbers(hashes_of(keys, width=2))
        else:
            row = np.arange(rows, rows + len(block), dtype=np.int32)
        first = np.unique(row, return_index=True)[1]
        new = first[row[first] >= rows]  # the first pairs of new rows, in order
        rows += len(new)
        query_of.append(numbers[new])
        doc_ids.extend([as_bytes(block[i].doc_id) for i in new])
        text_of.append(texts.numbers([pair.text for pair in block]))
        grade_of.append(np.array([pair.relevance for pair in block], np.int32))
        row_of.append(row)
    query, text, grade, row = map(np.concatenate, (query_of, text_of, grade_of, row_of))
    grades = np.zeros(len(query), np.float32)
    np.maximum.at(grades, row, grade.astype(np.float32))
    return {
        "query": query,
        "text": text[np.argsort(row, kind="stable")] if documents else text,
        "starts": np.concatenate([[0], np.cumsum(np.bincount(row, minlength=len(query)))]),
        "grades": grades,
    }


class _DistinctTexts:
    """Writes texts, and their token ids, the first time that they occur."""

    def __init__(
        self, folder: Path, name: str, ids_name: str, tokenizer: CheckpointTokenizer, dtype: str
    ) -> None:
        self._table, self._tokenizer = HashTable(width=2), tokenizer
        self._texts = RowsWriter(folder / name, "uint8")
        self._ids = RowsWriter(folder / ids_name, dtype)

    def numbers(self, texts: Sequence[str]) -> NDArray[np.int32]:
        """Return the number of each text, (n,), and write the new ones."""
        known = len(self._table)
        numbers = self._table.numbers(hashes_of(texts, width=2))
        first = np.unique(numbers, return_index=True)[1]  # in the order of the numbers
        new = [texts[i] for i in first if numbers[i] >= known]
        self._texts.extend(list(map(as_bytes, new)))
        self._ids.extend(self._tokenizer.encode(new))
        return numbers

    def close(self) -> None:
        """Complete the files."""
        with closing(self._ids):
            self._texts.close()
