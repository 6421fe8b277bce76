"""How do tests prepare pairs? In a temporary folder, with words as tokens."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from birchbark.checkpoint.checkpoint import open_any_head
from birchbark.checkpoint.tokenizer import CheckpointTokenizer
from birchbark.collection.parsing.intake import Intake
from birchbark.pairs.pair_table import PairTable
from birchbark.records import Pair
from birchbark.train.pair_inputs import PairInputs
from birchbark.train.prepared_pairs import PreparedPairs, open_pairs, write_pairs
from conftest import write_bert


def prepared(
    pairs: Iterable[Pair], tokenizer: CheckpointTokenizer, *, documents: bool = False
) -> PreparedPairs:
    """Return the pairs as a training maps them; their files are gone afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        write_pairs(pairs, Path(folder) / "p", tokenizer, Intake(), documents=documents)
        return open_pairs(Path(folder) / "p")


def table_of(pairs: Iterable[Pair], *, documents: bool = False) -> PairTable:
    """Return the table of pairs."""
    return prepared(pairs, _tokenizer(), documents=documents).table


def inputs_of(
    pairs: Iterable[Pair], tokenizer: CheckpointTokenizer, *lengths: Any, **options: Any
) -> PairInputs:
    """Return the inputs of pairs; see `PairInputs.of`."""
    return PairInputs.of(prepared(pairs, tokenizer), tokenizer, *lengths, **options)


@cache
def _tokenizer() -> CheckpointTokenizer:
    with tempfile.TemporaryDirectory() as folder:
        return CheckpointTokenizer(open_any_head(write_bert(Path(folder) / "bert")))
