"""Are unusual documents and queries read completely, or refused with an error?"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from birchbark.deadline import Deadline
from birchbark.errors import InputError
from birchbark.index.build_index import build_index
from birchbark.pipeline.reading.document_reader import DocumentReader, RankerReaders
from birchbark.pipeline.reading.topk import TopKScoring
from birchbark.pipeline.rerank import rerank
from birchbark.pipeline.search import search
from birchbark.pipeline.settings.ranker import Ranker
from birchbark.pipeline.settings.reading_plan import ReadingPlan
from birchbark.records import Document, Query, Ranking, Run
from birchbark.retrieve.engine import IndexEngine
from birchbark.score.load_scorer import load_scorer
from birchbark.segment.by_name import Segmenter
from birchbark.segment.sentences import sentences
from birchbark.segment.truncate import Limit
from birchbark.segment.whole import whole
from birchbark.segment.windows import Windows
from conftest import WordScorer

HOSTILE = {
    "long": "birch river canoe. " * 10_000,
    "one sentence": "birch river " * 5_000,
    "no blank": "birch" * 6_000,
    "empty": "",
    "blank": " \n\t ",
    "emoji": "birch 🌲🌲🌲 👩‍👩‍👧‍👦 river 🇳🇴 " * 40,
    "cjk": "白樺の樹皮で作ったカヌー。河を渡る。" * 60,
    "arabic": "قارب من لحاء البتولا " * 50,
    "control": "birch\x00\x01\x02 river\u200b\ufeff",
    "combining": "e\u0301" * 500,
}


@pytest.mark.parametrize("labels", [None, 1])
@pytest.mark.parametrize("segmenter", [sentences, Windows(20, 5)])
def test_every_token_of_every_document_is_read(
    tmp_path: Path, bert: Callable[..., Path], labels: int | None, segmenter: Windows
) -> None:
    """All documents get a finite score, and none is truncated."""
    documents = [Document(name, {"title": "", "text": text}) for name, text in HOSTILE.items()]
    index = build_index(documents, tmp_path / "i")
    scorer = load_scorer(bert(labels=labels))
    names = list(HOSTILE)
    token_budget = scorer.token_budget("birch")
    reader = DocumentReader(index, scorer, segmenter, Limit())
    for name, reading in zip(names, reader.read(names, token_budget), strict=True):
        read = {int(i) for piece in reading.token_ids for i in piece}
        (whole,) = scorer.encode([HOSTILE[name]])
        assert set(whole.tolist()) <= read, name
        if segmenter is sentences and name not in ("no blank", "combining", "emoji"):
            assert sum(map(len, reading.token_ids)) == len(whole), name
    first = Run({"1": Ranking.of(names, range(len(names), 0, -1))})
    (ranking,) = rerank(
        index, first, [Query("1", "birch")], Ranker(scorer, segmenter)
    ).rankings.values()
    assert sorted(ranking.doc_ids) == sorted(names)
    assert np.isfinite(ranking.scores).all()


@pytest.mark.parametrize("labels", [None, 1])
def test_queries_are_never_truncated(
    tmp_path: Path, bert: Callable[..., Path], labels: int | None
) -> None:
    """A large model reads a query of 600 tokens; one beyond a model's limit is an InputError."""
    index = build_index([Document("a", {"text": "birch river"})], tmp_path / "i")
    engine, query = IndexEngine(index), " ".join(["birch"] * 600)
    hits = search(engine, query, Ranker(load_scorer(bert(labels=labels, positions=1300)))).hits
    assert len(hits) == 1
    small = Ranker(load_scorer(bert(labels=labels, positions=512)))
    with pytest.raises(
        InputError, match=r"query is too long for the model.*at most \d+ tokens .*found 600"
    ):
        search(engine, query, small)


LIMITED = Document(
    "d", {"title": "one two", "text": "a b c d e. f g. h i j k l m n o p q r s t. u v."}
)


@given(
    segments=st.one_of(st.none(), st.integers(1, 6)),
    length=st.one_of(st.none(), st.integers(1, 6)),
    # The last segmenter prepends the title to its windows.
    segmenter=st.sampled_from([sentences, Windows(4, 2), Windows(8, 2)]),
)
def test_read_and_truncated_tokens_add_up_to_the_document(
    segments: int | None, length: int | None, segmenter: Segmenter
) -> None:
    """A token counts as read if one of its overlapping windows is read."""
    scorer = WordScorer(token_budget=5)

    class Shelf:
        def documents(self, doc_ids: object) -> list[Document]:
            return [LIMITED]

    limit = Limit(segments, length)
    (reading,) = DocumentReader(Shelf(), scorer, segmenter, limit).read(["d"], 5)
    words = set(LIMITED.contents.lower().split())
    read = {word for piece in reading.token_ids for word in scorer.text(piece).split()}
    assert reading.truncated == len(words - read)
    assert segments is None or len(reading.token_ids) <= segments
    assert length is None or all(len(piece) <= length for piece in reading.token_ids)


@pytest.mark.parametrize(("segments", "length"), [(0, None), (None, 0), (-1, None)])
def test_limits_are_at_least_1(segments: int | None, length: int | None) -> None:
    """A limit of 0 or less raises InputError."""
    with pytest.raises(InputError, match="is out of range"):
        Limit(segments, length)


@pytest.mark.parametrize("segmenter", [sentences, whole, Windows(20, 5)])
@pytest.mark.parametrize("budget", [None, 60.0])
def test_a_plan_bounds_what_is_read_of_every_document(
    tmp_path: Path,
    bert: Callable[..., Path],
    segmenter: Segmenter,
    budget: float | None,
) -> None:
    """However long a document or its sentences are, at most two chunks of each are read."""
    documents = [Document(name, {"title": "", "text": text}) for name, text in HOSTILE.items()]
    engine = IndexEngine(build_index(documents, tmp_path / "i"))
    plan = ReadingPlan(segments=2, embedded=1)
    scorer, embedding = load_scorer(bert(labels=1, positions=64)), load_scorer(bert())
    ranker = Ranker(scorer, segmenter, embedding=embedding, plan=plan)
    first = Ranking.of(list(HOSTILE), range(len(HOSTILE), 0, -1))
    readers = RankerReaders(engine, ranker)
    scoring = TopKScoring(readers, "birch river 白樺 qārib 🌲", first, len(first))
    scoring.run(Deadline(budget))
    stats, hits = scoring.stats, scoring.hits()
    assert stats.exact
    assert stats.embedded <= len(HOSTILE)
    assert stats.pairs - stats.embedded <= 2 * len(HOSTILE)
    assert stats.unsplit_characters > 150_000
    assert {hit.document.doc_id for hit in hits} == set(HOSTILE)
    for hit in hits:
        assert hit.scored
        assert bool(hit.segments) == bool(HOSTILE[hit.document.doc_id].strip())
        for part in hit.segments:
            own = HOSTILE[hit.document.doc_id][part.segment.start : part.segment.end]
            assert part.segment.text == own
