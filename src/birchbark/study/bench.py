"""Where does a study work, and what does every kind of study do there? Open, index, tell."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from birchbark.collection.intake import Intake
from birchbark.device.session import session_on
from birchbark.index.build import Schema, build_index
from birchbark.index.reader import Index
from birchbark.remember.remembering import Remembering
from birchbark.remember.store import ScoreStore
from birchbark.score.model import load_scorer
from birchbark.score.precision import Precision
from birchbark.score.scorer import Scorer
from birchbark.study.data import CollectionFiles, TestCollection, open_collection


@dataclass(frozen=True, slots=True)
class Bench:
    """root: of the data. scratch: a folder for indexes, gone afterwards. tell: hears each step.

    kept: a folder that stays, with what took long: BERT's scores, trained models. device: what is
    trained on.
    """

    root: Path
    scratch: Path
    tell: Callable[[str], object] = lambda step: None
    kept: Path | None = None
    device: str = "cpu"

    def open(self, files: CollectionFiles) -> TestCollection:
        """The collection that a recipe declares."""
        collection = open_collection(files, self.root)
        if absent := len(collection.qrels.grades) - len(collection.queries):
            self.tell(f"note: {files.name}: {absent} judged queries have no text; each counts 0")
        return collection

    def index(self, collection: TestCollection, schema: Schema) -> Index:
        """A fresh index of `collection`."""
        self.tell(f"{collection.name}: indexing, {schema.analyzer}")
        directory = self.scratch / f"index-{len(list(self.scratch.iterdir()))}"
        intake = Intake()
        index = build_index(collection.documents(intake), directory, schema)
        for note, times in intake.notes.most_common():
            self.tell(f"note: {collection.name}: {note} ({times:,} times)")
        return index

    def tell_device(self, what: str) -> None:
        """Say of `what`, which runs on the processors alone, where another device was chosen."""
        if self.device != "cpu":
            self.tell(f"note: {what} run on the processors, not on {self.device}")

    @contextmanager
    def scorer(self, model: str, precision: Precision) -> Iterator[Scorer]:
        """The model, which keeps its scores where there is a place for them."""
        exact = precision is Precision.FP32
        session = session_on(self.device) if exact else None  # integers need the processors
        scorer = load_scorer(model, precision=precision, session=session)
        if self.kept is None:
            yield scorer
            return
        with ScoreStore(self.kept / "scores", scorer) as store:
            yield Remembering(scorer, store)
