"""Is exactly what a reading plan asks for read, the best first, and is the answer exact?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from operator import truediv
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shelf import QUERY, Library, StoredVectors, Written, WrittenEmbedding

from birchbark.combine.aggregate import Aggregation, First, Mean, Sum, Top, aggregate
from birchbark.combine.interpolate import Interpolation, Scale
from birchbark.deadline import Deadline
from birchbark.errors import InputError
from birchbark.index.build_index import build_index
from birchbark.index.index import Index
from birchbark.index.writer import IndexWriter
from birchbark.pipeline.answers.answer import Hit
from birchbark.pipeline.reading import choose, schedule, stretches
from birchbark.pipeline.reading.document_reader import RankerReaders
from birchbark.pipeline.reading.topk import TopKScoring, score_documents
from birchbark.pipeline.run_stages import run_stages
from birchbark.pipeline.settings.duo import Duo
from birchbark.pipeline.settings.ranker import Ranker
from birchbark.pipeline.settings.reading_plan import ReadingPlan
from birchbark.pipeline.stored.precompute import precompute_vectors
from birchbark.records import Document, Float32s, Ids, Ranking
from birchbark.retrieve.engine import IndexEngine
from birchbark.score.duo import load_duo_scorer
from birchbark.score.load_scorer import load_scorer
from birchbark.score.precision import Precision
from birchbark.segment.sentences import sentences
from birchbark.segment.truncate import Limit
from birchbark.segment.windows import Windows
from conftest import DOCUMENTS, WordScorer, write_duo

SCORES = st.sampled_from([0.0, 0.25, 0.5, 1.0, 1 / 3, 0.999, 1e-7])
GROWING = [Top(), Top((0.2, 1.0)), Top((1.0,)), Sum()]  # evidence never falls with more segments
AGGREGATIONS = [*GROWING, First(), Mean()]
SEGMENTS = st.lists(st.tuples(SCORES, SCORES, st.integers(0, 2)), max_size=5)
PLANS = st.builds(
    ReadingPlan,
    segments=st.none() | st.integers(1, 4),
    documents=st.none() | st.integers(1, 9),
    pairs=st.none() | st.integers(1, 15),
    embedded=st.none() | st.integers(1, 3),
)


@dataclass
class Case:
    """A library, its first-stage ranking, the documents with stored vectors, and a ranker."""

    library: Library
    first: Ranking
    stored: set[str]
    ranker: Ranker
    top: int

    def now(self) -> float:
        """Return the seconds that both models took."""
        scorers = (self.ranker.scorer, self.ranker.embedding)
        return sum(scorer.now for scorer in scorers if isinstance(scorer, Written))

    def scoring(self, top: int | None = None, plan: ReadingPlan | None = None) -> TopKScoring:
        """Prepare to score with this top and plan."""
        ranker = self.ranker if plan is None else replace(self.ranker, plan=plan)
        readers = RankerReaders(self.library, ranker)
        if isinstance(ranker.embedding, Written):
            readers.embedding = StoredVectors(self.library, ranker, ranker.embedding, self.stored)
        return TopKScoring(readers, QUERY, self.first, top or self.top)

    def scored(
        self,
        top: int | None = None,
        plan: ReadingPlan | None = None,
        seconds: float | None = None,
    ) -> TopKScoring:
        """Score with this top and plan, in so many seconds."""
        scoring = self.scoring(top, plan)
        end = None if seconds is None else seconds / 0.95
        scoring.run(Deadline(end, self.now))
        return scoring


@st.composite
def cases(
    draw: st.DrawFn,
    aggregations: Sequence[Aggregation] = AGGREGATIONS,
    plans: st.SearchStrategy[ReadingPlan] = PLANS,
    segments: st.SearchStrategy[list[tuple[float, float, int]]] = SEGMENTS,
) -> Case:
    library = Library(draw(st.lists(segments, min_size=1, max_size=10)))
    doc_ids = list(library.texts)
    first = [draw(st.sampled_from([0.0, 1.0, 2.0, 7.5, 30.0])) for _ in doc_ids]
    interpolation = Interpolation(draw(st.sampled_from([0.0, 0.2, 0.9, 1.0])), draw(SCALES))
    ranker = Ranker(
        Written(),
        Windows(1, 0),
        draw(st.sampled_from(aggregations)),
        interpolation,
        embedding=WrittenEmbedding() if draw(st.booleans()) else None,
        embedding_weight=draw(st.sampled_from([0.0, 0.5, 1.0])),
        plan=draw(plans),
    )
    stored = draw(st.sets(st.sampled_from(doc_ids)))
    return Case(library, Ranking.of(doc_ids, first), stored, ranker, draw(st.integers(1, 10)))


SCALES = st.sampled_from(Scale)


def naive(case: Case) -> list[tuple[str, float, set[str]]]:
    """Read all that the plan asks for, then sort: doc_id, score, and the texts that were read."""
    ranker, plan = case.ranker, case.ranker.plan
    weight, e = ranker.interpolation.evidence_weight, ranker.embedding_share
    first = ranker.interpolation.weighted_first_stage(case.first.scores)
    embedding, orders = np.zeros(len(first)), []
    for position, doc_id in enumerate(case.first.doc_ids):
        words = case.library.texts[doc_id].split()
        order = sorted(range(len(words)), key=lambda i: (-terms(words[i]), len(words[i]), i))
        if ranker.embedding:
            known = range(len(words))
            if doc_id not in case.stored and plan.embedded is not None:
                known = order[: plan.embedded]
            scores = written(words, sorted(known), 3)
            embedding[position] = weight * e * aggregate(scores, ranker.aggregation).evidence
            if case.stored and words:  # comparable with documents of which all is known
                limits = map(ranker.aggregation.max_evidence, (len(words), len(known)))
                embedding[position] *= truediv(*limits)
            best = sorted(known, key=lambda i: -float(words[i].split(":")[3]))
            order = [*best, *(i for i in order if i not in best)]
        orders.append(order[: plan.segments])
    prior = np.argsort(-(first + embedding).astype(np.float32), kind="stable").tolist()
    admitted = prior
    if e:  # by the first place: the 2 j + 1 best of one order, and the j best of the other
        near = np.argsort(-embedding, kind="stable").tolist()
        places = [(i + i // 2, p) for i, p in enumerate(prior)]
        places += [(3 * j + 2, p) for j, p in enumerate(near)]
        admitted = list(dict.fromkeys(p for _, p in sorted(places)))
    positions = admitted[: plan.documents]
    read, left = [], np.inf if plan.pairs is None else plan.pairs
    for position in positions:
        left -= len(orders[position])
        if read and left < 0:
            break
        read.append(position)
    evidence = np.zeros(len(first))
    for position in read:
        words = case.library.texts[case.first.doc_ids[position]].split()
        scores = written(words, sorted(orders[position]), 2)
        evidence[position] = weight * (1 - e) * aggregate(scores, ranker.aggregation).evidence
    doc_ids = case.first.doc_ids
    total = first + embedding + evidence
    ranked = Ranking.of([doc_ids[i] for i in read], total[read]).doc_ids
    unread = [doc_ids[i] for i in prior if doc_ids[i] not in ranked]
    return [
        (d, float(total[i]), {case.library.texts[d].split()[j] for j in orders[i]})
        for d in (*ranked, *unread)
        for i in [doc_ids.index(d)]
    ]


def terms(word: str) -> int:
    return len([*filter(None, word.split(":")[4].split("+"))])


def written(words: Sequence[str], positions: Sequence[int], field: int) -> Float32s:
    return np.array([float(words[i].split(":")[field]) for i in positions], np.float32)


def ids(hits: Sequence[Hit]) -> list[str]:
    return [hit.document.doc_id for hit in hits]


@given(case=cases())
def test_the_best_are_those_of_reading_all_that_the_plan_asks_for(case: Case) -> None:
    """Order and scores equal a naive computation; evidence comes from the chosen segments only."""
    scoring, expected = case.scored(), naive(case)[: case.top]
    hits = scoring.hits()
    assert scoring.stats.exact
    assert ids(hits) == [doc_id for doc_id, _, _ in expected]
    assert scoring.best().doc_ids == tuple(ids(hits))
    for hit, (_, score, chosen) in zip(hits, expected, strict=True):
        assert hit.score == pytest.approx(score, abs=1e-12)
        parts = sum(part.weight * part.score for part in hit.segments)
        assert hit.score == pytest.approx(hit.first_stage + hit.embedding + parts)
        assert {part.segment.text for part in hit.segments} <= chosen
    every = case.scored(len(case.first))
    assert hits == every.hits()[: case.top]
    assert scoring.stats.pairs <= every.stats.pairs


def test_the_best_by_the_embedding_is_read_however_low_in_the_first_stage() -> None:
    """It is the third document that the plan admits; without an embedding it is not read."""
    library = Library([[(0.1, 0.1, 1)]] * 8 + [[(0.9, 0.9, 0)]])
    first = Ranking.of(list(library.texts), [9.0 - i for i in range(9)])
    plan = ReadingPlan(segments=1, documents=3)
    interpolation = Interpolation(0.9, Scale.MAX)
    ranker = Ranker(Written(), Windows(1, 0), interpolation=interpolation, plan=plan)
    for embedding, read in ((WrittenEmbedding(), {"d0", "d1", "d8"}), (None, {"d0", "d1", "d2"})):
        case = Case(library, first, set(), replace(ranker, embedding=embedding), 9)
        assert {h.document.doc_id for h in case.scored().hits() if h.scored} == read


@given(case=cases())
def test_a_plan_is_never_exceeded(case: Case) -> None:
    """It limits segments of a document, documents, and pairs; the best is read."""
    plan, main = case.ranker.plan, case.ranker.scorer
    scoring = case.scored(len(case.first))
    assert isinstance(main, Written)
    read = [hit for hit in scoring.hits() if hit.scored]
    assert 1 <= len(read) <= (plan.documents or len(case.first))
    longest = max(len(text.split()) for text in case.library.texts.values())
    of_each = min(longest, plan.segments or longest)
    assert main.now <= len(read) * of_each
    assert main.now <= max(plan.pairs or np.inf, of_each)
    limit = plan.max_pairs(len(case.first))
    assert limit is None or main.now <= limit
    if isinstance(case.ranker.embedding, Written) and plan.embedded:
        assert case.ranker.embedding.now <= plan.embedded * len(case.first)


@given(case=cases())
def test_a_plan_for_everything_is_no_plan(case: Case) -> None:
    """Numbers as large as all there is give the answer of reading all."""
    alike = ReadingPlan(segments=5, documents=10, pairs=50, embedded=5)
    assert case.scored(plan=alike).hits() == case.scored(plan=ReadingPlan()).hits()


@given(case=cases(GROWING), seconds=st.integers(0, 60))
def test_under_a_deadline_scores_are_lower_bounds(case: Case, seconds: int) -> None:
    """Read documents come first, and their scores are the sums of what is shown.

    Beside documents with stored vectors, evidence by the embedding is assumed for the others.
    """
    start = case.now()
    scoring = case.scored(seconds=seconds)
    assert case.now() - start <= seconds + 12  # the first batch is as long as needed to know speed
    hits = scoring.hits()
    assert len(hits) == min(case.top, len(case.first))
    assert [hit.scored for hit in hits] == sorted((hit.scored for hit in hits), reverse=True)
    everything = {
        hit.document.doc_id: hit for hit in case.scored(len(case.first), plan=ReadingPlan()).hits()
    }
    planned = {hit.document.doc_id: hit for hit in case.scored(len(case.first)).hits()}
    complete = all(hit.embedding == planned[hit.document.doc_id].embedding for hit in hits)
    for hit in hits:
        parts = sum(part.weight * part.score for part in hit.segments)
        assert hit.score == pytest.approx(hit.first_stage + hit.embedding + parts)
        if not case.stored or hit.document.doc_id in case.stored:
            assert hit.score <= everything[hit.document.doc_id].score + 1e-9
        if complete and scoring.stats.scored:
            assert hit.score <= planned[hit.document.doc_id].score + 1e-9
    if scoring.stats.exact:
        assert hits == case.scored().hits()


@given(case=cases(AGGREGATIONS))
def test_with_enough_time_the_answer_is_exact(case: Case) -> None:
    """It then equals the answer without a deadline, for every aggregation."""
    scoring = case.scored(seconds=100_000)
    assert scoring.stats.exact
    assert scoring.hits() == case.scored().hits()


@given(case=cases([Mean(), First()]), seconds=st.integers(0, 40))
def test_partly_read_documents_count_only_if_more_cannot_lower_the_score(
    case: Case, seconds: int
) -> None:
    """The mean of the best segments would be above the mean of all: such documents are unread."""
    case.ranker = replace(case.ranker, embedding=None)
    scoring = case.scored(seconds=seconds)
    truth = {hit.document.doc_id: hit for hit in case.scored(len(case.first)).hits()}
    for hit in scoring.hits():
        assert not hit.scored or hit == truth[hit.document.doc_id]


class Logging(Written):
    """Records the document of each segment that is read, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.read = list[str]()

    def score(self, query: str, token_ids: Sequence[Ids]) -> Float32s:
        self.read += ["d" + self.text(piece).split(":")[0] for piece in token_ids]
        return super().score(query, token_ids)


