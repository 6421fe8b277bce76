"""Is a damaged or malicious model directory rejected with a CheckpointError?"""

from __future__ import annotations

import json
import os
import re
import struct
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import load_file, save_file
from zoo import write_family

from birchbark.checkpoint.checkpoint import Checkpoint
from birchbark.checkpoint.heads import Pooling
from birchbark.checkpoint.tokenizer import CheckpointTokenizer
from birchbark.errors import CheckpointError, InputError
from birchbark.score.load_scorer import load_scorer
from birchbark.score.session import OnnxSession
from fuzzing import broken, broken_tree, fuzz, is_read

Bert = Callable[..., Path]
IDS, TYPES = [np.array([2, 5, 6, 3, 7, 3])], [np.array([0, 0, 0, 0, 1, 1])]


def load(directory: Path, pooling: Pooling | None = None) -> float:
    """Open everything that ranking opens, and compute one score."""
    load_scorer(directory, threads=1, pooling=pooling)
    checkpoint = Checkpoint.open(directory, None, pooling)
    CheckpointTokenizer(checkpoint).encode(["bees dance 日", "zeppelin", ""])
    return float(OnnxSession(checkpoint, 1).run(IDS, TYPES).flat[0])


def tokenised(directory: Path) -> Path:
    """Write the directory's tokenizer.json from its vocab.txt."""
    from tokenizers.implementations import BertWordPieceTokenizer

    path = directory / "tokenizer.json"
    BertWordPieceTokenizer(str(directory / "vocab.txt")).save(str(path))
    return path


def changed(path: Path, **values: Any) -> Path:
    path.write_text(json.dumps(json.loads(path.read_text()) | values))
    return path


def test_weights_truncated_anywhere(bert: Bert) -> None:
    """Truncation in the header's length, the header or the data is detected."""
    weights = bert(labels=1) / "model.safetensors"
    content = weights.read_bytes()
    header = 8 + int.from_bytes(content[:8], "little")
    lengths = [*range(9), header - 1, header, header + 1, len(content) - 1]
    lengths += range(9, len(content), len(content) // 150)
    for length in lengths:
        weights.write_bytes(content[:length])
        with pytest.raises(CheckpointError, match=r"model\.safetensors: damaged weights"):
            load(weights.parent)
    weights.write_bytes(content + b"\0")
    with pytest.raises(CheckpointError, match="damaged weights"):
        load(weights.parent)


Header = dict[str, Any]
INVALID_HEADERS: dict[str, Callable[[Header, Header], object]] = {
    "beyond the file": lambda header, entry: entry.update(data_offsets=[0, 2**40]),
    "backwards": lambda header, entry: entry.update(data_offsets=[64, 0]),
    "negative": lambda header, entry: entry.update(data_offsets=[-64, 0]),
    "overlapping": lambda header, entry: [e.update(data_offsets=[0, 64]) for e in header.values()],
    "huge": lambda header, entry: entry.update(shape=[2**62, 2**62]),
    "huger than 64 bits": lambda header, entry: entry.update(shape=[2**80]),
    "negative sizes": lambda header, entry: entry.update(shape=[-1, 16]),
    "no sizes": lambda header, entry: entry.update(shape=16),
    "sizes of text": lambda header, entry: entry.update(shape=["sixteen"]),
    "flat": lambda header, entry: entry.update(shape=[]),
    "no offsets": lambda header, entry: entry.pop("data_offsets"),
    "offsets of text": lambda header, entry: entry.update(data_offsets="0"),
    "unknown type": lambda header, entry: entry.update(dtype="F33"),
    "type of another width": lambda header, entry: entry.update(dtype="F64"),
    "no entries": lambda header, entry: header.clear(),
    "an entry that is none": lambda header, entry: header.update({"x": None}),
    "a list": lambda header, entry: header.update({"x": []}),
}


@pytest.mark.parametrize("name", ["classifier.weight", "bert.embeddings.LayerNorm.bias"])
@pytest.mark.parametrize("change", INVALID_HEADERS)
def test_invalid_headers(bert: Bert, change: str, name: str) -> None:
    """Sizes and offsets are checked before anything is read at them."""
    weights = bert(labels=1) / "model.safetensors"
    content = weights.read_bytes()
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + size])
    header.pop("__metadata__", None)
    INVALID_HEADERS[change](header, header[name])
    written = json.dumps(header).encode()
    weights.write_bytes(struct.pack("<Q", len(written)) + written + content[8 + size :])
    with pytest.raises(CheckpointError, match=r"damaged weights|no supported head|do not fit"):
        load(weights.parent)


