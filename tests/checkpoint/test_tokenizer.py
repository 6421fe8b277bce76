"""Are texts encoded in short steps, with the special tokens that the model needs?"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from damaged_models import Bert
from zoo import write_family

from birchbark.checkpoint import tokenizer as module
from birchbark.checkpoint.checkpoint import Checkpoint
from birchbark.checkpoint.known_words import KnownWords
from birchbark.checkpoint.locate import locate
from birchbark.checkpoint.tokenizer import CheckpointTokenizer
from birchbark.errors import CheckpointError, InputError
from birchbark.records import Ids
from birchbark.score.load_scorer import load_scorer
from birchbark.score.scorer import score_texts


@pytest.fixture(scope="module")
def tokenizer() -> CheckpointTokenizer:
    return CheckpointTokenizer(Checkpoint.open(locate("birchbark-minilm-l6")))


@pytest.mark.parametrize("step", [3, 20])
def test_steps_have_the_tokens_of_the_whole(
    tokenizer: CheckpointTokenizer, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    """Places count from the beginning of the text, also where letters have other forms."""
    text = (
        "The ﬁr and the birch 中文 in H₂O  &  old Ⅷ–Ⅸ canoes,\n\nn\u00adot in a\u0301 river. " * 3
    )
    texts = [text, "", "birch", text[7:]]
    whole = [ids.tolist() for ids in tokenizer.encode(texts)], [*map(tokenizer.spans, texts)]
    monkeypatch.setattr(module, "STEP", step)
    monkeypatch.setattr(module, "REACH", 100)
    steps = [ids.tolist() for ids in tokenizer.encode(texts)], [*map(tokenizer.spans, texts)]
    assert steps == whole


@pytest.mark.parametrize("text", ["-," * 40_000, "中" * 80_000, "\ufdfa" * 80_000, "x " * 40_000])
def test_no_step_is_long(
    tokenizer: CheckpointTokenizer, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    """Whatever the text consists of; a character has at most four tokens."""
    longest = 0
    encode = KnownWords.encode

    def watched(self: KnownWords, texts: Sequence[str]) -> list[Ids]:
        nonlocal longest
        longest = max([longest, *map(len, texts)])
        return encode(self, texts)

    monkeypatch.setattr(KnownWords, "encode", watched)
    (ids,) = tokenizer.encode([text])
    assert 0 < len(ids) <= 4 * len(text)
    assert ids.dtype == np.int32
    assert longest <= 2 * 4 * module.STEP


def test_half_a_surrogate_pair_is_an_input_error(bert: Bert) -> None:
    """A text from JSON can contain a lone surrogate; the error does not blame the tokeniser."""
    tokenizer = CheckpointTokenizer(Checkpoint.open(bert()))
    for tokenise in (lambda text: tokenizer.encode([text]), tokenizer.spans):
        with pytest.raises(InputError, match="surrogate"):
            tokenise("bee \ud800")


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


def test_spans_point_into_the_text(bert: Bert) -> None:
    """Offsets count characters, not bytes."""
    text = "Bées dance — ‘river’ 日"
    spans = load_scorer(bert()).spans(text)
    assert [text[a:b].lower() for a, b in spans][-3:] == ["river", "’", "日"]