@given(
    case=cases(
        GROWING,
        st.builds(ReadingPlan, segments=st.none() | st.integers(2, 4)),
        st.lists(st.tuples(SCORES, SCORES, st.integers(0, 2)), min_size=2, max_size=5),
    ),
    seconds=st.integers(1, 60),
)
def test_documents_are_read_in_rounds(case: Case, seconds: int) -> None:
    """No second segment is read before each candidate that can be among the best has its first."""
    logging = Logging()
    case.ranker = replace(case.ranker, scorer=logging, embedding=None)
    case.scored(seconds=seconds)
    seen: list[str] = []
    for doc_id in logging.read:
        if seen.count(doc_id) == 1:
            assert set(seen) == set(case.first.doc_ids)
        seen.append(doc_id)


def test_every_hit_of_the_first_page_has_evidence_early() -> None:
    """After one segment of each, all ten hits are read; the best segment by terms was first."""
    library = Library([[(0.5, 0.0, j % 3) for j in range(30)] for _ in range(40)])
    first = Ranking.of(list(library.texts), np.linspace(2, 1, 40))
    ranker = Ranker(Written(), Windows(1, 0), plan=ReadingPlan(segments=3, pairs=60))
    case = Case(library, first, set(), ranker, 10)
    scoring = case.scored(seconds=25)
    hits = scoring.hits()
    assert not scoring.stats.exact
    assert ids(hits) == list(first.doc_ids[:10])
    assert all(hit.segments[0].segment.text.endswith("birch+bark") for hit in hits)


