"""Does PairScorer give the scores of `rank`, in the shapes of sentence-transformers?"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from birchbark.errors import InputError
from birchbark.pipeline.pair_scorer import PairScorer
from birchbark.pipeline.rank_texts import rank
from birchbark.score.load_scorer import load_scorer

TEXTS = ["a canoe of birch bark", "bees dance", "", "the river . " * 400]
QUERIES = ["birch canoe", "bee dance"]


@pytest.fixture
def scorer(bert: Callable[..., Path]) -> PairScorer:
    """A PairScorer with a tiny random cross-encoder."""
    return PairScorer(str(bert(labels=1)))


def expected(scorer: PairScorer, query: str) -> dict[str, float]:
    return {x.text: x.score for x in rank(query, TEXTS, scorer._model)}


def test_pairs_of_several_queries(scorer: PairScorer) -> None:
    """Scores are in the order of the pairs, and those of `rank`, also of a long text."""
    pairs = [(query, text) for text in TEXTS for query in QUERIES]
    scores = scorer.predict(pairs, batch_size=2)
    assert scores.dtype == np.float32
    of_query = {query: expected(scorer, query) for query in QUERIES}
    assert scores.tolist() == [np.float32(of_query[query][text]) for query, text in pairs]
    assert scorer.predict([list(pair) for pair in pairs]).tolist() == scores.tolist()
    assert len(scorer.predict([])) == 0


def test_other_pairs_do_not_matter() -> None:
    """A long text, of which both default models read a part, has the same score by itself."""
    text = " ".join(f"The canoe is {n}. Bees dance by the river." for n in range(200))
    query = "canoe river bees"
    others = [(query, "a river " * 300), ("bees", text), (query, "birch")]
    assert PairScorer().predict([(query, text), *others])[0] == PairScorer().predict((query, text))


def test_a_single_pair(scorer: PairScorer) -> None:
    """Its score is a number, also if it is a pair of short strings."""
    score = scorer.predict((QUERIES[0], TEXTS[0]))
    assert score == np.float32(expected(scorer, QUERIES[0])[TEXTS[0]])
    assert scorer.predict([QUERIES[0], TEXTS[0]]) == score  # type: ignore[list-item]


def test_ranked_documents(scorer: PairScorer) -> None:
    """Ids and metadata come back; text and evidence if asked for."""
    ranked = rank(QUERIES[0], TEXTS, scorer._model)
    plain = [{"corpus_id": x.index, "score": x.score} for x in ranked]
    assert scorer.rank(QUERIES[0], TEXTS) == plain
    documents = [{"id": f"d{n}", "text": text, "year": n} for n, text in enumerate(TEXTS)]
    got = scorer.rank(QUERIES[0], documents, top_k=2, return_documents=True, return_evidence=True)
    assert got == [
        {
            **{"id": f"d{x.index}", "year": x.index, "corpus_id": x.index},
            **{"score": x.score, "text": x.text, "evidence": x.evidence},
        }
        for x in ranked[:2]
    ]


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        (["ab"], "pair 0: not a pair"),
        ([("a", "b"), ("a", None)], "pair 1: not a pair"),
        ([("a", "b", "c")], "pair 0: not a pair"),
    ],
)
def test_what_is_no_pair(scorer: PairScorer, pairs: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        scorer.predict(pairs)


def test_a_document_without_text(scorer: PairScorer) -> None:
    with pytest.raises(InputError, match="document 1: a document without text"):
        scorer.rank("a", ["b", {"body": "c"}])


def test_models_are_given_as_for_rank(bert: Callable[..., Path]) -> None:
    """A model, or by default both models."""
    directory = bert(labels=1)
    model = load_scorer(directory)
    same = PairScorer(directory).predict(("bee", "bees dance"), show_progress_bar=False)
    assert same == PairScorer(model).predict(("bee", "bees dance"))
    assert PairScorer(model).predict(("bee", "bees dance")) == np.float32(
        rank("bee", ["bees dance"], model)[0].score
    )
    assert PairScorer().predict(("bee", "bees dance")) == np.float32(
        rank("bee", ["bees dance"])[0].score
    )


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames(scorer: PairScorer, library: str) -> None:
    """A column of scores is added; the frame that was given stays."""
    frames = pytest.importorskip(library)
    columns = {"q": [*QUERIES, *QUERIES], "text": TEXTS, "n": [1, 2, 3, 4]}
    frame = frames.DataFrame(columns)
    scored = scorer.score_frame(frame, query="q")
    pairs = list(zip(columns["q"], TEXTS, strict=True))
    assert scored["score"].to_list() == scorer.predict(pairs).tolist()  # type: ignore[arg-type]
    assert list(scored.columns) == ["q", "text", "n", "score"]
    assert list(frame.columns) == ["q", "text", "n"]
    with pytest.raises(InputError, match="no column 'query'"):
        scorer.score_frame(frame)


def test_what_is_no_frame(scorer: PairScorer) -> None:
    with pytest.raises(InputError, match="not a frame"):
        scorer.score_frame([1])
