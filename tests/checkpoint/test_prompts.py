"""Do prompts reach queries and documents, and only the model's inputs?"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from birchbark.checkpoint.checkpoint import Checkpoint
from birchbark.checkpoint.prompts import Prompts
from birchbark.checkpoint.settings import SETTINGS
from birchbark.errors import CheckpointError, InputError
from birchbark.index.build_index import build_index
from birchbark.index.index import Index
from birchbark.index.writer import IndexWriter
from birchbark.pipeline.stored.precompute import precompute_vectors
from birchbark.pipeline.stored.stored_embedding import open_stored_embedding
from birchbark.pipeline.stored.vector_sets import fitting_set
from birchbark.pipeline.upkeep.update_index import attach
from birchbark.records import Segment
from birchbark.score.describe import describe
from birchbark.score.embedding import EmbeddingScorer
from birchbark.score.load_scorer import load_scorer
from birchbark.segment.by_name import parse_segmenter
from birchbark.segment.split_long import split_long
from conftest import DOCUMENTS

Bert = Callable[..., Path]
BOTH = {"query": "the river ", "document": "stone "}


def prompted(directory: Path, prompts: Any, default: Any = None) -> Path:
    settings = {"prompts": prompts, "default_prompt_name": default}
    (directory / SETTINGS).write_text(json.dumps(settings))
    return directory


def opened(directory: Path) -> EmbeddingScorer:
    scorer = load_scorer(directory, 1)
    assert isinstance(scorer, EmbeddingScorer)
    return scorer


@pytest.mark.parametrize(
    ("prompts", "default", "expected"),
    [
        ({}, None, Prompts("", "")),
        (None, None, Prompts("", "")),
        (BOTH, None, Prompts("the river ", "stone ")),
        ({"query": "q: ", "passage": "p: ", "corpus": "c: "}, None, Prompts("q: ", "p: ")),
        ({"query": None, "document": "", "passage": "p: "}, "query", Prompts("", "")),
        ({"document": None, "corpus": "c: ", "other": "o: "}, "other", Prompts("", "c: ")),
    ],
)
def test_names(bert: Bert, prompts: Any, default: Any, expected: Prompts) -> None:
    """An empty prompt `document` counts as stated, null does not; the default is for neither."""
    assert Checkpoint.open(prompted(bert(), prompts, default)).prompts == expected


def test_prompts_that_are_no_valid_unicode_are_refused(bert: Bert) -> None:
    """The error names the file, before a tokeniser is given half a pair of surrogates."""
    with pytest.raises(CheckpointError, match=f"{SETTINGS}.*invalid prompts"):
        Checkpoint.open(prompted(bert(), {"query": "\ud800"}))


def test_vectors_are_those_of_the_joined_texts(bert: Bert) -> None:
    """A query and a text with equal token ids have vectors of their own, also from the cache."""
    plain, scorer = opened(bert()), opened(prompted(bert(), BOTH))
    words = "birch canoe"
    [ids] = scorer.encode([words])
    assert np.array_equal(ids, plain.encode([words])[0])
    for _ in range(2):
        for vector, joined in (
            (scorer.embed_query(words), "the river birch canoe"),
            (scorer.embed([ids])[0], "stone birch canoe"),
        ):
            np.testing.assert_allclose(
                vector, plain.embed(plain.encode([joined]))[0], rtol=0, atol=1e-6
            )
    scorer.prefetch(["bee"], scorer.encode(["bee"]))
    assert not np.array_equal(scorer.embed_query("bee"), scorer.embed(scorer.encode(["bee"]))[0])
    late, expected = (load_scorer(s.checkpoint.root, 1, "tokens") for s in (scorer, plain))
    assert late.score(words, [ids]) != pytest.approx(expected.score(words, [ids]), abs=1e-4)


def test_prompts_take_tokens_from_the_budget(bert: Bert) -> None:
    """Chunks of a long text fit after the prompt, cover the text, and do not contain the prompt."""
    plain, scorer = opened(bert()), opened(prompted(bert(), BOTH))
    assert (plain.token_budget("bee"), scorer.token_budget("bee")) == (30, 29)
    scorer.token_budget("bee " * 28)
    with pytest.raises(InputError, match=r"query is too long.*at most 28 tokens .*found 29"):
        scorer.token_budget("bee " * 29)
    text = "birch bark canoe river . " * 30
    [chunks] = split_long(
        [Segment("d", 0, len(text), text)], scorer.token_budget(""), scorer.encode, scorer.spans
    )
    assert "".join(chunk.text for chunk, _ in chunks) == text
    assert max(len(ids) for _, ids in chunks) <= 29
    assert scorer.embed([ids for _, ids in chunks]).shape == (len(chunks), 16)


def test_fingerprints(bert: Bert) -> None:
    """Each pair of prompts has its own; empty prompts leave that of the model unchanged."""
    base = opened(bert()).fingerprint
    assert opened(prompted(bert(), {"query": "", "document": ""})).fingerprint == base
    choices = [BOTH, {"query": "stone "}, {"document": "stone "}, {"passage": "bee "}]
    assert len({base, *(opened(prompted(bert(), p)).fingerprint for p in choices)}) == 5
    plain, query, document = (
        opened(prompted(bert(), p)).encoding for p in ({}, {"query": "a "}, {"document": "a "})
    )
    assert plain == query != document


def test_stored_vectors_of_other_prompts_do_not_fit(bert: Bert, tmp_path: Path) -> None:
    """Nothing but the vectors made with the same prompts is compared with a query."""
    build_index(DOCUMENTS, tmp_path / "index")
    plain, scorer, sentences = (
        opened(bert()),
        opened(prompted(bert(), BOTH)),
        parse_segmenter("sentences"),
    )
    with IndexWriter(tmp_path / "index") as writer:
        attach(writer, [precompute_vectors(plain, sentences, str(plain.checkpoint.root))])
    attachments = Index(tmp_path / "index").attachments
    assert fitting_set(attachments, plain, sentences) == "vectors"
    assert fitting_set(attachments, scorer, sentences) is None


def test_stored_vectors_are_compared_with_prompted_queries(bert: Bert, tmp_path: Path) -> None:
    """Scores by stored vectors are those of the model; an empty query has no tokens."""
    build_index(DOCUMENTS, tmp_path / "index")
    scorer, sentences = opened(prompted(bert(), BOTH)), parse_segmenter("sentences")
    with IndexWriter(tmp_path / "index") as writer:
        attach(writer, [precompute_vectors(scorer, sentences, "model")])
    stored = open_stored_embedding(Index(tmp_path / "index"), None, lambda model: scorer, None)
    texts = [segment.text for segment in sentences(DOCUMENTS[0])]
    [score] = stored.scores("birch", [DOCUMENTS[0].doc_id])
    assert score == pytest.approx(scorer.score("birch", scorer.encode(texts)).max(), abs=1e-3)
    np.testing.assert_array_equal(stored.embed("birch"), scorer.embed_query("birch"))
    assert stored.has_tokens("birch")
    assert not stored.has_tokens(" ")


def test_they_are_described(bert: Bert) -> None:
    """Control characters of a prompt do not reach the terminal."""
    described = str(describe(prompted(bert(), {"query": "\x1b[31mred: "}), "model"))
    assert r"embedding by mean, query prompt '\x1b[31mred: ', reads 32 tokens" in described
    assert "document prompt 'stone '" in str(describe(prompted(bert(), BOTH), "model"))


@pytest.mark.parametrize(
    ("prompts", "default", "message"),
    [
        ([], None, None),
        (["query: "], None, "invalid prompts"),
        ({"query": 1}, None, "invalid prompts"),
        ({"query": {}}, None, "invalid prompts"),
        ({"query": "q: "}, "other", "unknown default_prompt_name"),
        ({"query": "q: "}, [], "unknown default_prompt_name"),
        ({"query": "bee " * 30}, None, "leaves no room for a text"),
        ({"passage": "bee " * 99}, None, "leaves no room for a text"),
    ],
)
def test_unsupported_prompts(bert: Bert, prompts: Any, default: Any, message: str | None) -> None:
    """They are refused by name, with the place, when the model is opened or described."""
    directory = prompted(bert(), prompts, default)
    if message is None:
        opened(directory)
        return
    for load in (opened, lambda path: describe(path, "model")):
        with pytest.raises(CheckpointError, match=message) as refused:
            load(directory)
        assert str(directory) in str(refused.value)


def test_pooling_without_the_prompt(bert: Bert) -> None:
    """It is refused, unless there is no prompt to leave out."""
    directory = bert()
    path = directory / "1_Pooling" / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"include_prompt": False}))
    opened(directory)
    with pytest.raises(CheckpointError, match="include_prompt"):
        opened(prompted(directory, BOTH))


def test_cross_encoders_have_no_prompts(bert: Bert) -> None:
    """A default prompt, which would be put before the query, is refused; others have no effect."""
    directory = prompted(bert(labels=1), BOTH)
    load_scorer(directory, 1)
    with pytest.raises(CheckpointError, match="prompt before query and text together"):
        load_scorer(prompted(directory, BOTH, "query"), 1)
    assert load_scorer(prompted(directory, BOTH, "query"), 1, "mean").kind == "embedding"