@pytest.mark.parametrize("header", [b"[" * 100_000, b"null", b"[]", b"{}", b'"x"', b"\xff\xfe"])
def test_headers_that_are_no_objects(bert: Bert, header: bytes) -> None:
    """A header of another JSON type, or nested too deeply for the parser, is rejected."""
    weights = bert(labels=1) / "model.safetensors"
    weights.write_bytes(struct.pack("<Q", len(header)) + header)
    with pytest.raises(CheckpointError, match=r"damaged weights|no supported head"):
        load(weights.parent)


@pytest.mark.parametrize("size", [0, 2**31, 2**63, 2**64 - 1])
def test_headers_of_impossible_sizes(bert: Bert, size: int) -> None:
    """The stated size of the header allocates no memory."""
    weights = bert(labels=1) / "model.safetensors"
    weights.write_bytes(struct.pack("<Q", size) + weights.read_bytes()[8:])
    with pytest.raises(CheckpointError, match="damaged weights"):
        load(weights.parent)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", ["embeddings.word_embeddings", "encoder.layer.1.output.dense"])
def test_weights_that_are_not_finite(bert: Bert, name: str, value: float) -> None:
    """Rejected on loading, with the tensor's name, not when a rare token is first read."""
    weights = bert() / "model.safetensors"
    tensors = load_file(weights)
    tensors[f"{name}.weight"][-1, -1] = value
    save_file(tensors, weights)
    with pytest.raises(CheckpointError, match=rf"{name}\.weight are not finite"):
        load(weights.parent)


def test_scores_that_are_not_finite(bert: Bert) -> None:
    """Finite weights whose sums overflow give an error instead of scores."""
    weights = bert() / "model.safetensors"
    tensors = load_file(weights)
    for name in tensors:
        tensors[name] *= np.float32(1e30)
    save_file(tensors, weights)
    with pytest.raises(CheckpointError, match="the model's output is not finite"):
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
def test_invalid_sizes_in_the_configuration(bert: Bert, key: str, value: Any) -> None:
    """Sizes of a wrong type, out of range, or inconsistent with the weights are rejected."""
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
def test_invalid_settings_in_the_configuration(bert: Bert, key: str, value: Any) -> None:
    """Too few layers for the weights and features that the graph lacks are rejected."""
    directory = bert(labels=1)
    changed(directory / "config.json", **{key: value})
    with pytest.raises(CheckpointError, match=str(directory)):
        load(directory)


@pytest.mark.parametrize("family", ["roberta", "distilbert", "electra", "albert"])
@pytest.mark.parametrize("value", [None, "1", -1, 10**30, [1]], ids=str)
def test_invalid_sizes_of_other_families(family: str, value: Any, tmp_path: Path) -> None:
    """Each family has its own keys for them."""
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
        "config_sentence_transformers.json",
    ],
)
def test_files_that_are_not_the_expected_json(bert: Bert, name: str, junk: bytes) -> None:
    """Empty, truncated, too deeply nested or otherwise invalid files are named in the error."""
    directory = bert()
    (directory / name).write_bytes(junk)
    if name == "modules.json" and junk == b"[]":  # an empty list of modules is valid
        assert np.isfinite(load(directory))
        return
    with pytest.raises(CheckpointError, match=str(directory)):
        load(directory)


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "vocab.txt", "modules.json"])
def test_folders_instead_of_files(bert: Bert, name: str) -> None:
    """A wrongly unpacked archive can leave folders in place of files."""
    directory = bert()
    (directory / name).unlink(missing_ok=True)
    (directory / name).mkdir()
    with pytest.raises(CheckpointError, match=str(directory)):
        load(directory)


