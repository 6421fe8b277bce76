"""How does a study open collections, build indexes and load scorers?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from birchbark import defaults
from birchbark.device.torch_session import session_factory
from birchbark.index.build_index import Schema, build_index
from birchbark.index.index import Index
from birchbark.score.load_scorer import load_scorer
from birchbark.score.precision import Precision
from birchbark.score.scorer import Scorer
from birchbark.score_cache.cached_scorer import CachedScorer
from birchbark.score_cache.store import ScoreStore
from birchbark.study.collections import CollectionFiles, TestCollection, open_collection


@dataclass(frozen=True, slots=True)
class Workspace:
    """Folders and settings shared by all kinds of studies.

    Attributes:
        root: The data root.
        scratch: A temporary folder for indexes.
        progress: Called with one line of text per step.
        cache: A permanent folder for scores and trained models; None for no cache.
        device: The device for training and for scoring in float32.
    """

    root: Path
    scratch: Path
    progress: Callable[[str], object] = lambda step: None
    cache: Path | None = None
    device: str = defaults.DEVICE

    @property
    def cache_or_scratch(self) -> Path:
        """The cache folder if there is one, else the temporary folder."""
        return self.cache or self.scratch

    def open(self, files: CollectionFiles) -> TestCollection:
        """Open a collection of the recipe. Reports judged queries without text."""
        collection = open_collection(files, self.root)
        if missing := len(collection.qrels.grades) - len(collection.queries):
            self.progress(
                f"note: {files.name}: {missing} judged queries have no text and count as 0"
            )
        return collection

    def index(self, collection: TestCollection, schema: Schema) -> Index:
        """Build a new index of `collection`."""
        self.progress(f"{collection.name}: indexing, {schema.analyzer}")
        directory = self.scratch / f"index-{len(list(self.scratch.iterdir()))}"
        documents, intake = collection.documents()
        index = build_index(documents, directory, schema)
        for note, times in intake.notes.most_common():
            self.progress(f"note: {collection.name}: {note} ({times:,} times)")
        if skipped := intake.skipped:
            first = f"skipped {len(skipped):,} bad records, first {skipped[0]}"
            self.progress(f"note: {collection.name}: {first}")
        return index

    def note_cpu_only(self, component: str) -> None:
        """Report that `component` runs on the CPU, if another device was chosen."""
        if self.device != "cpu":
            self.progress(f"note: {component} run on the CPU, not on {self.device}")

    @contextmanager
    def scorer(self, model: str, precision: Precision) -> Iterator[Scorer]:
        """Load the scorer for a model. Its scores are cached if the workspace has a cache."""
        on_device = precision is Precision.FP32  # int8 runs on the CPU only
        session = session_factory(self.device) if on_device else None
        scorer = load_scorer(model, precision=precision, session=session)
        if self.cache is None:
            yield scorer
            return
        with ScoreStore(self.cache / "scores", scorer) as store:
            yield CachedScorer(scorer, store)
