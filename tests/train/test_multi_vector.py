"""Do multi-vector models of sentence-transformers and PyLate score here as they do there?"""

from __future__ import annotations

import json
import string
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from peer_models import QUERIES, TEXTS, write_encoder

from birchbark.checkpoint.quantize import quantize_model
from birchbark.device.torch_session import TorchSession
from birchbark.errors import CheckpointError, InputError
from birchbark.score.describe import describe
from birchbark.score.dynamic_batching import dynamic_batcher
from birchbark.score.late_interaction import LateInteractionScorer
from birchbark.score.load_scorer import load_scorer

torch = pytest.importorskip("torch", reason="torch is not installed")
peers = pytest.importorskip("sentence_transformers", reason="it is not installed")

from sentence_transformers.base.modules import Dense, Normalize, Transformer  # noqa: E402
from sentence_transformers.multi_vector_encoder.modules import MultiVectorMask  # noqa: E402

pytestmark = pytest.mark.filterwarnings("default")
TOKENS = "token_embeddings"
SETTINGS = "config_sentence_transformers.json"


def projection(inputs: int, outputs: int, **settings: Any) -> Any:
    torch.manual_seed(outputs)
    settings = {"bias": False, "activation_function": torch.nn.Identity()} | settings
    return Dense(inputs, outputs, module_input_name=TOKENS, **settings)


def write(base: Path, target: Path, prompts: Any = None, mask: Any = None, **settings: Any) -> None:
    """Save a multi-vector model. settings: of its Transformer. mask: of its MultiVectorMask."""
    modules = [
        Transformer(str(base), **settings),
        projection(24, 12, bias=True, activation_function=torch.nn.GELU(), use_residual=True),
        projection(12, 8),
        MultiVectorMask(**mask or {}),
        Normalize(module_input_name=TOKENS),
    ]
    peers.MultiVectorEncoder(modules=modules, prompts=prompts, device="cpu").save(str(target))


def compare(model: Path, queries: list[str] = QUERIES, atol: float = 1e-5, **options: Any) -> None:
    """Compare MaxSim with the peer's, divided by the number of the query's vectors."""
    peer = peers.MultiVectorEncoder(str(model), device="cpu")
    scorer = load_scorer(model, 1, **options)
    assert isinstance(scorer, LateInteractionScorer)
    texts, token_ids = peer.encode_document(TEXTS), scorer.encode(TEXTS)
    for query, vectors in zip(queries, peer.encode_query(queries), strict=True):
        expected = peer.similarity([vectors], texts)[0] / len(vectors)
        scores = scorer.score(query, token_ids)
        np.testing.assert_allclose(scores, expected.clamp(min=0), rtol=0, atol=atol)
        assert np.ptp(scores) > 1e-3


MODELS: dict[str, dict[str, Any]] = {
    "plain": {},
    "prompts": {"prompts": {"query": "[Q] ", "document": "search_document: "}},
    "fixed": {"query_expansion": {"strategy": "fixed", "length": 32}},
    "fixed, attended": {"query_expansion": {"strategy": "fixed", "length": 32, "attend": True}},
    "min": {
        "prompts": {"query": "query: "},
        "query_expansion": {"strategy": "min", "length": 9, "token": "[SEP]"},
        "mask": {"skiplist_words": ["[SEP]", "."], "skiplist_tasks": ["document"]},
    },
    "min, attended": {"query_expansion": {"strategy": "min", "length": 7, "attend": True}},
    "skipped": {"mask": {"skiplist_words": [*string.punctuation, "river", "no such token"]}},
    "skipped in both": {
        "mask": {
            "skiplist_words": ["[CLS]", "river", "."],
            "skiplist_tasks": ["query", "document"],
        },
        "query_expansion": {"strategy": "fixed", "length": 20},
    },
    "lengths": {"query_length": 30, "document_length": 40},
}


@pytest.mark.parametrize("kind", ["wordpiece", "bytes", "unigram"])
@pytest.mark.parametrize("model", MODELS)
def test_models_of_sentence_transformers(model: str, kind: str, tmp_path: Path) -> None:
    """Markers, expansion and skipped tokens count as they do there, for any tokeniser."""
    write(write_encoder(tmp_path / "base", kind), tmp_path / "model", **MODELS[model])
    compare(tmp_path / "model")