@pytest.mark.parametrize("stored", [0, 40])
def test_the_first_page_does_not_wait_for_the_embedding(stored: int) -> None:
    """Ten documents have evidence before the others are embedded; the answer stays the same.

    With all vectors stored there is nothing to wait for.
    """
    library = Library([[(0.5, i / 50, j % 3) for j in range(30)] for i in range(40)])
    first = Ranking.of(list(library.texts), np.linspace(2, 1, 40))
    embedding = WrittenEmbedding()
    plan = ReadingPlan(segments=3, pairs=60, embedded=1)
    mixture = Interpolation(0.5)
    ranker = Ranker(Written(), Windows(1, 0), interpolation=mixture, embedding=embedding, plan=plan)
    case = Case(library, first, {f"d{i}" for i in range(stored)}, ranker, 10)
    scoring = case.scoring()
    pages: list[tuple[float, list[Hit]]] = []
    clock = Deadline(10_000, case.now)
    scoring.run(clock, lambda: pages.append((embedding.now, scoring.hits())))
    embedded, page = pages[0]
    assert embedded == (0 if stored else 10)
    assert all(hit.segments for hit in page) == (not stored)
    assert scoring.stats.exact
    assert scoring.hits() == case.scored().hits()


def test_of_a_long_document_not_everything_can_be_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    """Under a deadline it is split in part. If the plan asks for all of it, this is told."""
    monkeypatch.setattr(stretches, "LONG_DOCUMENT", 500)
    monkeypatch.setattr(choose, "WHOLE_DOCUMENT", 1_000)
    monkeypatch.setattr(stretches, "STRETCH", 50)
    library = Library([[(0.5, 0.5, 0)] * 100, [(0.25, 0.5, 0)] * 2])
    first = Ranking.of(list(library.texts), [2.0, 1.0])
    case = Case(library, first, set(), Ranker(Written(), Windows(1, 0)), 2)
    assert case.scored().stats.exact
    late = case.scored(seconds=10_000)
    assert not late.stats.exact
    assert late.stats.unsplit_characters > 0
    assert case.scored(seconds=10_000, plan=ReadingPlan(segments=3)).stats.exact
    monkeypatch.setattr(choose, "WHOLE_DOCUMENT", 10_000)
    patient = case.scored(seconds=10_000)
    assert patient.stats.exact
    assert patient.hits() == case.scored().hits()
    few = case.scored(plan=ReadingPlan(pairs=100))
    assert [hit.scored for hit in few.hits()] == [True, False]


