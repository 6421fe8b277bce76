"""Are words added to a vocabulary, and does the model read them much as before?"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from birchbark.checkpoint.checkpoint import Checkpoint
from birchbark.checkpoint.extend_vocabulary import extend, frequent_new_words
from birchbark.checkpoint.heads import Pooling
from birchbark.checkpoint.quantize import quantize_model
from birchbark.checkpoint.tokenizer import CheckpointTokenizer
from birchbark.cli import group
from birchbark.errors import InputError
from birchbark.score.load_scorer import load_scorer
from birchbark.score.scorer import score_texts

TEXTS = ["Rivers, rivers! Bridging honeys.", "The birch rivers of 12 rivering", "honeys and honeys"]


def tokenizer_of(model: Path) -> CheckpointTokenizer:
    return CheckpointTokenizer(Checkpoint.open(model))


def test_the_most_frequent_words_that_the_tokeniser_splits(bert: Callable[..., Path]) -> None:
    """Words are normalised, without numbers and known words; ties are in alphabetical order."""
    tokenizer = tokenizer_of(bert())
    advances: list[int] = []
    assert frequent_new_words(tokenizer, TEXTS, 2, advances.append) == {"honeys": 3, "rivers": 3}
    assert sum(advances) == 3
    assert list(frequent_new_words(tokenizer, TEXTS, 9))[:3] == ["honeys", "rivers", "rivering"]
    with pytest.raises(InputError, match="the vocabulary contains every word: found 2 words"):
        frequent_new_words(tokenizer, ["birch river river"], 3)


def test_words_are_counted_as_they_are_encoded(bert: Callable[..., Path], tmp_path: Path) -> None:
    """Ligatures and full-width letters are others by then, and a word with them has no use."""
    model = bert()
    texts = ["\ufb02owers flowers", "\uff52\uff49\uff56\uff45\uff52\uff53 rivers rivers\u200b"]
    words = frequent_new_words(tokenizer_of(model), texts, 9)
    assert words == {"rivers": 3, "flowers": 2}
    extend(model, list(words), tmp_path / "more")
    encoded = tokenizer_of(tmp_path / "more").encode(" ".join(texts).split())
    size = tokenizer_of(model).size
    assert [ids.tolist() for ids in encoded] == [[size + 1]] * 2 + [[size]] * 3


def test_lines_of_the_vocabulary_are_ids(bert: Callable[..., Path], tmp_path: Path) -> None:
    """Also if the last one had no line feed, as other programs write it."""
    model = bert()
    (model / "vocab.txt").write_text((model / "vocab.txt").read_text().rstrip("\n"))
    extend(model, ["rivers"], tmp_path / "more")
    lines = (tmp_path / "more" / "vocab.txt").read_text().splitlines()
    assert lines == tokenizer_of(tmp_path / "more").vocabulary()


@pytest.mark.parametrize("bits", [None, 8])
def test_an_extended_vocabulary(
    bert: Callable[..., Path], tmp_path: Path, bits: int | None
) -> None:
    """A new word is one token, the mean of its word pieces; other texts score as before."""
    model = bert()
    if bits:
        quantize_model(model, bits, tmp_path / "small")
        model = tmp_path / "small"
    extend(model, ["rivers", "honeys"], tmp_path / "more")
    before, after = tokenizer_of(model), tokenizer_of(tmp_path / "more")
    assert after.vocabulary() == [*before.vocabulary(), "rivers", "honeys"]
    assert (tmp_path / "more" / "vocab.txt").read_text().splitlines()[-2:] == ["rivers", "honeys"]
    [new_ids], [old_ids] = after.encode(["Rivers"]), before.encode(["Rivers"])
    assert len(new_ids) == 1 < len(old_ids)
    old, new = (
        Checkpoint.open(path).tensors()["embeddings.word_embeddings.weight"]
        for path in (model, tmp_path / "more")
    )
    np.testing.assert_array_equal(new[: len(old)], old)
    np.testing.assert_allclose(new[new_ids[0]], old[old_ids].mean(axis=0), rtol=1e-6)
    scorers = [load_scorer(path) for path in (model, tmp_path / "more")]
    expected, scores = (score_texts(s, "birch", ["the forest", "a canoe"]) for s in scorers)
    np.testing.assert_array_equal(scores, expected)


def test_every_table_of_the_vocabulary_grows(bert: Callable[..., Path], tmp_path: Path) -> None:
    """The output bias of a masked language model grows too, and tokenizer.json alone suffices."""
    from safetensors.numpy import load_file, save_file

    model = bert(labels=1)
    weights = load_file(model / "model.safetensors")
    rows = len(weights["bert.embeddings.word_embeddings.weight"])
    weights["cls.predictions.bias"] = np.arange(rows, dtype=np.float32)
    save_file(weights, model / "model.safetensors")
    tokenizer_of(model).save(model / "tokenizer.json")
    (model / "vocab.txt").unlink()
    extend(model, ["rivers"], tmp_path / "more")
    bias = load_file(tmp_path / "more" / "model.safetensors")["cls.predictions.bias"]
    [wordpieces] = tokenizer_of(model).encode(["rivers"])
    assert bias.tolist() == [*range(rows), wordpieces.mean()]
    assert json.loads((tmp_path / "more" / "config.json").read_text())["vocab_size"] == rows + 1
    assert Checkpoint.open(tmp_path / "more", pooling=Pooling("cls")).config.vocabulary == rows + 1


def test_words_that_cannot_be_added(bert: Callable[..., Path], tmp_path: Path) -> None:
    """Known or repeated words and tokenisers other than WordPiece are rejected before writing."""
    model = bert()
    for words in (["river"], ["rivers", "rivers"]):
        with pytest.raises(InputError, match="words cannot be added"):
            extend(model, words, tmp_path / "more")
    assert not (tmp_path / "more").exists()
    tokenizer_of(model).save(model / "tokenizer.json")
    settings = json.loads((model / "tokenizer.json").read_text())
    vocabulary = settings["model"]["vocab"]
    settings["model"] = {"type": "WordLevel", "vocab": vocabulary, "unk_token": "[UNK]"}
    (model / "tokenizer.json").write_text(json.dumps(settings))
    with pytest.raises(InputError, match="expected WordPiece, found WordLevel"):
        extend(model, ["rivers"], tmp_path / "more")


def test_command(bert: Callable[..., Path], tmp_path: Path) -> None:
    """Words and frequencies go to standard output, the saving in tokens to standard error."""
    rows = [json.dumps({"id": str(n), "title": "Rivers", "text": t}) for n, t in enumerate(TEXTS)]
    (tmp_path / "c.jsonl").write_text("\n".join(rows))
    command = ["model", "extend", str(bert()), str(tmp_path / "c.jsonl"), "--words", "2"]
    done = CliRunner().invoke(
        group, [*command, "--to", str(tmp_path / "more")], catch_exceptions=False
    )
    assert done.stdout == "rivers\t6\nhoneys\t3\n"
    assert "titles: 2.0 tokens on average before, 1.0 after: 50.0% saved" in done.stderr
    with pytest.raises(InputError, match="already exists"):
        CliRunner().invoke(group, [*command, "--to", str(tmp_path)], catch_exceptions=False)
