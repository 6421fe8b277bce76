"""Do logits and embeddings of every family agree with transformers to 1e-5?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from birchbark.checkpoint.checkpoint import Checkpoint
from birchbark.checkpoint.heads import Pooling
from birchbark.score.load_scorer import load_scorer
from birchbark.score.session import OnnxSession

torch = pytest.importorskip("torch", reason="torch is not installed: nothing to compare with")
transformers = pytest.importorskip("transformers", reason="transformers is not installed")

pytestmark = pytest.mark.filterwarnings("default")

SIZES = {
    "vocab_size": 40,
    "hidden_size": 24,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 36,
    "max_position_embeddings": 36,
}
DISTILBERT = {"dim": 24, "n_layers": 3, "n_heads": 4, "hidden_dim": 36}
DISTILBERT |= {"vocab_size": 40, "max_position_embeddings": 36}
DEBERTA = SIZES | {
    "relative_attention": True,
    "position_buckets": 8,
    "pos_att_type": ["p2c", "c2p"],
    "share_att_key": True,
    "norm_rel_ebd": "layer_norm",
    "position_biased_input": False,
}
MODERNBERT = SIZES | {"local_attention": 8, "num_hidden_layers": 5, "classifier_pooling": "cls"}
MODERNBERT |= dict.fromkeys(("pad_token_id", "bos_token_id", "cls_token_id"), 1)
MODERNBERT |= dict.fromkeys(("eos_token_id", "sep_token_id"), 2)
BIASES = ("norm_bias", "attention_bias", "mlp_bias", "classifier_bias")
FAMILIES: dict[str, tuple[str, dict[str, Any]]] = {
    "bert": ("Bert", SIZES),
    "bert-relu": ("Bert", SIZES | {"hidden_act": "relu"}),
    "roberta": ("Roberta", SIZES | {"type_vocab_size": 1}),
    "xlm-roberta": ("XLMRoberta", SIZES | {"type_vocab_size": 1}),
    "camembert": ("Camembert", SIZES | {"type_vocab_size": 1}),
    "distilbert": ("DistilBert", DISTILBERT),
    "electra": ("Electra", SIZES | {"embedding_size": 8}),
    "electra-wide": ("Electra", SIZES | {"embedding_size": 24}),
    "albert": ("Albert", SIZES | {"embedding_size": 8}),
    "albert-groups": ("Albert", SIZES | {"embedding_size": 24, "num_hidden_groups": 3}),
    "albert-tanh": ("Albert", SIZES | {"embedding_size": 8, "hidden_act": "gelu_pytorch_tanh"}),
    "deberta-v3": ("DebertaV2", DEBERTA),
    "deberta-types": ("DebertaV2", DEBERTA | {"type_vocab_size": 2, "norm_rel_ebd": "none"}),
    "deberta-distances": (
        "DebertaV2",
        DEBERTA | {"position_buckets": -1, "pooler_hidden_act": "tanh"},
    ),
    "modernbert": ("ModernBert", MODERNBERT),
    "modernbert-mean": (
        "ModernBert",
        MODERNBERT | {"classifier_pooling": "mean", "classifier_activation": "relu"},
    ),
    "modernbert-biases": ("ModernBert", MODERNBERT | dict.fromkeys(BIASES, True)),
    "modernbert-local": (
        "ModernBert",  # the last layer is a local one
        MODERNBERT | {"num_hidden_layers": 6, "global_attn_every_n_layers": 4},
    ),
}
IDS = np.random.default_rng(3).integers(5, 40, (6, 31))
TYPES = np.repeat([[0] * 9 + [1] * 22], 6, 0)


def saved(family: str, kind: str, directory: Path, **settings: Any) -> Any:
    """Save a model with random weights, norms and biases included, by transformers."""
    name, sizes = FAMILIES[family]
    torch.manual_seed(0)
    config = getattr(transformers, f"{name}Config")(**sizes, **settings)
    model = getattr(transformers, f"{name}{kind}")(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.2)
    model.save_pretrained(directory)
    return model


def run(model: Any, family: str, types: Any) -> Any:
    inputs = {"input_ids": torch.tensor(IDS)}
    if FAMILIES[family][0] in ("Bert", "Electra", "Albert", "DebertaV2"):
        inputs["token_type_ids"] = torch.tensor(types)
    with torch.no_grad():
        return model(**inputs, output_hidden_states=True)


@pytest.mark.parametrize("logits", [1, 2])
@pytest.mark.parametrize("family", FAMILIES)
def test_logits(family: str, logits: int, tmp_path: Path) -> None:
    """Two logits give their difference, label 1 minus label 0."""
    model = saved(family, "ForSequenceClassification", tmp_path, num_labels=logits)
    out = run(model, family, TYPES).logits.numpy()
    expected = out[:, 0] if logits == 1 else out[:, 1] - out[:, 0]
    scores = OnnxSession(Checkpoint.open(tmp_path)).run(IDS.tolist(), TYPES.tolist())
    np.testing.assert_allclose(scores, expected, rtol=0, atol=1e-5)


def test_next_sentence(tmp_path: Path) -> None:
    """Label 0 means that the second text follows the first."""
    model = saved("bert", "ForPreTraining", tmp_path)
    out = run(model, "bert", TYPES).seq_relationship_logits.numpy()
    scores = OnnxSession(Checkpoint.open(tmp_path)).run(IDS.tolist(), TYPES.tolist())
    np.testing.assert_allclose(scores, out[:, 0] - out[:, 1], rtol=0, atol=1e-5)


@pytest.mark.parametrize("mode", ["cls", "mean", "max"])
@pytest.mark.parametrize("family", FAMILIES)
def test_embeddings(family: str, mode: str, tmp_path: Path) -> None:
    """Vectors of every layer agree, and of the embeddings if they have the hidden size."""
    states = run(saved(family, "Model", tmp_path), family, TYPES * 0).hidden_states
    for layer, state in enumerate(states):
        tokens = state.numpy()
        if tokens.shape[-1] != 24:
            continue
        pooled = {"cls": tokens[:, 0], "mean": tokens.mean(1), "max": tokens.max(1)}[mode]
        expected = pooled / np.linalg.norm(pooled, axis=-1, keepdims=True)
        checkpoint = Checkpoint.open(tmp_path, pooling=Pooling(mode, layer))
        vectors = OnnxSession(checkpoint).run(IDS.tolist())
        np.testing.assert_allclose(vectors, expected, rtol=0, atol=1e-5)


def test_shards(tmp_path: Path) -> None:
    """Shards that transformers writes give the same bits as one file."""
    model = saved("bert", "ForSequenceClassification", tmp_path / "whole", num_labels=1)
    model.save_pretrained(tmp_path / "split", max_shard_size="20KB")
    assert len(list((tmp_path / "split").glob("model-*-of-*.safetensors"))) > 2
    whole, split = (
        OnnxSession(Checkpoint.open(tmp_path / d)).run(list(IDS), list(TYPES))
        for d in ("whole", "split")
    )
    assert np.array_equal(whole, split)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_dense_modules_of_sentence_transformers(tmp_path: Path) -> None:
    """A model with two of them, as sentence-transformers saves it, gives its vectors."""
    peers = pytest.importorskip("sentence_transformers", reason="it is not installed")
    from sentence_transformers.models import Dense, Normalize, Pooling, Transformer
    from zoo import give_tokenizer, write_family

    base = write_family(tmp_path / "base", "bert", None)
    give_tokenizer(base, "bert")
    torch.manual_seed(0)
    first, second = Dense(16, 24), Dense(24, 5, bias=False, activation_function=None)
    modules = [Transformer(str(base)), Pooling(16), first, second, Normalize()]
    peer = peers.SentenceTransformer(modules=modules, device="cpu")
    peer.save(str(tmp_path / "model"))
    texts = ["bees dance", "the birch canoe", "a river"]
    scorer = load_scorer(tmp_path / "model")
    np.testing.assert_allclose(
        scorer.embed(scorer.encode(texts)), peer.encode(texts), rtol=0, atol=1e-5
    )
