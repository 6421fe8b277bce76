"""Is a text read after the prompt of its side, with places in the text itself?"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from birchbark.checkpoint.checkpoint import Checkpoint
from birchbark.checkpoint.settings import SETTINGS
from birchbark.checkpoint.single_inputs import SingleInputs
from birchbark.checkpoint.tokenizer import CheckpointTokenizer
from birchbark.errors import CheckpointError
from conftest import VOCABULARY

Bert = Callable[..., Path]


def inputs(directory: Path, side: Any, **prompts: str) -> SingleInputs:
    (directory / SETTINGS).write_text(json.dumps({"prompts": prompts}))
    checkpoint = Checkpoint.open(directory)
    return SingleInputs(checkpoint, CheckpointTokenizer(checkpoint), side)


def words(ids: Any) -> list[str]:
    return [VOCABULARY[i] for i in ids]


def test_the_prompt_is_between_the_special_tokens_and_the_text(bert: Bert) -> None:
    """Only the input has it, not the tokens of the text."""
    read = inputs(bert(), "query", query="the river ", document="stone ")
    [ids] = read.encode(["birch bark"])
    assert words(ids) == ["birch", "bark"]
    assert words(read.input(ids)) == ["[CLS]", "the", "river", "birch", "bark", "[SEP]"]
    assert read.text_range(2) == (3, 5)
    assert read.token_budget == 32 - 2 - 2


def test_each_side_has_its_own_prompt(bert: Bert) -> None:
    """One without a prompt has the whole input for the text."""
    read = inputs(bert(), "document", query="the river ")
    assert words(read.input(read.encode(["bee"])[0])) == ["[CLS]", "bee", "[SEP]"]
    assert (read.token_budget, read.text_range(1)) == (30, (1, 2))


def test_places_are_those_in_the_text(bert: Bert) -> None:
    """The prompt does not move them."""
    read = inputs(bert(), "query", query="the river ")
    assert read.spans("birch bark") == [(0, 5), (6, 10)]


def test_a_word_that_the_text_may_continue_is_read_with_the_text(bert: Bert) -> None:
    """A prompt that ends without a space has fewer tokens of its own."""
    read = inputs(bert(), "query", query="the bee")
    assert words(read.encode(["s"])[0]) == ["bee", "##s"]
    assert words(read.encode([" river"])[0]) == ["bee", "river"]
    assert read.token_budget == 32 - 2 - 1


def test_a_prompt_leaves_room_for_a_text(bert: Bert) -> None:
    """Of 32 tokens, two are special ones."""
    assert inputs(bert(), "query", query="bee " * 29).token_budget == 1
    with pytest.raises(CheckpointError, match="expected fewer than 30 tokens, found 30"):
        inputs(bert(), "query", query="bee " * 30)
