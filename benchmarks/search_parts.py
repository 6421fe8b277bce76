"""Which parts does the benchmark of searches have, and where are their figures kept?"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.children import say
from benchmarks.first_stage import machine
from benchmarks.search_collections import COLLECTIONS, Collection, Prepared, prepare
from benchmarks.search_first_tokens import NAME as FIRST_TOKENS
from benchmarks.search_first_tokens import measure_first_tokens
from benchmarks.search_million import measure_million
from benchmarks.search_models import Models
from benchmarks.search_peers import measure_peers
from benchmarks.search_quality import measure_rows
from benchmarks.search_rows import BM25, EVERYTHING, FIRST, Row, rows
from benchmarks.search_times import TimedSearch
from birchbark import RM3, FirstStage, Query, defaults
from birchbark.artifact import fingerprint_all
from birchbark.checkpoint.locate import locate

STAGES = {"quality": FirstStage(), "rm3": FirstStage(expansion=RM3())}
PARTS = (*STAGES, "times", "peers", "million")
TIMED = COLLECTIONS[0]
SEED = 1
Figures = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Benchmark:
    """The settings of a run.

    cache: the folder of indexes and scores. folder: that of figures. seconds: the time for a row,
    after which no further query is timed, unless fewer than FEWEST were. documents: of the large
    index. queries: number of queries per collection whose quality is measured. python: the
    interpreter of the peers' environment. only_missing: leave out the quality of rows that have
    figures already.
    """

    data: Path
    cache: Path
    folder: Path
    seconds: float
    documents: int
    queries: int
    python: str
    only_missing: bool = False

    def run(self, part: str) -> None:
        """Measure one part; figures are saved after each row."""
        if part in STAGES:
            self._quality(part)
        elif part == "times":
            self._times()
        elif part == "peers":
            self._peers()
        else:
            figures = measure_million(self.documents, self.data, self.cache, self.seconds)
            self._save(part, figures)

    def figures(self) -> Figures:
        """Return part → its latest figures; empty for a part that was not measured."""
        return {part: self._load(part) for part in PARTS}

    def _quality(self, part: str) -> None:
        """Measure AP and nDCG@10: first of the defaults and of what they are compared with."""
        models = Models()
        compared = [row for row in rows() if part == "quality" or _is_essential(row)]
        for group in _essential_first(compared):
            for collection in self._collections(part):
                chosen = [row for row in group if not self._is_known(part, collection, row.name)]
                if not chosen:
                    continue
                say(f"{part}: {collection.name}, {len(chosen)} ways to search")
                prepared = self._sample(collection)
                scores = self.cache / f"scores-{collection.name}"
                save = self._saving(part, collection.name)
                measure_rows(prepared, STAGES[part], chosen, models, scores, save)
        if part == "quality":
            self._first_tokens(models)

    def _first_tokens(self, models: Models) -> None:
        """Measure the quality of what peers do."""
        for collection in self._collections("quality"):
            if self._is_known("quality", collection, FIRST_TOKENS):
                continue
            say(f"quality: {collection.name}, first tokens")
            prepared = self._sample(collection)
            scores = self.cache / f"scores-{collection.name}"
            figures = measure_first_tokens(prepared, prepared.run(FirstStage()), models, scores)
            self._saving("quality", collection.name)(FIRST_TOKENS, figures)

    def _is_known(self, part: str, collection: Collection, row: str) -> bool:
        return self.only_missing and row in self._load(part).get(collection.name, {})

    def _sample(self, collection: Collection) -> Prepared:
        """Return a collection with as many of its queries as are measured."""
        prepared = prepare(collection, self.data, self.cache)
        return prepared.only(_shuffled(prepared.queries)[: self.queries])

    def _saving(self, part: str, collection: str) -> Callable[[str, Figures], None]:
        """Return a function that saves the figures of a row."""

        def save(name: str, measured: Figures) -> None:
            figures = self._load(part)
            figures.setdefault(collection, {})[name] = measured
            self._save(part, figures)

        return save

    def _collections(self, part: str) -> list[Collection]:
        """Return the collections that exist; RM3 cannot expand candidates that are given."""
        return [
            collection
            for collection in COLLECTIONS
            if (self.data / collection.folder).is_dir()
            and (part == "quality" or not collection.run)
        ]

    def _times(self) -> None:
        prepared, models = prepare(TIMED, self.data, self.cache), Models()
        queries = _shuffled(prepared.queries)
        packages = ("birchbark", "onnxruntime", "numba")
        figures: Figures = {"machine": machine(), "rows": {}}
        figures["versions"] = {name: version(name) for name in packages}
        for row in rows():
            say(f"times: {row.name}")
            index = prepared.index(vectors=row.vectors)
            timed = TimedSearch(row, index, models, prepared.segmenter, self.seconds)
            figures["rows"][row.name] = {"new": timed.new_documents(queries)}
            if row.is_default or row == BM25:
                figures["rows"][row.name]["running"] = timed.running(queries)
            self._save("times", figures)

    def _peers(self) -> None:
        prepared = prepare(TIMED, self.data, self.cache)
        queries = _shuffled(prepared.queries)
        figures = measure_peers(prepared, queries, self.python, self.cache, self.seconds)
        self._save("peers", figures)

    def _path(self, part: str) -> Path:
        return self.folder / f"{part}.json"

    def _load(self, part: str) -> Figures:
        """Return the figures of a part; empty if they are of other models."""
        path = self._path(part)
        saved = json.loads(path.read_text()) if path.exists() else {}
        figures: Figures = saved.get("figures", {}) if saved.get("models") == _models() else {}
        return figures

    def _save(self, part: str, figures: Figures) -> None:
        scratch = self._path(part).with_suffix(".tmp")
        text = json.dumps({"models": _models(), "figures": figures}, indent=1)
        scratch.write_text(text + "\n")
        scratch.rename(self._path(part))


@cache
def _models() -> dict[str, str]:
    """Return the fingerprints of the models."""
    return {name: fingerprint_all(locate(name)) for name in (defaults.MODEL, defaults.EMBEDDING)}


def _essential_first(compared: Sequence[Row]) -> list[list[Row]]:
    """Return the rows in groups: the defaults, what they are compared with, the others."""
    costs = [_cost(row) for row in compared]
    return [
        [row for row, cost in zip(compared, costs, strict=True) if cost == level]
        for level in sorted(set(costs))
    ]


def _is_essential(row: Row) -> bool:
    """Whether a row is also measured with RM3: the defaults, and what they are compared with."""
    return row.is_default or row.group in (FIRST, EVERYTHING)


def _cost(row: Row) -> int:
    if row.is_default or row.group == FIRST:
        return 0
    if row.group == EVERYTHING:
        return 1
    return 3 if row.plan.documents == defaults.RERANKING_DEPTH else 2


def _shuffled(queries: Sequence[Query]) -> list[Query]:
    """Return queries in a fixed random order, so that the first of them are a sample."""
    return random.Random(SEED).sample(list(queries), len(queries))
