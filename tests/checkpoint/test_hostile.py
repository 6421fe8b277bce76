"""Is a damaged or lying model directory told in plain words, whatever it does?"""

from __future__ import annotations

import json
import random
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from zoo import write_family

from birchbark.checkpoint.heads import Pooling
from birchbark.checkpoint.reader import Checkpoint
from birchbark.checkpoint.tokenizer import Pieces
from birchbark.errors import CheckpointError, InputError
from birchbark.score.model import load_scorer
from birchbark.score.session import Session

Bert = Callable[..., Path]
IDS, TYPES = [np.array([2, 5, 6, 3, 7, 3])], [np.array([0, 0, 0, 0, 1, 1])]


def load(directory: Path, pooling: Pooling | None = None) -> float:
    """Open everything that ranking opens, and compute one number."""
    load_scorer(directory, threads=1, pooling=pooling)
    checkpoint = Checkpoint.open(directory, None, pooling)
    Pieces(checkpoint).encode(["bees dance 日", "zeppelin", ""])
    return float(Session(checkpoint, 1).run(IDS, TYPES).flat[0])


def tokenised(directory: Path) -> Path:
    """The directory's tokenizer.json, written from its vocab.txt."""
    from tokenizers.implementations import BertWordPieceTokenizer

    path = directory / "tokenizer.json"
    BertWordPieceTokenizer(str(directory / "vocab.txt")).save(str(path))
    return path


def changed(path: Path, **values: Any) -> Path:
    path.write_text(json.dumps(json.loads(path.read_text()) | values))
    return path


@pytest.mark.parametrize("seed", range(8))
def test_weights_cut_off_anywhere(bert: Bert, seed: int) -> None:
    """In the length of the header, in the header, in the data, at the last byte."""
    weights = bert(labels=1) / "model.safetensors"
    whole = weights.read_bytes()
    header = 8 + int.from_bytes(whole[:8], "little")
    lengths = [*range(9), header - 1, header, header + 1, len(whole) - 1]
    lengths += random.Random(seed).sample(range(len(whole)), 20)
    for length in lengths:
        weights.write_bytes(whole[:length])
        with pytest.raises(CheckpointError, match=r"model\.safetensors: damaged weights"):
            load(weights.parent)
    weights.write_bytes(whole + b"\0")
    with pytest.raises(CheckpointError, match="damaged weights"):
        load(weights.parent)


Header = dict[str, Any]
LIES: dict[str, Callable[[Header, Header], object]] = {
    "beyond the file": lambda h, one: one.update(data_offsets=[0, 2**40]),
    "backwards": lambda h, one: one.update(data_offsets=[64, 0]),
    "negative": lambda h, one: one.update(data_offsets=[-64, 0]),
    "overlapping": lambda h, one: [e.update(data_offsets=[0, 64]) for e in h.values()],
    "huge": lambda h, one: one.update(shape=[2**62, 2**62]),
    "huger than 64 bits": lambda h, one: one.update(shape=[2**80]),
    "negative sizes": lambda h, one: one.update(shape=[-1, 16]),
    "no sizes": lambda h, one: one.update(shape=16),
    "sizes of text": lambda h, one: one.update(shape=["sixteen"]),
    "flat": lambda h, one: one.update(shape=[]),
    "no offsets": lambda h, one: one.pop("data_offsets"),
    "offsets of text": lambda h, one: one.update(data_offsets="0"),
    "unknown type": lambda h, one: one.update(dtype="F33"),
    "type of another width": lambda h, one: one.update(dtype="F64"),
    "no entries": lambda h, one: h.clear(),
    "an entry that is none": lambda h, one: h.update({"x": None}),
    "a list": lambda h, one: h.update({"x": []}),
}


