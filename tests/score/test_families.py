"""Is every family of BERT read with its own names, modules, head and special tokens?"""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file
from zoo import FAMILIES, HIDDEN, LAYERS, FamilyReference, write_family

from birchbark.checkpoint.checkpoint import Checkpoint
from birchbark.checkpoint.heads import Pooling
from birchbark.checkpoint.quantize import quantize_model
from birchbark.checkpoint.tokenizer import CheckpointTokenizer
from birchbark.errors import CheckpointError
from birchbark.score.graph import build_graph
from birchbark.score.load_scorer import load_scorer
from birchbark.score.scorer import score_texts
from birchbark.score.session import OnnxSession

RANDOM = np.random.default_rng(7)
IDS = [RANDOM.integers(5, 25, n).tolist() for n in (3, 9, 9, 17, 31, 32, 9, 31)]
TYPES = [[0] * (len(i) // 2) + [1] * (len(i) - len(i) // 2) for i in IDS]


@pytest.mark.parametrize("logits", [1, 2])
@pytest.mark.parametrize("family", FAMILIES)
def test_logits_agree_with_numpy(family: str, logits: int, tmp_path: Path) -> None:
    """Two logits give their difference, label 1 minus label 0."""
    directory = write_family(tmp_path / family, family, logits)
    reference = FamilyReference(directory, family)
    both = [reference.logits(i, t) for i, t in zip(IDS, TYPES, strict=True)]
    expected = [x[0] if logits == 1 else x[1] - x[0] for x in both]
    logits_found = OnnxSession(Checkpoint.open(directory)).run(IDS, TYPES)
    np.testing.assert_allclose(logits_found, expected, rtol=0, atol=1e-5)


def test_next_sentence_is_label_0(tmp_path: Path) -> None:
    """BERT's next-sentence head serves as a relevance classifier."""
    name = "cls.seq_relationship"
    directory = write_family(tmp_path / "nsp", "bert", 2, name)
    reference = FamilyReference(directory, "bert")
    both = [reference.logits(i, t, name) for i, t in zip(IDS, TYPES, strict=True)]
    logits = OnnxSession(Checkpoint.open(directory)).run(IDS, TYPES)
    np.testing.assert_allclose(logits, [x[0] - x[1] for x in both], rtol=0, atol=1e-5)


@pytest.mark.parametrize("head", ["cls.seq_relationship", None])
def test_a_model_says_which_label_means_relevant(head: str | None, tmp_path: Path) -> None:
    """Birch's checkpoints are next-sentence models whose label 1 means relevant."""
    directory = write_family(tmp_path / "bert", "bert", 2, *([head] if head else []))
    config = json.loads((directory / "config.json").read_text())
    logits = {}
    for label in (None, 0, 1):
        said = {} if label is None else {"birchbark": {"relevant_label": label}}
        (directory / "config.json").write_text(json.dumps(config | said))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            load_scorer(directory)
        assert bool(caught) == (label is None and head is not None)
        logits[label] = OnnxSession(Checkpoint.open(directory)).run(IDS, TYPES)
    np.testing.assert_allclose(logits[1], -logits[0], rtol=0, atol=1e-6)
    assert (logits[None] == logits[0 if head else 1]).all()
    for wrong in (2, True, "relevant"):
        (directory / "config.json").write_text(
            json.dumps(config | {"birchbark": {"relevant_label": wrong}})
        )
        with pytest.raises(CheckpointError, match="wrong relevant_label: expected 0 or 1"):
            Checkpoint.open(directory)


@pytest.mark.parametrize("mode", ["cls", "mean", "max"])
@pytest.mark.parametrize("family", FAMILIES)
def test_any_layer_gives_embeddings(family: str, mode: str, tmp_path: Path) -> None:
    """Token vectors of any layer are pooled and scaled to length 1; layer 0 is the embeddings."""
    directory = write_family(tmp_path / family, family, 1)
    reference = FamilyReference(directory, family)
    states = [reference.states(i, [0] * len(i)) for i in IDS]
    for layer in range(LAYERS + 1):
        tokens = [s[layer] for s in states]
        pooled = [{"cls": x[0], "mean": x.mean(0), "max": x.max(0)}[mode] for x in tokens]
        expected = [x / np.linalg.norm(x) for x in pooled]
        checkpoint = Checkpoint.open(directory, pooling=Pooling(mode, layer))
        vectors = OnnxSession(checkpoint).run(IDS)
        np.testing.assert_allclose(vectors, expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("pooling", [None, Pooling("max"), Pooling("cls", 1)])
@pytest.mark.parametrize("family", FAMILIES)
def test_scores_do_not_depend_on_batch_threads_or_order(
    family: str, pooling: Pooling | None, tmp_path: Path
) -> None:
    """Scores are equal to the last bit, for every activation, pooling and head."""
    directory = write_family(tmp_path / family, family, 2)
    checkpoint = Checkpoint.open(directory, pooling=pooling)
    expected = OnnxSession(checkpoint, threads=1).run(IDS, TYPES)
    for threads, tokens in ((1, 1), (2, 40), (2, 10_000)):
        session = OnnxSession(checkpoint, threads, tokens)
        assert np.array_equal(session.run(IDS[::-1], TYPES[::-1])[::-1], expected)


def test_shared_weights_are_stored_once(tmp_path: Path) -> None:
    """ALBERT's weights are not repeated for each layer."""
    checkpoint = Checkpoint.open(write_family(tmp_path / "albert", "albert", 1))
    weights = build_graph(checkpoint)[1]
    assert sum("ffn_output.weight" in name for name in weights) == 1


@pytest.mark.parametrize("mode", ["cls", "mean", "max"])
def test_sentence_transformers_directories(mode: str, tmp_path: Path) -> None:
    """An encoder in a subfolder scores like the encoder alone."""
    home = write_family(tmp_path / "model" / "0_Transformer", "distilbert", None)
    key = {"cls": "cls_token", "mean": "mean_tokens", "max": "max_tokens"}[mode]
    types = {"0_Transformer": "Transformer", "1_Pooling": "Pooling", "2_Normalize": "Normalize"}
    modules = [
        {"path": path, "type": f"sentence_transformers.models.{kind}"}
        for path, kind in types.items()
    ]
    (tmp_path / "model" / "modules.json").write_text(json.dumps(modules))
    (tmp_path / "model" / "1_Pooling").mkdir()
    pooling = tmp_path / "model" / "1_Pooling" / "config.json"
    pooling.write_text(json.dumps({f"pooling_mode_{key}": True}))
    texts = ["bees dance", "the birch canoe"]
    scorer, encoder = load_scorer(tmp_path / "model"), load_scorer(home, pooling=Pooling(mode))
    assert np.array_equal(score_texts(scorer, "bee", texts), score_texts(encoder, "bee", texts))
    assert scorer.fingerprint == encoder.fingerprint
    pooling.write_text('{"pooling_mode": "lasttoken"}')
    with pytest.raises(CheckpointError, match=r"unsupported pooling.*found lasttoken"):
        load_scorer(tmp_path / "model")


def write_dense(folder: Path, outputs: int, inputs: int, activation: str, bias: bool) -> Any:
    """Write a module of type Dense; return its function in numpy."""
    random = np.random.default_rng(outputs)
    weight = random.normal(0, 0.5, (outputs, inputs)).astype(np.float32)
    tensors = {"linear.weight": weight}
    if bias:
        tensors["linear.bias"] = random.normal(0, 0.5, outputs).astype(np.float32)
    folder.mkdir()
    save_file(tensors, folder / "model.safetensors")
    config = {"activation_function": f"torch.nn.modules.{activation}"}
    (folder / "config.json").write_text(json.dumps(config))
    function = np.tanh if activation == "activation.Tanh" else np.asarray
    return lambda x: function(x @ weight.T + tensors.get("linear.bias", 0))


def test_dense_modules(tmp_path: Path) -> None:
    """Linear layers after the pooling are applied in order; each changes the fingerprint."""
    home = write_family(tmp_path / "model", "bert", None)
    first = write_dense(home / "2_Dense", 24, HIDDEN, "activation.Tanh", bias=True)
    second = write_dense(home / "3_Dense", 5, 24, "linear.Identity", bias=False)
    (home / "1_Pooling").mkdir()
    (home / "1_Pooling" / "config.json").write_text('{"pooling_mode_mean_tokens": true}')
    names = {"": "Transformer", "1_Pooling": "Pooling", "2_Dense": "Dense", "3_Dense": "Dense"}
    modules = [{"path": p, "type": f"sentence_transformers.models.{t}"} for p, t in names.items()]
    (home / "modules.json").write_text(json.dumps(modules))
    reference = FamilyReference(home, "bert")
    pooled = [reference.states(ids, [0] * len(ids))[-1].mean(0) for ids in IDS]
    expected = np.array([second(first(x)) for x in pooled])
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    checkpoint = Checkpoint.open(home)
    assert checkpoint.vector_size == 5
    vectors = OnnxSession(checkpoint).run(IDS)
    np.testing.assert_allclose(vectors, expected, rtol=0, atol=1e-5)
    alone = [OnnxSession(checkpoint, threads=1).run([ids])[0] for ids in IDS]
    assert np.array_equal(alone, vectors)  # in a batch or alone
    quantize_model(home, 8, tmp_path / "small")
    small = OnnxSession(Checkpoint.open(tmp_path / "small")).run(IDS)
    np.testing.assert_allclose(small, expected, rtol=0, atol=0.1)
    fingerprint = checkpoint.fingerprint
    (home / "3_Dense" / "config.json").write_text('{"activation_function": "torch.nn.Tanh"}')
    assert Checkpoint.open(home).fingerprint != fingerprint


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"activation_function": "torch.nn.Mish"}, "unsupported activation_function: expected Ide"),
        ({"activation_function": "x.ReLU"}, "unsupported activation_function.*found x.ReLU"),
        ({"use_residual": 2}, "unsupported use_residual: expected False or True, found 2"),
        ({"in_features": 8}, "unsupported in_features: expected 16, found 8"),
        ({"out_features": 8}, "unsupported out_features: expected 24, found 8"),
        ({"bias": False}, "unsupported bias: expected True, found False"),
        ({"module_output_name": "token_embeddings"}, "unsupported module_output_name"),
        ({"module_output_name": "scores"}, "unsupported model_type: expected CrossEncoder"),
        ({"module_input_name": "token_embeddings"}, "unsupported module_input_name"),
    ],
)
def test_unsupported_dense_modules(change: dict[str, Any], message: str, tmp_path: Path) -> None:
    """They are refused instead of being left out, as is one that reads token vectors."""
    home = write_family(tmp_path / "model", "bert", None)
    write_dense(home / "2_Dense", 24, HIDDEN, "activation.Tanh", bias=True)
    (home / "2_Dense" / "config.json").write_text(json.dumps(change))
    (home / "1_Pooling").mkdir()
    (home / "1_Pooling" / "config.json").write_text('{"pooling_mode_mean_tokens": true}')
    for order in (("", "1_Pooling", "2_Dense"), ("", "2_Dense", "1_Pooling")):
        kinds = {"": "Transformer", "1_Pooling": "Pooling", "2_Dense": "Dense"}
        modules = [{"path": p, "type": f"sentence_transformers.models.{kinds[p]}"} for p in order]
        (home / "modules.json").write_text(json.dumps(modules))
        wanted = message if order[1] == "1_Pooling" else "unsupported modules in modules.json"
        with pytest.raises(CheckpointError, match=wanted):
            Checkpoint.open(home)


