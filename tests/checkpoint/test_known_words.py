"""Are texts encoded exactly as the tokeniser encodes them, with words remembered?"""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer

from birchbark.checkpoint import known_words
from birchbark.checkpoint.known_words import KnownWords, splits_as_bert
from birchbark.checkpoint.locate import locate
from birchbark.records import Ids

TEXTS = st.lists(
    st.one_of(
        st.text(st.characters(max_codepoint=127)),
        st.text(),
        st.text("aB1' _-.[]\n\tßé"),
        st.sampled_from(["[SEP]", "a [MASK] b", "x" * 150, "don't", "C++ a_b", "\x00a\x7fb\x0bc"]),
    )
)


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.from_file(str(locate("birchbark-minilm-l6") / "tokenizer.json"))


@pytest.fixture(scope="module")
def known(tokenizer: Tokenizer) -> KnownWords:
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return KnownWords(tokenizer)


@given(texts=TEXTS)
def test_ids_are_those_of_the_tokeniser(
    tokenizer: Tokenizer, known: KnownWords, texts: list[str]
) -> None:
    """Texts may have control characters, special tokens, other scripts, and very long words."""
    wanted = tokenizer.encode_batch(texts, add_special_tokens=False)
    for ids, expected in zip(known.encode(texts), wanted, strict=True):
        np.testing.assert_array_equal(ids, expected.ids)
        assert ids.dtype == np.int32


def test_every_ascii_character_is_encoded_alike(tokenizer: Tokenizer, known: KnownWords) -> None:
    """It is tried alone and between letters."""
    texts = [t for i in range(128) for t in (chr(i), f"a{chr(i)}b", f"a {chr(i)} b")]
    wanted = tokenizer.encode_batch(texts, add_special_tokens=False)
    for text, ids, expected in zip(texts, known.encode(texts), wanted, strict=True):
        assert ids.tolist() == expected.ids, repr(text)


def test_memory_is_bounded(tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Words are forgotten when there are too many, and encoded again."""
    monkeypatch.setattr(known_words, "MOST_WORDS", 3)
    small = KnownWords(tokenizer)
    for _ in range(3):
        first = small.encode(["one two three", "four"])
        assert [ids.tolist() for ids in first] == [[2028, 2048, 2093], [2176]]
    assert len(small._words) <= 7


def test_many_new_words_are_encoded_in_several_calls(
    tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A call holds up other threads, and needs some hundred bytes a word."""
    text = " ".join(f"w{n}" for n in range(50))
    wanted = KnownWords(tokenizer).encode([text])[0].tolist()
    monkeypatch.setattr(known_words, "AT_ONCE", 7)
    calls = []
    encode = KnownWords._encoded

    def counted(known: KnownWords, texts: list[str]) -> list[Ids]:
        calls.append(len(texts))
        return encode(known, texts)

    monkeypatch.setattr(KnownWords, "_encoded", counted)
    assert KnownWords(tokenizer).encode([text])[0].tolist() == wanted
    assert (max(calls), sum(calls)) == (7, 50)


def test_other_tokenisers_encode_by_themselves(tokenizer: Tokenizer) -> None:
    """Those that keep case, or have an added token without a bracket."""
    settings = json.loads(tokenizer.to_str())
    assert splits_as_bert(settings)
    cased = {**settings, "normalizer": {**settings["normalizer"], "lowercase": False}}
    assert not splits_as_bert(cased)
    more = {**settings["added_tokens"][0], "content": "<extra>"}
    assert not splits_as_bert({**settings, "added_tokens": [*settings["added_tokens"], more]})
    assert not splits_as_bert({**settings, "normalizer": None})
    keeping = Tokenizer.from_str(json.dumps(cased))
    assert (
        KnownWords(keeping).encode(["Paris"])[0].tolist()
        == keeping.encode("Paris", add_special_tokens=False).ids
    )