def test_other_arithmetic(tmp_path: Path) -> None:
    """Shared batches and torch give equal scores; int8 and 8-bit weights give similar ones."""
    expansion = {"strategy": "fixed", "length": 32}
    base = write_encoder(tmp_path / "base", "bytes")
    write(base, tmp_path / "model", {"query": "[Q] "}, query_expansion=expansion)
    compare(tmp_path / "model", session=dynamic_batcher())
    compare(tmp_path / "model", session=partial(TorchSession, device="cpu"))
    compare(tmp_path / "model", precision="int8", atol=0.05)
    quantize_model(tmp_path / "model", 8, tmp_path / "small")
    exact, small = (load_scorer(tmp_path / name, 1) for name in ("model", "small"))
    token_ids = exact.encode(TEXTS)
    expected = exact.score(QUERIES[0], token_ids)
    np.testing.assert_allclose(small.score(QUERIES[0], token_ids), expected, atol=0.05)
    assert isinstance(exact, LateInteractionScorer)
    exact.prefetch(QUERIES, token_ids)
    assert exact.score(QUERIES[0], token_ids).tobytes() == expected.tobytes()
    alone = [exact.score(QUERIES[0], [ids])[0] for ids in token_ids]
    assert np.array_equal(alone, expected)


def write_pylate(base: Path, target: Path, **settings: Any) -> None:
    """Write a model as PyLate does; settings: of config_sentence_transformers.json."""
    write(base, target)
    listed = json.loads((target / "modules.json").read_text())[:2]
    listed[1] = {"idx": 1, "name": "1", "path": "1_Dense", "type": "pylate.models.Dense.Dense"}
    (target / "modules.json").write_text(json.dumps(listed))
    weights = torch.randn(8, 24, generator=torch.Generator().manual_seed(1))
    from safetensors.torch import save_file

    save_file({"linear.weight": weights}, target / "1_Dense" / "model.safetensors")
    dense = {"in_features": 24, "out_features": 8, "bias": False}
    dense |= {"activation_function": "torch.nn.modules.linear.Identity"}
    (target / "1_Dense" / "config.json").write_text(json.dumps(dense))
    (target / "sentence_bert_config.json").write_text('{"max_seq_length": 60}')
    stated = {"prompts": {}, "default_prompt_name": None, "similarity_fn_name": "MaxSim"}
    (target / SETTINGS).write_text(json.dumps(stated | settings))


PREFIXES = {"query_prefix": "[Q] ", "document_prefix": "[D] "}
PYLATE: dict[str, dict[str, Any]] = {
    "prefixes": PREFIXES,
    "v3": PREFIXES | {"model_type": "ColBERT", "query_length": 24, "document_length": 50},
    "attended": PREFIXES | {"attend_to_expansion_tokens": True, "query_length": 20},
    "not extended": PREFIXES | {"do_query_expansion": False, "query_length": 20},
    "skipped": PREFIXES | {"skiplist_words": ["river"], "prompts": {"query": "[Q] query: "}},
    "nothing skipped": {"model_type": "ColBERT", "skiplist_words": []},
    "no settings": {"model_type": "ColBERT"},
    "first words": {"query_prefix": "[unused0] ", "document_prefix": "[unused1] "},
}


@pytest.mark.parametrize("kind", ["wordpiece", "bytes"])
@pytest.mark.parametrize("settings", PYLATE)
def test_models_of_pylate(settings: str, kind: str, tmp_path: Path) -> None:
    """Their prefixes are single tokens if the tokeniser has them; punctuation is skipped.

    sentence-transformers saves them in its own form.
    """
    markers = ["[Q] ", "[D] ", "[unused0]", "[unused1]"]
    base = write_encoder(tmp_path / "base", kind, markers)
    write_pylate(base, tmp_path / "model", **PYLATE[settings])
    compare(tmp_path / "model")
    peers.MultiVectorEncoder(str(tmp_path / "model"), device="cpu").save(str(tmp_path / "saved"))
    compare(tmp_path / "saved")
    plain = write_encoder(tmp_path / "plain", kind)
    write_pylate(plain, tmp_path / "other", **PYLATE[settings])
    compare(tmp_path / "other")


def test_long_queries_and_texts(tmp_path: Path) -> None:
    """Nothing is truncated: a long query is refused, and a long text has to be split."""
    base = write_encoder(tmp_path / "base", "wordpiece")
    fixed = {"strategy": "fixed", "length": 10}
    write(base, tmp_path / "model", {"query": "query: "}, query_expansion=fixed, document_length=20)
    scorer = load_scorer(tmp_path / "model", 1)
    assert scorer.token_budget("river") == 18
    prompt = len(scorer.encode(["query: "])[0])
    scorer.token_budget("river " * (8 - prompt))
    with pytest.raises(InputError, match=f"at most {8 - prompt} tokens"):
        scorer.token_budget("river " * (9 - prompt))
    with pytest.raises(InputError, match="segment is too long"):
        scorer.score("river", scorer.encode(["river " * 19]))


