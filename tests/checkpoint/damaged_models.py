"""How are damaged models opened and changed by tests?"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from birchbark.checkpoint.checkpoint import Checkpoint
from birchbark.checkpoint.heads import Pooling
from birchbark.checkpoint.tokenizer import CheckpointTokenizer
from birchbark.score.load_scorer import load_scorer
from birchbark.score.session import OnnxSession

Bert = Callable[..., Path]
IDS, TYPES = [np.array([2, 5, 6, 3, 7, 3])], [np.array([0, 0, 0, 0, 1, 1])]


def load(directory: Path, pooling: Pooling | None = None) -> float:
    """Open everything that ranking opens, and compute one score."""
    load_scorer(directory, threads=1, pooling=pooling)
    checkpoint = Checkpoint.open(directory, None, pooling)
    CheckpointTokenizer(checkpoint).encode(["bees dance 日", "zeppelin", ""])
    return float(OnnxSession(checkpoint, 1).run(IDS, TYPES).flat[0])


def tokenised(directory: Path) -> Path:
    """Write the directory's tokenizer.json from its vocab.txt."""
    from tokenizers.implementations import BertWordPieceTokenizer

    path = directory / "tokenizer.json"
    BertWordPieceTokenizer(str(directory / "vocab.txt")).save(str(path))
    return path


def changed(path: Path, **values: Any) -> Path:
    path.write_text(json.dumps(json.loads(path.read_text()) | values))
    return path