def test_poolings_have_fingerprints_of_their_own(tmp_path: Path) -> None:
    """Poolings that give different scores have different fingerprints."""
    directory = write_family(tmp_path / "bert", "bert", None)
    choices = [Pooling(mode, layer) for mode in ("cls", "mean", "max") for layer in (0, 2, None)]
    assert len({Checkpoint.open(directory, pooling=p).fingerprint for p in choices}) == 9


def test_roberta_has_its_own_special_tokens(tmp_path: Path) -> None:
    """<s> query </s></s> text </s>, all of type 0, from vocab.json and merges.txt alone."""
    directory = write_family(tmp_path / "roberta", "roberta", 1)
    with pytest.raises(CheckpointError, match=r"no tokeniser.*vocab\.json and merges\.txt"):
        load_scorer(directory)  # a vocab.txt is not RoBERTa's
    tokens = ["<s>", "<pad>", "</s>", "<unk>", "b", "e", "d", "be", "bee", "Ġ", "a", "<mask>"]
    (directory / "vocab.json").write_text(json.dumps({t: i for i, t in enumerate(tokens)}))
    (directory / "merges.txt").write_text("#version: 0.2\nb e\nbe e\n")
    tokenizer = CheckpointTokenizer(Checkpoint.open(directory))
    query, text = tokenizer.encode(["bee", "bed bee"])
    assert (query.tolist(), text.tolist()) == ([8], [7, 6, 9, 8])
    assert tokenizer.single_input(text).tolist() == [0, *text, 2]
    ids, types = tokenizer.pair_input(query, text)
    assert (ids.tolist(), types.tolist()) == ([0, 8, 2, 2, *text, 2], [0] * 9)
    scorer = load_scorer(directory)
    assert scorer.token_budget("bee") == 32 - 4 - 5
    assert 0 < score_texts(scorer, "bee", ["bed bee"])[0] < 1


