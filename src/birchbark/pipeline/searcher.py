"""How does a program search an index again and again, while it changes?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock
from types import EllipsisType

from birchbark.checkpoint.named import DEFAULT_MODEL
from birchbark.combine.aggregate import Mean
from birchbark.combine.interpolate import Interpolation
from birchbark.errors import ArtifactError, InputError, LateError
from birchbark.index.layout import is_index
from birchbark.index.reader import Index
from birchbark.index.writer import IndexWriter
from birchbark.pipeline.answer import Answer, Hit
from birchbark.pipeline.deadline import Deadline
from birchbark.pipeline.dense import DenseEngine, Near
from birchbark.pipeline.keeping import complete, kept_by, make_graphs, without_graphs
from birchbark.pipeline.race import Race, Readers
from birchbark.pipeline.ranker import Ranker
from birchbark.pipeline.search import Watch, deadline_in, search_by, warm_up
from birchbark.records import Document, Query, Ranking
from birchbark.remember.recent import Recent
from birchbark.remember.remembering import Remembering
from birchbark.retrieve.engine import IndexEngine
from birchbark.retrieve.first_stage import FirstStage
from birchbark.retrieve.graphs import installed
from birchbark.score.model import load_scorer
from birchbark.score.scorer import Scorer
from birchbark.score.together import together


def _shared(model: str) -> Scorer:
    """The scorer of a model, to be asked by many at once."""
    return load_scorer(model, session=together())


@dataclass(frozen=True, slots=True)
class _Snapshot:
    """The index as it was at one time, and what ranks and reads it."""

    index: Index
    engine: IndexEngine | DenseEngine
    readers: list[Readers]


class Searcher:
    """An index and a model, opened once, for any number of searches from any number of threads.

    Each search sees the index as of its last change, by this or by another process, and one that
    has begun is not disturbed by changes. Texts that several searches need at the same time are run
    through the model together, and scores are remembered (100 MB for each model), so that nothing
    is scored twice while it is asked for again and again; neither changes a score.

        from dataclasses import replace
        from birchbark import Searcher, Top

        searcher = Searcher("notes.index")
        for hit in searcher.search("can I get my money back", top=3).hits:
            print(hit.document.doc_id, hit.score)
        hurried = replace(searcher.rankers[0], depth=50, aggregation=Top((1.0, 0.5)))
        answer = searcher.search("can I get my money back", budget=0.2, rankers=hurried)
        print(answer.work.exact, [part.segment.text for part in answer.hits[0].segments])
    """

    def __init__(
        self,
        index: Path | str,
        model: Path | str | Ranker | Sequence[Ranker] = DEFAULT_MODEL,
        first_stage: FirstStage = FirstStage(),
        near: Near | None = None,
        load: Callable[[str], Scorer] = _shared,
    ) -> None:
        """Open the index in the folder `index`.

        model: the name or directory of a model, with the usual choices (`Ranker`), or Rankers with
        choices of one's own, one for each stage; none for the first stage alone. first_stage: how
        candidates are found; near: by vectors that the index keeps, too. load: opens models by
        their names. Raises InputError if there is no index or it keeps no such vectors,
        ArtifactError if it is damaged, CheckpointError if the model cannot be read.
        """
        self.directory = Path(index)
        self._opening, self._reading, self._writing, self._loading = (Lock() for _ in range(4))
        self._load, self._scorers = load, dict[str, Scorer]()
        self._remembered: dict[str, Remembering] = {}
        if isinstance(model, Ranker):
            model = [model]
        elif isinstance(model, (str, Path)):
            model = [Ranker(self.load(str(model)))]
        self.rankers = tuple(map(self.remember, model))
        self._first_stage, self._near = first_stage, near
        self._snapshot = self._open()

    @property
    def index(self) -> Index:
        """The index as of its last change: a snapshot that later changes do not touch."""
        return self._now().index

    def warm_up(self) -> None:
        """Load what is loaded on first use, so that a first answer is as fast as the next."""
        warm_up(self._now().engine, self.rankers, "warm up")

    def search(
        self,
        text: str,
        top: int = 10,
        budget: float | None = None,
        *,
        rankers: Ranker | Sequence[Ranker] | EllipsisType | None = ...,
        filters: Mapping[str, str] | None = None,
        watch: Watch = lambda answer: None,
    ) -> Answer:
        """The `top` best hits for `text`, best first; see `birchbark.search`.

        rankers: instead of this searcher's; best made of them by `dataclasses.replace`, since what
        was read and scored for one is then used by the other. None: the first stage alone.
        filters: field → value that hits must have, besides those of the first stage.
        """
        deadline = deadline_in(budget)
        now = self._now()
        if rankers is ...:
            chosen: Sequence[Ranker] = self.rankers
        else:
            chosen = [rankers] if isinstance(rankers, Ranker) else rankers or ()
        readers = [self._readers(now, ranker) for ranker in chosen]
        engine = now.engine.filtered(filters) if filters else now.engine
        return search_by(engine, text, readers, top, deadline, watch=watch)

    def evidence(
        self,
        doc_id: str,
        text: str,
        budget: float | None = None,
        *,
        watch: Callable[[], object] = lambda: None,
    ) -> Hit:
        """A document with the score of each of its segments for `text`, by the first ranker.

        Each has the same weight; the highest score comes first. watch: called before each
        batch; what it raises is raised. Raises InputError for a document that is not there and
        where there is no ranker, and LateError where `budget` seconds do not suffice.
        """
        if not self.rankers:
            raise InputError("no model to read the document by", remedy="Searcher(index, model)")
        now = self._now()
        every = replace(
            self.rankers[0], aggregation=Mean(), interpolation=Interpolation(0.0), duo=None
        )
        readers = self._readers(now, every)
        race = Race(readers, Query("", text), Ranking.of([doc_id], [0.0]), 1)
        race.run(Deadline(budget, watch=watch))
        if not race.work.exact:
            raise LateError("time does not suffice for the document", where=doc_id)
        return race.hits()[0]

    def documents(self, doc_ids: Sequence[str]) -> list[Document]:
        """The documents with these ids, in this order; InputError for one that is not there."""
        return self._now().index.documents(doc_ids)

    def add(self, documents: Iterable[Document]) -> tuple[int, int]:
        """Add documents, all or none; those with a known id are replaced.

        Returns how many were new, and how many replaced others. They are on disk, and found by the
        next search, when this returns; so is what the index keeps of them (vectors), with graphs
        where many lack one. Raises InputError, and changes nothing, for one that cannot be kept or
        where the index keeps what another model made, and ArtifactError while another process
        writes.
        """
        with self._writing, IndexWriter(self.directory) as writer:
            kept = kept_by(writer, self.load)  # what would fail fails before any change
            before, count = len(writer), 0
            for document in documents:
                writer.add(document)
                count += 1
            new = len(writer) - before
            writer.commit()
            complete(writer, kept)
            if installed() and without_graphs(Index(self.directory)):
                make_graphs(writer, lambda vectors: None)
        return new, count - new

    def delete(self, doc_ids: Iterable[str]) -> int:
        """Delete documents, and return how many were there; on disk when this returns."""
        with self._writing, IndexWriter(self.directory) as writer:
            return sum([writer.delete(doc_id) for doc_id in doc_ids])

    def load(self, model: str) -> Scorer:
        """The scorer of a model by its name, opened once; errors as `load_scorer`."""
        with self._loading:
            if model not in self._scorers:
                self._scorers[model] = self._load(model)
            return self._scorers[model]

    def remember(self, ranker: Ranker) -> Ranker:
        """The ranker with scorers whose scores this searcher remembers."""

        def kept(scorer: Scorer) -> Scorer:
            if isinstance(scorer, Remembering):
                return self._remembered.setdefault(scorer.fingerprint, scorer)
            if scorer.fingerprint not in self._remembered:
                self._remembered[scorer.fingerprint] = Remembering(scorer, Recent(scorer.width))
            return self._remembered[scorer.fingerprint]

        return ranker.by(kept)

    @property
    def is_there(self) -> bool:
        """Whether an index lies still where this one was opened."""
        return is_index(self.directory)

    @property
    def scored(self) -> int:
        """Segments that rankers' models have read so far; what was remembered is not counted."""
        return sum(one.scored for one in list(self._remembered.values()))

    def _now(self) -> _Snapshot:
        """The snapshot of the last change."""
        if self._snapshot.index.outdated:
            with self._opening:
                if self._snapshot.index.outdated:
                    try:
                        self._snapshot = self._open()
                    except InputError as gone:  # nothing that was asked is to blame
                        raise ArtifactError(
                            "the index has become another", found=gone.what, remedy="start anew"
                        ) from gone
        return self._snapshot

    def _open(self) -> _Snapshot:
        index = Index(self.directory)
        if self._near is None or not self._near.used:
            return _Snapshot(index, IndexEngine(index, self._first_stage), [])
        engine = DenseEngine(index, self.load, self._near, self._first_stage)
        return _Snapshot(index, engine, [])

    def _readers(self, now: _Snapshot, ranker: Ranker) -> Readers:
        """Those that read for this ranker, with what they remember."""
        with self._reading:
            for readers in now.readers:
                if readers.ranker.reads == ranker.reads:
                    return readers.weighed(ranker)
            now.readers.append(Readers(now.engine, ranker))
            return now.readers[-1]
