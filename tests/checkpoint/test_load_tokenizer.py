"""Is a tokeniser loaded as the model needs it, and one that would be a trap refused?"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from damaged_models import Bert, changed, load, tokenised
from safetensors.numpy import load_file, save_file
from zoo import write_family

from birchbark.errors import CheckpointError
from birchbark.score.load_scorer import load_scorer


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


def test_case_matters_for_cased_models(bert: Bert) -> None:
    """Case matters for a cased vocabulary, even without tokenizer.json."""
    directory = bert()
    (directory / "tokenizer_config.json").write_text('{"do_lower_case": false}')
    cased, uncased = load_scorer(directory), load_scorer(bert())
    for scorer, same in ((cased, False), (uncased, True)):
        upper, lower = scorer.encode(["Birch", "birch"])
        assert np.array_equal(upper, lower) == same