@pytest.mark.parametrize("family", ["bert", "distilbert", "electra", "albert"])
def test_pairs_agree_with_the_tokeniser(family: str, tmp_path: Path) -> None:
    """Special tokens and types are those of tokenizer.json's post-processor."""
    from tokenizers import Tokenizer
    from tokenizers.implementations import BertWordPieceTokenizer
    from tokenizers.processors import TemplateProcessing

    directory = write_family(tmp_path / family, family, 1)
    tokenizer: Tokenizer = BertWordPieceTokenizer(str(directory / "vocab.txt"))._tokenizer
    layouts = ["[CLS] $A [SEP] $B:1 [SEP]:1", "[CLS] [MASK] $A [SEP] [SEP]:1 $B:1 [SEP]:1"]
    for layout in layouts:
        tokenizer.post_processor = TemplateProcessing(
            single="[CLS] $A [SEP]",
            pair=layout,
            special_tokens=[("[CLS]", 2), ("[SEP]", 3), ("[MASK]", 4)],
        )
        tokenizer.save(str(directory / "tokenizer.json"))
        ours = CheckpointTokenizer(Checkpoint.open(directory))
        expected = tokenizer.encode("birch canoe", "the bees dance .")
        ids, types = ours.pair_input(*ours.encode(["birch canoe", "the bees dance ."]))
        assert (ids.tolist(), types.tolist()) == (expected.ids, expected.type_ids)


