"""Do models made of sentence-transformers' modules score here as they do there?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from peer_models import QUERIES, TEXTS, write_encoder

from birchbark.checkpoint.quantize import quantize_model
from birchbark.errors import CheckpointError, InputError
from birchbark.score.describe import describe
from birchbark.score.load_scorer import load_scorer

torch = pytest.importorskip("torch", reason="torch is not installed")
peers = pytest.importorskip("sentence_transformers", reason="it is not installed")

from sentence_transformers.base.modules import Dense, Normalize, Transformer  # noqa: E402
from sentence_transformers.sentence_transformer.modules import (  # noqa: E402
    Dropout,
    LayerNorm,
    Pooling,
)

pytestmark = pytest.mark.filterwarnings("default")
F = torch.nn


def randomised(module: Any, seed: int) -> Any:
    torch.manual_seed(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.3)
    return module


def scores_of(width: int, outputs: int = 1, **settings: Any) -> Any:
    settings = {"activation_function": F.Identity()} | settings
    return Dense(width, outputs, module_output_name="scores", **settings)


def write(base: Path, target: Path, layers: list[Any], mode: str = "cls") -> Any:
    """Save an embedding model, or a cross-encoder if the last layer gives scores."""
    last = getattr(layers[-1], "module_output_name", "") if layers else ""
    make = peers.CrossEncoder if last == "scores" else peers.SentenceTransformer
    layers = [randomised(layer, seed) for seed, layer in enumerate(layers)]
    modules = [Transformer(str(base)), Pooling(24, pooling_mode=mode), *layers]
    model = make(modules=modules, device="cpu")
    model.save_pretrained(str(target))
    return model


CROSS_ENCODERS: dict[str, Any] = {
    "ettin": lambda: [Dense(24, 24, activation_function=F.GELU()), LayerNorm(24), scores_of(24)],
    "bare": lambda: [scores_of(24)],
    "silu": lambda: [
        Dense(24, 12, bias=False, activation_function=F.SiLU()),
        Dropout(0.4),
        LayerNorm(12),
        scores_of(12, bias=False),
    ],
    "deep": lambda: [
        LayerNorm(24),
        Dense(24, 30, activation_function=F.ReLU(), use_residual=True),
        Normalize(),
        Dense(30, 30, activation_function=F.Sigmoid(), use_residual=True),
        scores_of(30, activation_function=F.Tanh()),
    ],
    "two labels": lambda: [Dense(24, 8), scores_of(8, 2)],
}


@pytest.mark.parametrize("kind", ["bytes", "wordpiece"])
@pytest.mark.parametrize("mode", ["cls", "mean", "max"])
@pytest.mark.parametrize("layers", CROSS_ENCODERS)
def test_cross_encoders(layers: str, mode: str, kind: str, tmp_path: Path) -> None:
    """Probabilities are the sigmoids of their logits, with stored weights in 8 bits as well."""
    base = write_encoder(tmp_path / "base", kind)
    peer = write(base, tmp_path / "model", CROSS_ENCODERS[layers](), mode)
    loaded = peers.CrossEncoder(str(tmp_path / "model"), device="cpu")
    scorer = load_scorer(tmp_path / "model", 1)
    assert scorer.kind == "cross-encoder"
    quantize_model(tmp_path / "model", 8, tmp_path / "small")
    small, int8 = (
        load_scorer(tmp_path / "small", 1),
        load_scorer(tmp_path / "model", 1, precision="int8"),
    )
    for query in QUERIES:
        pairs = [(query, text) for text in TEXTS]
        logits = loaded.predict(pairs, activation_fn=F.Identity(), convert_to_tensor=True)
        if layers == "two labels":
            logits = logits[:, 1] - logits[:, 0]
        expected = torch.sigmoid(logits).numpy()
        found = scorer.score(query, scorer.encode(TEXTS))
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)
        for approximate in (small, int8):
            scores = approximate.score(query, approximate.encode(TEXTS))
            np.testing.assert_allclose(scores, expected, rtol=0, atol=0.1)
    assert peer.num_labels == (2 if layers == "two labels" else 1)
    assert np.ptp(found) > 1e-4


EMBEDDINGS: dict[str, Any] = {
    "plain": lambda: [],
    "tanh": lambda: [Dense(24, 12), Normalize()],
    "norm": lambda: [Dense(24, 24, activation_function=F.GELU(), use_residual=True), LayerNorm(24)],
    "scaled first": lambda: [Normalize(), Dense(24, 6, activation_function=F.SiLU())],
}


@pytest.mark.parametrize("layers", EMBEDDINGS)
def test_embeddings(layers: str, tmp_path: Path) -> None:
    """Vectors agree after they are scaled to length 1; Normalize counts where it stands."""
    peer = write(
        write_encoder(tmp_path / "base", "bytes"), tmp_path / "model", EMBEDDINGS[layers]()
    )
    scorer: Any = load_scorer(tmp_path / "model", 1)
    expected = peer.encode(TEXTS, normalize_embeddings=True)
    np.testing.assert_allclose(scorer.embed(scorer.encode(TEXTS)), expected, rtol=0, atol=1e-5)


def test_descriptions(tmp_path: Path) -> None:
    """A cross-encoder and an embedding of modules are told from others."""
    base = write_encoder(tmp_path / "base", "bytes")
    write(base, tmp_path / "a", CROSS_ENCODERS["ettin"](), "mean")
    write(base, tmp_path / "b", EMBEDDINGS["tanh"]())
    described = [str(describe(tmp_path / n, n, check_weights=True)) for n in ("a", "b")]
    assert "cross-encoder with one logit by mean, Dense, LayerNorm and Dense" in described[0]
    assert "embedding by cls and Dense" in described[1]


CHANGES: list[tuple[str, dict[str, Any], str]] = [
    ("2_Dense/config.json", {"activation_function": "torch.nn.Softsign"}, "activation_function"),
    ("4_Dense/config.json", {"module_output_name": "other"}, "module_output_name"),
    ("4_Dense/config.json", {"module_output_name": "sentence_embedding"}, "model_type"),
    ("4_Dense/config.json", {"use_residual": True}, "unsupported scores"),
    ("3_LayerNorm/config.json", {"module_output_name": "scores"}, "module_output_name"),
    ("1_Pooling/config.json", {"pooling_mode": "lasttoken"}, "unsupported pooling"),
    ("config_sentence_transformers.json", {"model_type": "SparseEncoder"}, "model_type"),
    ("config_sentence_transformers.json", {"model_type": "SentenceTransformer"}, "model_type"),
    ("sentence_bert_config.json", {"transformer_task": "fill-mask"}, "transformer_task"),
    (
        "sentence_bert_config.json",
        {"processing_kwargs": {"text": {"max_length": 9, "add_special_tokens": False}}},
        "processing_kwargs",
    ),
    ("sentence_bert_config.json", {"processing_kwargs": {"chat_template": {"a": 1}}}, "processing"),
    ("sentence_bert_config.json", {"processing_kwargs": [1]}, "processing_kwargs"),
    ("sentence_bert_config.json", {"modality_config": {"message": {}}}, "modality_config"),
    ("sentence_bert_config.json", {"modality_config": {"text": {"method": "x"}}}, "text"),
    ("sentence_bert_config.json", {"module_output_name": "x"}, "module_output_name"),
    ("sentence_bert_config.json", {"tokenizer_args": {"x": 1}}, "tokenizer_args"),
    ("sentence_bert_config.json", {"do_lower_case": True}, "do_lower_case"),
]


@pytest.mark.parametrize(("file", "change", "message"), CHANGES)
def test_what_is_not_supported_is_refused(
    file: str, change: dict[str, Any], message: str, tmp_path: Path
) -> None:
    """The message names the setting and its file's folder."""
    base = write_encoder(tmp_path / "base", "bytes")
    write(base, tmp_path / "model", CROSS_ENCODERS["ettin"]())
    path = tmp_path / "model" / file
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(CheckpointError, match=message) as refused:
        load_scorer(tmp_path / "model", 1)
    assert str(tmp_path / "model") in str(refused.value)