@pytest.mark.parametrize("seconds", range(1, 60, 2))
def test_the_first_page_adds_few_pairs_to_the_plan(seconds: int) -> None:
    """Of documents that the plan leaves out, no more is read than for the first page."""
    library = Library([[(0.5, 0.5, 1)] * 5 for _ in range(30)])
    first = Ranking.of(list(library.texts), np.linspace(2, 1, 30))
    plan = ReadingPlan(segments=5, pairs=10, embedded=1)
    ranker = Ranker(Written(), Windows(1, 0), embedding=WrittenEmbedding(), plan=plan)
    stats = Case(library, first, set(), ranker, 10).scored(seconds=seconds).stats
    assert stats.pairs - stats.embedded <= 10 + schedule.FIRST_PAGE


@pytest.mark.parametrize("embedding", [None, WrittenEmbedding()])
def test_long_documents_are_not_read_whole_before_a_deadline(
    embedding: WrittenEmbedding | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where documents are read from beginning to end, a very long one is left out, and told."""
    monkeypatch.setattr(choose, "WHOLE_DOCUMENT", 1_000)
    library = Library([[(0.5, 0.5, 0)] * 100, [(0.25, 0.5, 0)] * 2, [(0.5, 0.5, 0)] * 3])
    first = Ranking.of(list(library.texts), [3.0, 2.0, 1.0])
    ranker = Ranker(Written(), Windows(1, 0), limit=Limit(50), embedding=embedding)
    case = Case(library, first, set(), ranker, 3)
    assert case.scored().stats.exact
    late = case.scored(seconds=10_000)
    assert [hit.scored for hit in late.hits()] == [True, True, False]
    assert late.hits()[2].document.doc_id == first.doc_ids[0]
    assert late.stats.unsplit_characters == len(library.texts[first.doc_ids[0]])
    assert late.stats.pairs == 5 * (2 if embedding else 1)
    assert not late.stats.exact


class SlowSplitting:
    """A segmenter that takes a second of a simulated clock per document."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self, document: Document) -> list:  # type: ignore[type-arg]
        self.now += 1
        return Windows(1, 0)(document)


@pytest.mark.parametrize("embedding", [None, WrittenEmbedding()])
@pytest.mark.parametrize("pairs", [None, 30])
def test_splitting_leaves_time_to_read(
    embedding: WrittenEmbedding | None, pairs: int | None
) -> None:
    """If time does not suffice to split all candidates, those that were split are read."""
    library = Library([[(0.5, 0.5, 1)] * 3 for _ in range(40)])
    first = Ranking.of(list(library.texts), np.linspace(2, 1, 40))
    splitting = SlowSplitting()
    plan = ReadingPlan(segments=2, pairs=pairs, embedded=1)
    ranker = Ranker(Written(), splitting, embedding=embedding, plan=plan)
    scoring = TopKScoring(RankerReaders(library, ranker), QUERY, first, 10)
    scoring.run(Deadline(12, lambda: splitting.now))
    assert splitting.now <= 13
    assert scoring.stats.scored >= 3
    assert not scoring.stats.exact
    assert embedding is None or scoring.stats.embedded > 0


@given(case=cases(), rescore_depth=st.integers(1, 10))
def test_precise_scores_of_what_the_plan_chose(case: Case, rescore_depth: int) -> None:
    """The best documents are rescored without reading more; the answer is that of scoring all."""
    case.ranker = replace(case.ranker, precise=case.ranker.scorer, rescore_depth=rescore_depth)
    some, every = case.scored(), case.scored(len(case.first))
    assert some.hits() == every.hits()[: case.top]
    assert ids(some.hits()) == [doc_id for doc_id, _, _ in naive(case)[: case.top]]


def test_all_documents_are_scored_without_a_first_stage() -> None:
    """score_documents reads of each document what the plan chooses, whatever number it allows."""
    library = Library([[(0.5, 0.5, 0), (0.25, 0.5, 1)]] * 9)
    plan = ReadingPlan(segments=1, documents=2, pairs=3)
    readers = RankerReaders(library, Ranker(Written(), Windows(1, 0), Top((1.0,)), plan=plan))
    scoring = score_documents(readers, QUERY, list(library.texts))
    assert [hit.score for hit in scoring.hits()] == [0.25] * 9
    assert scoring.stats.exact


def test_threads_share_readers() -> None:
    """Concurrent queries get the hits that each gets alone, whatever was cached in between."""
    random = np.random.default_rng(0)
    library = Library(
        [[(*random.random(2).tolist(), int(random.integers(3))) for _ in range(9)]] * 30
    )
    first = Ranking.of(list(library.texts), np.linspace(2, 1, 30))
    plan = ReadingPlan(segments=2, pairs=30, embedded=2)

    def ranker() -> Ranker:
        return Ranker(Written(), Windows(1, 0), embedding=WrittenEmbedding(), plan=plan)

    def hits(readers: RankerReaders, query: str) -> list[Hit]:
        scoring = TopKScoring(readers, query, first, 5)
        scoring.run()
        return scoring.hits()

    queries = [f"{a} {b}" for a in ("birch", "bark", "river") for b in ("birch", "bees")] * 9
    shared = RankerReaders(library, ranker())
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda query: hits(shared, query), queries))
    assert found == [hits(RankerReaders(library, ranker()), query) for query in queries]