@pytest.mark.parametrize("name", ["classifier.weight", "bert.embeddings.LayerNorm.bias"])
@pytest.mark.parametrize("lie", LIES)
def test_headers_that_lie(bert: Bert, lie: str, name: str) -> None:
    """Sizes and places are held against the file before anything is read there."""
    weights = bert(labels=1) / "model.safetensors"
    whole = weights.read_bytes()
    size = int.from_bytes(whole[:8], "little")
    header = json.loads(whole[8 : 8 + size])
    header.pop("__metadata__", None)
    LIES[lie](header, header[name])
    written = json.dumps(header).encode()
    weights.write_bytes(struct.pack("<Q", len(written)) + written + whole[8 + size :])
    with pytest.raises(CheckpointError, match=r"damaged weights|unknown head|do not fit"):
        load(weights.parent)


@pytest.mark.parametrize("header", [b"[" * 100_000, b"null", b"[]", b"{}", b'"x"', b"\xff\xfe"])
def test_headers_that_are_none(bert: Bert, header: bytes) -> None:
    """JSON of another kind, or too deep for the parser."""
    weights = bert(labels=1) / "model.safetensors"
    weights.write_bytes(struct.pack("<Q", len(header)) + header)
    with pytest.raises(CheckpointError, match=r"damaged weights|unknown head"):
        load(weights.parent)


@pytest.mark.parametrize("size", [0, 2**31, 2**63, 2**64 - 1])
def test_headers_of_impossible_sizes(bert: Bert, size: int) -> None:
    """No memory is asked for on a stranger's word."""
    weights = bert(labels=1) / "model.safetensors"
    weights.write_bytes(struct.pack("<Q", size) + weights.read_bytes()[8:])
    with pytest.raises(CheckpointError, match="damaged weights"):
        load(weights.parent)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", ["embeddings.word_embeddings", "encoder.layer.1.output.dense"])
def test_weights_that_are_no_numbers(bert: Bert, name: str, value: float) -> None:
    """Told with the tensor's name, when loading: not when a rare word comes along."""
    weights = bert() / "model.safetensors"
    tensors = load_file(weights)
    tensors[f"{name}.weight"][-1, -1] = value
    save_file(tensors, weights)
    with pytest.raises(CheckpointError, match=rf"{name}\.weight are not all numbers"):
        load(weights.parent)


def test_scores_that_are_no_numbers(bert: Bert) -> None:
    """Weights that are numbers, but too large to be added up, give no scores."""
    weights = bert() / "model.safetensors"
    tensors = load_file(weights)
    for name in tensors:
        tensors[name] *= np.float32(1e30)
    save_file(tensors, weights)
    with pytest.raises(CheckpointError, match="computes something that is no number"):
        load(weights.parent)


WRONG = [None, True, -1, 0, 1.5, 10**30, "16", "x", [16], {}, 1e400, 7]


@pytest.mark.parametrize("value", WRONG, ids=str)
@pytest.mark.parametrize(
    "key",
    [
        "hidden_size",
        "num_hidden_layers",
        "num_attention_heads",
        "intermediate_size",
        "vocab_size",
        "max_position_embeddings",
        "type_vocab_size",
    ],
)
def test_wrong_sizes_in_the_configuration(bert: Bert, key: str, value: Any) -> None:
    """Of a wrong type, out of range, or other than those of the weights; more layers, or fewer."""
    directory = bert(labels=1)
    changed(directory / "config.json", **{key: value})
    with pytest.raises(CheckpointError, match=r"config\.json"):
        load(directory)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("model_type", None),
        ("model_type", ["bert"]),
        ("model_type", {}),
        ("hidden_act", None),
        ("hidden_act", ["gelu"]),
        ("layer_norm_eps", "small"),
        ("layer_norm_eps", -1),
        ("layer_norm_eps", float("nan")),
        ("layer_norm_eps", None),
        ("position_embedding_type", {}),
        ("num_hidden_layers", 1),
    ],
)
def test_wrong_words_in_the_configuration(bert: Bert, key: str, value: Any) -> None:
    """A layer less would be another model's score; an unknown part cannot be computed."""
    directory = bert(labels=1)
    changed(directory / "config.json", **{key: value})
    with pytest.raises(CheckpointError, match=str(directory)):
        load(directory)