@pytest.mark.parametrize("length", ["x", -1, 0, 2, 1.5, [64], True], ids=str)
def test_invalid_maximum_lengths(bert: Bert, length: Any) -> None:
    """Wrong types, and lengths that leave no room for text, are rejected."""
    directory = bert()
    (directory / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": length}))
    with pytest.raises(CheckpointError, match=r"max_seq_length|too short for any text"):
        load(directory)


@pytest.mark.parametrize(
    "modules",
    [
        [7],
        [{"path": "x"}],
        [{"type": "a.Transformer", "path": "/etc"}],
        [{"type": "a.Transformer", "path": "../.."}],
        [{"type": "a.Transformer", "path": ["x"]}],
        *(
            [{"type": "sentence_transformers.models.Transformer", "path": path}]
            for path in ("9" * 1000, "a\0b", "\ud800")
        ),
        {"type": "a.Transformer"},
    ],
)
def test_invalid_lists_of_modules(bert: Bert, modules: Any) -> None:
    """A module's path must not lead out of the directory, and be one that a folder can have."""
    directory = bert()
    (directory / "modules.json").write_text(json.dumps(modules))
    with pytest.raises(CheckpointError, match=str(directory)):
        load(directory)


def test_a_vocabulary_larger_than_the_weights(bert: Bert) -> None:
    """Too many tokens in vocab.txt or tokenizer.json are rejected."""
    directory = bert()
    path = tokenised(directory)
    original = json.loads(path.read_text())
    added = {"id": 30, "content": "<x>", "special": True, "single_word": False}
    added |= {"lstrip": False, "rstrip": False, "normalized": False}
    changed(path, added_tokens=[*original["added_tokens"], added])
    with pytest.raises(CheckpointError, match=r"vocabulary and weights do not match.*found 31"):
        load(directory)
    path.write_text(json.dumps(original))
    changed(path, post_processor={"type": "BertProcessing", "sep": ["[SEP]", 900], "cls": ["C", 2]})
    with pytest.raises(CheckpointError, match=r"special tokens and weights.*found 900"):
        load(directory)
    path.unlink()
    with (directory / "vocab.txt").open("a") as out:
        out.write("zeppelin\n")
    with pytest.raises(CheckpointError, match="vocabulary and weights do not match"):
        load(directory)


def test_a_vocabulary_of_high_ids_takes_no_time(bert: Bert) -> None:
    """Ids beyond the embeddings are refused before the library counts to them."""
    directory = bert()
    path = tokenised(directory)
    model = json.loads(path.read_text())["model"]
    changed(path, model={**model, "vocab": {**model["vocab"], "zeppelin": 4_000_000_000}})
    start = time.process_time()
    with pytest.raises(CheckpointError, match=r"weights do not match.*found 4000000001"):
        load(directory)
    assert time.process_time() - start < 10  # it would be minutes


@pytest.mark.parametrize("name", ["tokenizer.json", "vocab.txt"])
def test_a_tokeniser_of_too_many_bytes(bert: Bert, name: str) -> None:
    """It is not even read."""
    directory = bert()
    with (directory / name).open("wb") as out:
        out.truncate(100_000_001)
    with pytest.raises(
        CheckpointError, match=rf"{name}: the tokeniser is too large: .*100,000,001"
    ):
        load(directory)


@pytest.mark.parametrize(("tokens", "fits"), [(30_522, True), (29_900, True), (28_996, False)])
def test_a_vocabulary_far_smaller_than_the_weights(bert: Bert, tokens: int, fits: bool) -> None:
    """A cased vocabulary with uncased weights is rejected; a padded table is not."""
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
    with pytest.raises(CheckpointError, match=r"do not match.*at least 29522, found 28996"):
        load(directory)


@pytest.mark.parametrize("keep", [0, 1, 3])
def test_a_vocabulary_without_special_tokens(bert: Bert, keep: int) -> None:
    """A vocabulary that is empty, or truncated before [SEP], is rejected."""
    directory = bert()
    words = (directory / "vocab.txt").read_text().split()[:keep]
    (directory / "vocab.txt").write_text("\n".join(words))
    with pytest.raises(CheckpointError, match="damaged tokeniser"):
        load(directory)


@pytest.mark.parametrize(
    "pattern", [{"String": "a"}, {"Regex": "a|e"}, {"Regex": ""}], ids=["text", "regex", "empty"]
)
def test_a_normaliser_that_would_fill_the_memory(bert: Bert, pattern: Any) -> None:
    """Each of many replacements doubles the text; a few are harmless."""
    path = tokenised(bert(labels=1))
    replacement = {"type": "Replace", "pattern": pattern, "content": "aa"}
    changed(path, normalizer={"type": "Sequence", "normalizers": [replacement] * 50})
    with pytest.raises(
        CheckpointError, match=r"tokenizer\.json: the normaliser makes texts too lo"
    ):
        load(path.parent)
    changed(path, normalizer={"type": "Prepend", "prepend": "a " * 1_000_000})
    with pytest.raises(CheckpointError, match="makes texts too long"):
        load(path.parent)
    nested = {"type": "Sequence", "normalizers": [replacement] * 2}
    changed(path, normalizer={"type": "Sequence", "normalizers": [nested]})
    load(path.parent)


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "1_Pooling/config.json"])
def test_a_named_pipe_is_not_read(bert: Bert, name: str) -> None:
    """Reading it would wait for ever."""
    path = bert(labels=1) / name
    path.parent.mkdir(exist_ok=True)
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    with pytest.raises(CheckpointError, match=f"{re.escape(str(path))}: neither a file nor a fol"):
        load(path.parents[name.count("/")])