@pytest.mark.parametrize("role", ["scorer", "embedding"])
def test_partly_stored_vectors(tmp_path: Path, bert: Callable[..., Path], role: str) -> None:
    """With vectors of some documents only, pruning changes nothing and all documents are ranked."""
    model = bert()
    scorer = load_scorer(model)
    with IndexWriter(build_index(DOCUMENTS[:3], tmp_path / "i").directory) as writer:
        precompute_vectors(scorer, sentences, str(model)).attach(writer)
    with IndexWriter(tmp_path / "i") as writer:
        for document in DOCUMENTS[3:]:
            writer.add(document)
    engine = IndexEngine(Index(tmp_path / "i"))
    query = "birch river bees"
    candidates = engine.rank(query, 9)
    assert 0 < len({d.doc_id for d in DOCUMENTS[:3]} & set(candidates.doc_ids)) < len(candidates)
    for plan in (ReadingPlan(), ReadingPlan(1, 2, embedded=1), ReadingPlan(2, pairs=3, embedded=2)):
        roles = {"scorer": WordScorer(30), role: scorer}
        ranker = Ranker(**roles, segmenter=sentences, plan=plan)  # type: ignore[arg-type]
        readers = RankerReaders(engine, ranker)
        scorings = [TopKScoring(readers, query, candidates, top) for top in (1, len(candidates))]
        for scoring in scorings:
            scoring.run()
            assert scoring.stats.exact
        (one,), every = (scoring.hits() for scoring in scorings)
        assert one == every[0]
        assert scorings[1].stats.by_vectors >= (1 if role == "embedding" else 0)
        assert len(every) == len(candidates)