@pytest.mark.parametrize("family", ["roberta", "distilbert", "electra", "albert"])
@pytest.mark.parametrize("value", [None, "1", -1, 10**30, [1]], ids=str)
def test_wrong_sizes_of_other_families(family: str, value: Any, tmp_path: Path) -> None:
    """By their own names for them."""
    directory = write_family(tmp_path / family, family, 1)
    keys = {"roberta": "pad_token_id", "distilbert": "dim", "electra": "embedding_size"}
    changed(directory / "config.json", **{keys.get(family, "num_hidden_groups"): value})
    with pytest.raises(CheckpointError, match=r"config\.json"):
        load(directory)


JUNK = [b"", b"\0", b"{", b"[]", b"null", b"7", b'"x"', b"\xff\xfe", b"[" * 100_000, b"1" * 5000]


@pytest.mark.parametrize("junk", JUNK, ids=range(len(JUNK)))
@pytest.mark.parametrize(
    "name",
    [
        "config.json",
        "tokenizer.json",
        "tokenizer_config.json",
        "modules.json",
        "1_Pooling/config.json",
        "sentence_bert_config.json",
    ],
)
def test_json_that_is_none(bert: Bert, name: str, junk: bytes) -> None:
    """Empty, cut off, of another kind, too deep, not text: the file is named."""
    directory = bert()
    (directory / name).write_bytes(junk)
    if name == "modules.json" and junk == b"[]":  # a list of no modules is one
        assert np.isfinite(load(directory))
        return
    with pytest.raises(CheckpointError, match=str(directory)):
        load(directory)


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "vocab.txt", "modules.json"])
def test_folders_in_the_place_of_files(bert: Bert, name: str) -> None:
    """As an archive that was unpacked wrongly leaves them."""
    directory = bert()
    (directory / name).unlink(missing_ok=True)
    (directory / name).mkdir()
    with pytest.raises(CheckpointError, match=str(directory)):
        load(directory)