@pytest.mark.parametrize("function", ["dot", "euclidean", "manhattan"])
def test_other_similarities_are_refused(function: str, tmp_path: Path) -> None:
    """They differ from the cosine, except for the dot product of vectors of length 1."""
    base = write_encoder(tmp_path / "base", "bytes")
    for name, layers in (("model", [Dense(24, 4)]), ("scaled", [Dense(24, 4), Normalize()])):
        write(base, tmp_path / name, layers)
        path = tmp_path / name / "config_sentence_transformers.json"
        path.write_text(json.dumps({"similarity_fn_name": function}))
        if (name, function) == ("scaled", "dot"):
            load_scorer(tmp_path / name, 1)
            continue
        with pytest.raises(CheckpointError, match="unsupported similarity_fn_name"):
            load_scorer(tmp_path / name, 1)
        load_scorer(tmp_path / name, 1, "mean")


def test_training_refuses_the_layers(tmp_path: Path) -> None:
    """A trained model would lack them; one with a new head has the same encoder."""
    from birchbark.checkpoint.checkpoint import Checkpoint
    from birchbark.train.initialise import Initialisation, open_network

    base = write_encoder(tmp_path / "base", "bytes")
    write(base, tmp_path / "model", CROSS_ENCODERS["ettin"]())
    with pytest.raises(InputError, match="layers after the pooling cannot be trained"):
        open_network(Checkpoint.open(tmp_path / "model"), Initialisation(), 0, "cpu")
    open_network(Checkpoint.open(tmp_path / "model"), Initialisation(head="new"), 0, "cpu")
