"""Does a vocabulary take in words, and the model read them much as before?"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from birchbark.checkpoint.heads import Pooling
from birchbark.checkpoint.new_words import extend, new_words
from birchbark.checkpoint.packing import pack
from birchbark.checkpoint.reader import Checkpoint
from birchbark.checkpoint.tokenizer import Pieces
from birchbark.cli import group
from birchbark.errors import InputError
from birchbark.score.model import load_scorer
from birchbark.score.scorer import score_texts

TEXTS = ["Rivers, rivers! Bridging honeys.", "The birch rivers of 12 rivering", "honeys and honeys"]


def pieces_of(model: Path) -> Pieces:
    return Pieces(Checkpoint.open(model))


def test_the_most_frequent_words_that_are_taken_apart(bert: Callable[..., Path]) -> None:
    """In the tokeniser's spelling; no number, no word that is a piece, equal ones by letters."""
    pieces = pieces_of(bert())
    heard: list[int] = []
    assert new_words(pieces, TEXTS, 2, heard.append) == {"honeys": 3, "rivers": 3}
    assert sum(heard) == 3
    found = new_words(pieces, TEXTS, 9)
    assert list(found)[:3] == ["honeys", "rivers", "rivering"]
    with pytest.raises(InputError, match="every word is a piece of the vocabulary: found 2 words"):
        new_words(pieces, ["birch river river"], 3)


@pytest.mark.parametrize("bits", [None, 8])
def test_a_longer_vocabulary(bert: Callable[..., Path], tmp_path: Path, bits: int | None) -> None:
    """One token for the word, the mean of its pieces; texts without it score as before."""
    model = bert()
    if bits:
        pack(model, bits, tmp_path / "packed")
        model = tmp_path / "packed"
    extend(model, ["rivers", "honeys"], tmp_path / "more")
    before, after = pieces_of(model), pieces_of(tmp_path / "more")
    assert after.vocabulary() == [*before.vocabulary(), "rivers", "honeys"]
    assert (tmp_path / "more" / "vocab.txt").read_text().splitlines()[-2:] == ["rivers", "honeys"]
    [own], [apart] = after.encode(["Rivers"]), before.encode(["Rivers"])
    assert len(own) == 1 < len(apart)
    old, new = (
        Checkpoint.open(path).tensors()["embeddings.word_embeddings.weight"]
        for path in (model, tmp_path / "more")
    )
    np.testing.assert_array_equal(new[: len(old)], old)
    np.testing.assert_allclose(new[own[0]], old[apart].mean(axis=0), rtol=1e-6)
    scorers = [load_scorer(path) for path in (model, tmp_path / "more")]
    plain, longer = (score_texts(s, "birch", ["the forest", "a canoe"]) for s in scorers)
    np.testing.assert_array_equal(plain, longer)


def test_every_table_of_the_vocabulary_grows(bert: Callable[..., Path], tmp_path: Path) -> None:
    """What a masked model says of words as well; tokenizer.json alone is enough."""
    from safetensors.numpy import load_file, save_file

    model = bert(labels=1)
    weights = load_file(model / "model.safetensors")
    rows = len(weights["bert.embeddings.word_embeddings.weight"])
    weights["cls.predictions.bias"] = np.arange(rows, dtype=np.float32)
    save_file(weights, model / "model.safetensors")
    pieces_of(model).save(model / "tokenizer.json")
    (model / "vocab.txt").unlink()
    extend(model, ["rivers"], tmp_path / "more")
    bias = load_file(tmp_path / "more" / "model.safetensors")["cls.predictions.bias"]
    [apart] = pieces_of(model).encode(["rivers"])
    assert bias.tolist() == [*range(rows), apart.mean()]
    assert json.loads((tmp_path / "more" / "config.json").read_text())["vocab_size"] == rows + 1
    assert Checkpoint.open(tmp_path / "more", pooling=Pooling("cls")).shape.vocabulary == rows + 1


def test_faults(bert: Callable[..., Path], tmp_path: Path) -> None:
    """Words that are known; another kind of vocabulary; nothing is left behind."""
    model = bert()
    for words in (["river"], ["rivers", "rivers"]):
        with pytest.raises(InputError, match="words cannot be added"):
            extend(model, words, tmp_path / "more")
    assert not (tmp_path / "more").exists()
    pieces_of(model).save(model / "tokenizer.json")
    written = json.loads((model / "tokenizer.json").read_text())
    vocabulary = written["model"]["vocab"]
    written["model"] = {"type": "WordLevel", "vocab": vocabulary, "unk_token": "[UNK]"}
    (model / "tokenizer.json").write_text(json.dumps(written))
    with pytest.raises(InputError, match="expected WordPiece, found WordLevel"):
        extend(model, ["rivers"], tmp_path / "more")


def test_command(bert: Callable[..., Path], tmp_path: Path) -> None:
    """Words with their frequencies on standard output, what is saved on the other."""
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