def test_a_tokeniser_without_special_tokens_is_rejected(tmp_path: Path) -> None:
    """The model would not read [CLS]."""
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel

    directory = write_family(tmp_path / "bert", "bert", 1)
    Tokenizer(WordLevel({"a": 0, "[UNK]": 1}, unk_token="[UNK]")).save(
        str(directory / "tokenizer.json")
    )
    with pytest.raises(CheckpointError, match=r"special tokens.*post_processor"):
        load_scorer(directory)


@pytest.mark.parametrize("family", FAMILIES)
def test_invalid_models_are_rejected(family: str, tmp_path: Path) -> None:
    """A missing layer, a wrong vocabulary, truncated weights or a pickle are rejected."""
    directory = write_family(tmp_path / family, family, 1)
    with pytest.raises(CheckpointError, match="no such layer: expected 0 to 3, found 4"):
        load_scorer(directory, pooling=Pooling("cls", 4))
    config = json.loads((directory / "config.json").read_text())
    larger = json.dumps(config | {"vocab_size": config["vocab_size"] + 1})
    (directory / "config.json").write_text(larger)
    with pytest.raises(
        CheckpointError, match=r"(word|tok)_embeddings.weight do not fit config\.json"
    ):
        OnnxSession(Checkpoint.open(directory))
    (directory / "config.json").write_text(json.dumps(config))
    weights = directory / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-10])
    with pytest.raises(CheckpointError, match="damaged weights"):
        OnnxSession(Checkpoint.open(directory))
    weights.rename(directory / "pytorch_model.bin")
    with pytest.raises(CheckpointError, match=r"pickle.*run any code.*save_pretrained"):
        load_scorer(directory)
    (directory / "config.json").write_text(json.dumps(config | {"model_type": "t5"}))
    with pytest.raises(CheckpointError, match=r"bert or roberta .*albert .*, found t5"):
        load_scorer(directory)


def test_weights_called_gamma_and_beta_are_read(tmp_path: Path) -> None:
    """Early BERT checkpoints call the weights of norms so."""
    from safetensors.numpy import load_file, save_file

    directory = write_family(tmp_path / "bert", "bert", 1)
    before = OnnxSession(Checkpoint.open(directory)).run(IDS, TYPES)
    weights = directory / "model.safetensors"
    old = {
        name.replace("LayerNorm.weight", "LayerNorm.gamma").replace(
            "LayerNorm.bias", "LayerNorm.beta"
        ): value
        for name, value in load_file(weights).items()
    }
    save_file(old, weights)
    assert np.array_equal(OnnxSession(Checkpoint.open(directory)).run(IDS, TYPES), before)