@pytest.mark.parametrize("length", ["x", -1, 0, 2, 1.5, [64], True], ids=str)
def test_lengths_that_leave_no_room(bert: Bert, length: Any) -> None:
    """Wrong types, and lengths that special tokens alone would fill."""
    directory = bert()
    (directory / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": length}))
    with pytest.raises(CheckpointError, match=r"max_seq_length|no room for texts"):
        load(directory)


@pytest.mark.parametrize(
    "modules",
    [
        [7],
        [{"path": "x"}],
        [{"type": "a.Transformer", "path": "/etc"}],
        [{"type": "a.Transformer", "path": "../.."}],
        [{"type": "a.Transformer", "path": ["x"]}],
        {"type": "a.Transformer"},
    ],
)
def test_modules_that_are_none(bert: Bert, modules: Any) -> None:
    """Nor does a list of modules lead out of its directory."""
    directory = bert()
    (directory / "modules.json").write_text(json.dumps(modules))
    with pytest.raises(CheckpointError, match=str(directory)):
        load(directory)


def test_a_vocabulary_larger_than_the_weights(bert: Bert) -> None:
    """By vocab.txt and by tokenizer.json, by added and by special tokens."""
    directory = bert()
    path = tokenised(directory)
    whole = json.loads(path.read_text())
    added = {"id": 30, "content": "<x>", "special": True, "single_word": False}
    added |= {"lstrip": False, "rstrip": False, "normalized": False}
    changed(path, added_tokens=[*whole["added_tokens"], added])
    with pytest.raises(CheckpointError, match=r"vocabulary and weights do not fit.*found 31"):
        load(directory)
    path.write_text(json.dumps(whole))
    changed(path, post_processor={"type": "BertProcessing", "sep": ["[SEP]", 900], "cls": ["C", 2]})
    with pytest.raises(CheckpointError, match=r"special tokens and weights.*found 900"):
        load(directory)
    path.unlink()
    with (directory / "vocab.txt").open("a") as out:
        out.write("zeppelin\n")
    with pytest.raises(CheckpointError, match="vocabulary and weights do not fit"):
        load(directory)


@pytest.mark.parametrize(("tokens", "fits"), [(30_522, True), (29_900, True), (28_996, False)])
def test_a_vocabulary_far_smaller_than_the_weights(bert: Bert, tokens: int, fits: bool) -> None:
    """A cased vocabulary beside uncased weights is refused; a table that was filled up is not."""
    directory = bert()
    weights = load_file(directory / "model.safetensors")
    weights["embeddings.word_embeddings.weight"] = np.zeros((30_522, 16), np.float32)
    save_file(weights, directory / "model.safetensors")
    changed(directory / "config.json", vocab_size=30_522)
    words = (directory / "vocab.txt").read_text().split()
    words += [f"word{i}" for i in range(tokens - len(words))]
    (directory / "vocab.txt").write_text("\n".join(words))
    if fits:
        assert np.isfinite(load(directory))
        return
    with pytest.raises(CheckpointError, match=r"do not fit.*at least 29522, found 28996"):
        load(directory)


@pytest.mark.parametrize("keep", [0, 1, 3])
def test_a_vocabulary_without_special_tokens(bert: Bert, keep: int) -> None:
    """Cut off before [SEP], or empty."""
    directory = bert()
    words = (directory / "vocab.txt").read_text().split()[:keep]
    (directory / "vocab.txt").write_text("\n".join(words))
    with pytest.raises(CheckpointError, match="damaged tokeniser"):
        load(directory)


@pytest.mark.parametrize("seed", range(40))
def test_a_tokeniser_with_something_else_in_some_place(bert: Bert, seed: int) -> None:
    """Whatever value stands anywhere in tokenizer.json: refused, or a score that is a number."""
    directory = bert(labels=1)
    path = tokenised(directory)
    whole = path.read_text()
    dice = random.Random(seed)
    for _ in range(10):
        tree = json.loads(whole)
        place = tree
        while True:
            key = dice.choice(list(place) if isinstance(place, dict) else range(len(place)))
            below = place[key]
            if not below or not isinstance(below, dict | list) or dice.random() < 0.3:
                break
            place = below
        place[key] = dice.choice([None, [], {}, "x", -1, 2**40, True, 0.5, "[CLS]"])
        path.write_text(json.dumps(tree))
        try:
            assert np.isfinite(load(directory))
        except CheckpointError as refused:
            assert str(directory) in str(refused)


def test_half_a_surrogate_pair_is_the_texts_fault(bert: Bert) -> None:
    """JSON can smuggle one in; the tokeniser is not to blame."""
    pieces = Pieces(Checkpoint.open(bert()))
    for ask in (lambda text: pieces.encode([text]), pieces.spans):
        with pytest.raises(InputError, match="surrogate"):
            ask("bee \ud800")


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "model.safetensors"])
@pytest.mark.parametrize("seed", range(5))
def test_bytes_that_changed_on_the_way(bert: Bert, name: str, seed: int) -> None:
    """Refused, or a score that is a number; never a traceback."""
    directory = bert(labels=1)
    tokenised(directory)
    whole = (directory / name).read_bytes()
    dice = random.Random(seed)
    reach = 8 + int.from_bytes(whole[:8], "little") if name.endswith("safetensors") else len(whole)
    for _ in range(20):
        damaged = bytearray(whole)
        for _ in range(dice.randint(1, 3)):
            damaged[dice.randrange(reach)] = dice.randrange(256)
        (directory / name).write_bytes(damaged)
        try:
            assert np.isfinite(load(directory))
        except CheckpointError as refused:
            assert str(directory) in str(refused)