def test_half_a_surrogate_pair_is_an_input_error(bert: Bert) -> None:
    """A text from JSON can contain a lone surrogate; the error does not blame the tokeniser."""
    tokenizer = CheckpointTokenizer(Checkpoint.open(bert()))
    for tokenise in (lambda text: tokenizer.encode([text]), tokenizer.spans):
        with pytest.raises(InputError, match="surrogate"):
            tokenise("bee \ud800")


CONFIGURED = {  # beside the config.json of a BERT
    "tokenizer_config.json": {"do_lower_case": True, "model_max_length": 32, "strip_accents": None},
    "modules.json": [
        {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
        {
            "idx": 1,
            "name": "1",
            "path": "1_Pooling",
            "type": "sentence_transformers.models.Pooling",
        },
        {"idx": 2, "name": "2", "path": "2", "type": "sentence_transformers.models.Normalize"},
    ],
    "1_Pooling/config.json": {"word_embedding_dimension": 16, "pooling_mode_mean_tokens": True},
    "sentence_bert_config.json": {"max_seq_length": 32, "do_lower_case": False},
    "config_sentence_transformers.json": {"prompts": {"query": "q: "}, "default_prompt_name": None},
    "special_tokens_map.json": {"cls_token": "[CLS]", "sep_token": {"content": "[SEP]"}},
}


@pytest.fixture
def model(bert: Bert) -> Path:
    """An embedding model with all files that one may have."""
    directory = bert()
    tokenised(directory)
    for name, values in CONFIGURED.items():
        (directory / name).write_text(json.dumps(values))
    assert np.isfinite(load(directory))
    return directory


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", *CONFIGURED])
@fuzz(10)
@given(data=st.data())
def test_changed_values(name: str, data: st.DataObject, model: Path) -> None:
    """Whatever values of a file change, the model is rejected or gives a finite score."""
    original = (model / name).read_text()
    (model / name).write_text(json.dumps(data.draw(broken_tree([json.loads(original)]))))
    try:
        score = is_read(lambda: load(model), model)
    finally:  # the next example begins with the original
        (model / name).write_text(original)
    assert score is None or np.isfinite(score)


@pytest.mark.parametrize(
    "name", ["config.json", "tokenizer.json", "vocab.txt", "model.safetensors"]
)
@fuzz(10)
@given(data=st.data())
def test_changed_bytes(name: str, data: st.DataObject, model: Path) -> None:
    """The same, whatever bytes change; of the weights, those of the header."""
    if name == "vocab.txt":
        (model / "tokenizer.json").unlink(missing_ok=True)
    content = (model / name).read_bytes()
    end = len(content)
    if name == "model.safetensors":
        end = 8 + int.from_bytes(content[:8], "little")
    (model / name).write_bytes(data.draw(broken([content[:end]])) + content[end:])
    score = is_read(lambda: load(model), model)
    (model / name).write_bytes(content)
    assert score is None or np.isfinite(score)
