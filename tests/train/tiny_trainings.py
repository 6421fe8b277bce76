"""How do tests set up a tiny training run?"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import birchbark
from birchbark.records import Pair
from birchbark.train.config import TrainingConfig
from birchbark.train.read_config import read_training
from conftest import WORDS, write_bert


def some_pairs(queries: int = 6, texts: int = 5, highest: int = 1, seed: int = 0) -> list[Pair]:
    """Return pairs of random words. The first text of each query is relevant, the last is not."""
    random = np.random.default_rng(seed)

    def words(least: int, most: int) -> str:
        return " ".join(random.choice(WORDS[:-4], random.integers(least, most)))

    pairs = []
    for q in range(queries):
        query = f"{words(1, 4)} {WORDS[q % 17]} {WORDS[q // 17]}"
        for t in range(texts):
            grade = highest if t == 0 else 0 if t == texts - 1 else int(random.integers(highest))
            pairs.append(Pair(f"q{q}", query, f"d{q}.{t}", f"{words(2, 12)} stone", grade))
    return pairs


def write_pairs(path: Path, pairs: Sequence[Pair]) -> Path:
    """Write `pairs` as TSV."""
    rows = ["qid\tquery\tdocid\ttext\tlabel"]
    rows += [
        "\t".join(map(str, (p.query_id, p.query, p.doc_id, p.text, p.relevance))) for p in pairs
    ]
    path.write_text("\n".join(rows) + "\n")
    return path


def settings(base: Path | str, changes: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return settings for four short steps without dropout.

    changes: values by dotted key; None removes a key.
    """
    values: dict[str, Any] = {
        "title": "tiny",
        "base": str(base),
        "max_length": 32,
        "model": {"dropout": 0.0},
        "schedule": {"steps": 4, "batch": 4, "learning_rate": 1e-2},
        "data": [{"name": "words", "files": ["pairs.tsv"], "validation": 0.3}],
    }
    for key, value in (changes or {}).items():
        *outer, last = key.split(".")
        table = values
        for name in outer:
            table = table[name][0] if name == "data" else table.setdefault(name, {})
        if value is None:
            table.pop(last, None)
        else:
            table[last] = value
    return values


def toml(values: Mapping[str, Any]) -> str:
    """Return `values` as TOML; nested tables are written inline."""

    def inline(value: Any) -> str:
        if isinstance(value, dict):
            return (
                "{ " + ", ".join(f"{json.dumps(k)} = {inline(v)}" for k, v in value.items()) + " }"
            )
        if isinstance(value, list):
            return "[" + ", ".join(map(inline, value)) + "]"
        return json.dumps(value)

    return "".join(f"{json.dumps(key)} = {inline(value)}\n" for key, value in values.items())


def prepare(folder: Path, **changes: Any) -> TrainingConfig:
    """Write a base and pairs to `folder`, and return a training configuration for them.

    changes: values by dotted key, with `__` in place of a dot.
    """
    if not (folder / "base").exists():
        folder.mkdir(exist_ok=True)
        write_bert(folder / "base", labels=1)
        write_pairs(folder / "pairs.tsv", some_pairs(10))
    dotted = {key.replace("__", "."): value for key, value in changes.items()}
    return read_training(settings(folder / "base", dotted), folder / "tiny.toml")


def alone() -> dict[str, str]:
    """Return the environment of a one-thread process that can import tests and package."""
    tests = Path(__file__).parents[1]
    package = Path(birchbark.__file__).parents[1]
    paths = (package, tests, tests / "train", tests / "score")
    return os.environ | {"PYTHONPATH": os.pathsep.join(map(str, paths)), "OMP_NUM_THREADS": "1"}


@contextmanager
def one_thread() -> Iterator[None]:
    """Compute with one thread, like a process with the environment that `alone` returns."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