def test_descriptions_and_fingerprints(tmp_path: Path) -> None:
    """Each setting that changes scores changes the fingerprint."""
    base = write_encoder(tmp_path / "base", "wordpiece")
    choices = [
        {},
        {"query_expansion": {"strategy": "fixed", "length": 12}},
        {"query_expansion": {"strategy": "fixed", "length": 12, "attend": True}},
        {"query_expansion": {"strategy": "fixed", "length": 12, "token": "[SEP]"}},
        {"mask": {"skiplist_words": ["river"]}},
        {"mask": {"skiplist_words": ["river"], "skiplist_tasks": ["query"]}},
        {"prompts": {"query": "[Q] "}},
    ]
    found = set()
    for number, choice in enumerate(choices):
        model = tmp_path / f"model-{number}"
        write(base, model, **choice)  # type: ignore[arg-type]
        found.add(load_scorer(model, 1).fingerprint)
    assert len(found) == len(choices)
    described = str(describe(tmp_path / "model-1", "m", check_weights=True))
    assert "late interaction of tokens, Dense and Dense, queries extended to 12 tok" in described


CHANGES: list[tuple[str, dict[str, Any], str]] = [
    ("1_Dense/config.json", {"module_input_name": "sentence_embedding"}, "module_input_name"),
    ("1_Dense/config.json", {"module_output_name": "scores"}, "module_output_name"),
    ("3_MultiVectorMask/config.json", {"keep_only_token_ids": [7]}, "keep_only_token_ids"),
    ("3_MultiVectorMask/config.json", {"skiplist_words": "abc"}, "skiplist_words"),
    ("3_MultiVectorMask/config.json", {"skiplist_tasks": ["image"]}, "skiplist_tasks"),
    ("3_MultiVectorMask/config.json", {"other": 1}, "unsupported other"),
    ("4_Normalize/config.json", {"module_input_name": "x"}, "module_input_name"),
    (
        "sentence_bert_config.json",
        {"query_expansion": {"strategy": "max", "length": 9}},
        "strategy",
    ),
    ("sentence_bert_config.json", {"query_expansion": {"strategy": "min"}}, "length"),
    ("sentence_bert_config.json", {"query_expansion": {"strategy": "min", "n": 1}}, "expansion"),
    ("sentence_bert_config.json", {"query_expansion": [1]}, "query_expansion"),
    (
        "sentence_bert_config.json",
        {"query_expansion": {"strategy": "min", "length": 99}},
        "length of query_expansion",
    ),
    (
        "sentence_bert_config.json",
        {"query_expansion": {"strategy": "min", "length": 9, "token": "no such"}},
        "unknown token of query_expansion",
    ),
    (
        "sentence_bert_config.json",
        {"query_expansion": {"strategy": "min", "length": 40}},
        "tokens that are not attended to",  # the windows of this encoder are narrower
    ),
    ("sentence_bert_config.json", {"document_length": -1}, "document_length"),
    ("sentence_bert_config.json", {"query_length": "9"}, "query_length"),
    (SETTINGS, {"model_type": "SentenceTransformer"}, "unsupported modules"),
    (SETTINGS, {"query_prefix": 3}, "query_prefix"),
]


@pytest.mark.parametrize(("file", "change", "message"), CHANGES)
def test_what_is_not_supported_is_refused(
    file: str, change: dict[str, Any], message: str, tmp_path: Path
) -> None:
    """The message names the setting and its place."""
    write(write_encoder(tmp_path / "base", "bytes"), tmp_path / "model")
    path = tmp_path / "model" / file
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(CheckpointError, match=message) as refused:
        load_scorer(tmp_path / "model", 1)
    assert str(tmp_path / "model") in str(refused.value)


@pytest.mark.parametrize("order", [[0, 1, 2, 4], [0, 1, 2, 3], [0, 3, 4, 1], [0, 1, 3, 3, 4]])
def test_incomplete_modules_are_refused(order: list[int], tmp_path: Path) -> None:
    """Vectors must be normalised last, and the tokens that count must be known."""
    write(write_encoder(tmp_path / "base", "bytes"), tmp_path / "model")
    path = tmp_path / "model" / "modules.json"
    modules = json.loads(path.read_text())
    path.write_text(json.dumps([modules[n] for n in order]))
    with pytest.raises(CheckpointError, match="unsupported modules of a model with a vector per"):
        load_scorer(tmp_path / "model", 1)


def test_training_refuses_such_a_base(tmp_path: Path) -> None:
    """A trained embedding model would lack the layers, and compare other tokens."""
    from birchbark.checkpoint.checkpoint import Checkpoint
    from birchbark.train.initialise import Initialisation, open_network

    write(write_encoder(tmp_path / "base", "bytes"), tmp_path / "model")
    base = Checkpoint.open(tmp_path / "model")
    for settings in (Initialisation(pooling="mean"), Initialisation(masked=True)):
        with pytest.raises(InputError, match="a model with a vector per token cannot be trained"):
            open_network(base, settings, 0, "cpu")