def test_a_fast_embedding_reads_documents_without_vectors(
    tmp_path: Path, bert: Callable[..., Path]
) -> None:
    """Stored vectors are compared by the embedding that computed them."""
    embedding = load_scorer(bert())
    with IndexWriter(build_index(DOCUMENTS[:3], tmp_path / "i").directory) as writer:
        precompute_vectors(embedding, sentences, "model").attach(writer)
    with IndexWriter(tmp_path / "i") as writer:
        for document in DOCUMENTS[3:]:
            writer.add(document)
    engine, query = IndexEngine(Index(tmp_path / "i")), "birch river bees"
    candidates = engine.rank(query, 9)
    stored = {document.doc_id for document in DOCUMENTS[:3]}
    fast = load_scorer(bert(), precision=Precision.INT8)
    by_embedding = []
    for fast_embedding in (None, fast):
        ranker = Ranker(
            WordScorer(30), sentences, embedding=embedding, fast_embedding=fast_embedding
        )
        scoring = TopKScoring(RankerReaders(engine, ranker), query, candidates, len(candidates))
        scoring.run()
        by_embedding.append({hit.document.doc_id: hit.embedding for hit in scoring.hits()})
    precise, mixed = by_embedding
    assert {doc_id for doc_id in precise if precise[doc_id] == mixed[doc_id]} == stored & set(mixed)
    other = WordScorer()  # with another vocabulary
    with pytest.raises(InputError, match="fast_embedding encodes texts differently"):
        Ranker(WordScorer(30), embedding=embedding, fast_embedding=other)


