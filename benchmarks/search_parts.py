"""Which parts does the benchmark of searches have, and where are their figures kept?"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.children import say
from benchmarks.first_stage import machine
from benchmarks.search_collections import COLLECTIONS, Collection, prepare
from benchmarks.search_first_tokens import NAME as FIRST_TOKENS
from benchmarks.search_first_tokens import measure_first_tokens
from benchmarks.search_peers import measure_peers
from benchmarks.search_quality import measure_row
from benchmarks.search_rows import ROWS, NewScorers
from benchmarks.search_times import TimedSearch
from birchbark import defaults
from birchbark.artifact import files_in, fingerprint
from birchbark.checkpoint.locate import locate

PARTS = ("quality", "times", "peers")
TIMED = COLLECTIONS[0]
MODELS = (defaults.MODEL, defaults.SMALL_MODEL, defaults.EMBEDDING, defaults.STATIC_EMBEDDING)
Figures = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Benchmark:
    """The settings of a run.

    cache: the folder of indexes and scores. folder: that of figures. seconds: the time for a row,
    after which no further query is timed, unless fewer than FEWEST were. queries: number of queries
    per collection whose quality is measured. python: the interpreter of the peers' environment.
    """

    data: Path
    cache: Path
    folder: Path
    seconds: float
    queries: int
    python: str

    def run(self, part: str) -> None:
        """Measure one part; figures are saved after each row."""
        {"quality": self._quality, "times": self._times, "peers": self._peers}[part]()

    def figures(self) -> Figures:
        """Return part → its latest figures; empty for a part that was not measured."""
        return {part: self._load(part) for part in PARTS}

    @property
    def collections(self) -> list[Collection]:
        """The collections that the data folder has."""
        return [each for each in COLLECTIONS if (self.data / each.folder).is_dir()]

    def _quality(self) -> None:
        models, figures = NewScorers(), Figures()
        for collection in self.collections:
            prepared = prepare(collection, self.data, self.cache).first(self.queries)
            rows = figures[collection.name] = {"queries": len(prepared.queries)}
            for row in ROWS:
                say(f"quality: {collection.name}, {row.name}")
                rows[row.name] = measure_row(prepared, row, models)
                self._save("quality", figures)
            rows[FIRST_TOKENS] = measure_first_tokens(prepared, self.cache / "first-tokens")
            self._save("quality", figures)

    def _times(self) -> None:
        prepared, models = prepare(TIMED, self.data, self.cache), NewScorers()
        packages = ("birchbark", "onnxruntime", "numba")
        figures: Figures = {"machine": machine(), "rows": {}}
        figures["versions"] = {name: version(name) for name in packages}
        for row in ROWS:
            say(f"times: {row.name}")
            timed = TimedSearch(row, prepared.indexes[row.vectors], models, self.seconds)
            new, running = (f(prepared.queries) for f in (timed.new_documents, timed.running))
            figures["rows"][row.name] = {"new": new, "running": running}
            self._save("times", figures)

    def _peers(self) -> None:
        prepared = prepare(TIMED, self.data, self.cache)
        self._save("peers", measure_peers(prepared, self.python, self.cache, self.seconds))

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
    return {name: fingerprint(*files_in(locate(name))) for name in MODELS}