def test_candidates_that_the_plan_leaves_out_keep_their_order(bert: Callable[..., Path]) -> None:
    """After the last stage they are below what was read, and candidates beyond the depth below."""
    library = Library([[(0.1 * i, 0.0, 1)] * 3 for i in range(10)])
    first = Ranking.of(list(library.texts), np.linspace(2, 1, 10))
    shallow = Ranker(
        Written(),
        Windows(1, 0),
        interpolation=Interpolation(0.0),
        depth=7,
        plan=ReadingPlan(segments=1, documents=4),
    )
    readers = [RankerReaders(library, shallow)]
    ranking, (result,) = run_stages(readers, QUERY, first)
    assert ranking.doc_ids == ("d3", "d2", "d1", "d0", "d4", "d5", "d6", "d7", "d8", "d9")
    assert (np.diff(ranking.scores) < 0).all()
    assert [hit.scored for hit in result.hits()] == [True] * 4 + [False] * 3
    for top in range(1, 11):
        assert run_stages(readers, QUERY, first, top)[0].doc_ids[:top] == ranking.doc_ids[:top]
    second = replace(shallow, depth=6, plan=ReadingPlan(documents=2))
    again, _ = run_stages([*readers, RankerReaders(library, second)], QUERY, first)
    assert again.doc_ids == ranking.doc_ids


def test_comparisons_after_a_plan(tmp_path: Path, bert: Callable[..., Path]) -> None:
    """duoBERT compares the best documents, read or not; the others keep their order below."""
    duo = load_duo_scorer(write_duo(tmp_path / "duo"), threads=1)
    engine = IndexEngine(build_index(DOCUMENTS, tmp_path / "i"))
    mono, query = load_scorer(bert(labels=1)), "birch river"
    candidates = Ranking.of([d.doc_id for d in DOCUMENTS], [5.0, 4.0, 3.0, 2.0, 1.0])
    plan = ReadingPlan(segments=1, documents=2, embedded=1)
    for embedding in (None, load_scorer(bert(), threads=1)):
        plain = Ranker(mono, embedding=embedding, plan=plan)
        before, _ = run_stages([RankerReaders(engine, plain)], query, candidates)
        ranker = replace(plain, duo=Duo(duo, duo, depth=3))
        for top in (None, 2, 5):
            ranking, (result,) = run_stages([RankerReaders(engine, ranker)], query, candidates, top)
            assert set(ranking.doc_ids[:2]) <= set(before.doc_ids[:3])
            assert result.stats.comparisons == 6
            if top != 2:
                assert ranking.doc_ids[3:] == before.doc_ids[3:]
            compared = [hit for hit in result.hits() if hit.compared is not None]
            assert set(ids(compared)) == set(before.doc_ids[:3])
            assert sorted(hit.scored for hit in compared) == [False, True, True]


def test_the_number_of_pairs_of_a_plan() -> None:
    """One document is read whatever the pairs; without a number of segments there is no limit."""
    for plan, expected in (
        (ReadingPlan(), None),
        (ReadingPlan(pairs=10, documents=2), None),
        (ReadingPlan(segments=3), 27),
        (ReadingPlan(segments=3, documents=4), 12),
        (ReadingPlan(segments=3, documents=20), 27),
        (ReadingPlan(segments=3, pairs=10), 10),
        (ReadingPlan(segments=3, documents=2, pairs=10), 6),
        (ReadingPlan(segments=3, pairs=2), 3),
    ):
        assert plan.max_pairs(9) == expected
