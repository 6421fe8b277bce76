"""How are the frequent words of a collection added to a model's vocabulary?

As in section 3.3.2 of the cord paper, the most frequent words that the vocabulary lacks are added.
The embedding of a new word is the mean of its word pieces' embeddings, so that the model treats the
word much as before until it is trained further.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from birchbark.artifact import write_json
from birchbark.checkpoint.checkpoint import open_any_head
from birchbark.checkpoint.json_files import read_object
from birchbark.checkpoint.quantize import model_copy
from birchbark.checkpoint.tokenizer import CheckpointTokenizer
from birchbark.errors import InputError
from birchbark.text.normal_form import usual_letters

BATCH_SIZE = 1024  # words per call of the tokeniser


def frequent_new_words(
    tokenizer: CheckpointTokenizer,
    texts: Iterable[str],
    count: int,
    advance: Callable[[int], object] = lambda texts: None,
) -> dict[str, int]:
    """Return the most frequent words that the tokeniser splits: word → number of occurrences.

    Words begin with a letter, and are separated and normalised by the tokeniser (usually to lower
    case). Equally frequent words are in alphabetical order. count: maximum number of words.
    advance: called with 1 after each text. Raises InputError if the tokeniser splits no word.
    """
    frequencies: Counter[str] = Counter()
    for text in texts:
        words_of_text = tokenizer.pretokenize(usual_letters(text))
        frequencies.update(word for word in words_of_text if word[0].isalpha())
        advance(1)
    words = sorted(frequencies, key=lambda word: (-frequencies[word], word))
    new: dict[str, int] = {}
    for start in range(0, len(words), BATCH_SIZE):
        batch = words[start : start + BATCH_SIZE]
        encoded = tokenizer.encode(batch)
        split = [word for word, ids in zip(batch, encoded, strict=True) if len(ids) > 1]
        new |= {word: frequencies[word] for word in split[: count - len(new)]}
        if len(new) == count:
            break
    if not new:
        raise InputError("the vocabulary contains every word", found=f"{len(frequencies):,} words")
    return new


def extend(model: Path, words: Sequence[str], target: Path, *, replace: bool = False) -> None:
    """Write a copy of `model` to `target`, with `words` added to its vocabulary, atomically.

    Every tensor with a row per token (the embeddings, and the output bias of a masked language
    model) gets a row per new word, the mean of its word pieces' rows. Raises InputError if the
    vocabulary already contains one of the words, if the tokeniser is not WordPiece, or if `target`
    exists and `replace` is false.
    """
    checkpoint = open_any_head(model)
    tokenizer = CheckpointTokenizer(checkpoint)
    extended = tokenizer.with_words(words)
    word_ids, size, rows = tokenizer.encode(words), tokenizer.size, checkpoint.config.vocabulary

    def with_new_rows(table: NDArray[Any]) -> NDArray[Any]:
        means = [table[ids].mean(axis=0) for ids in word_ids]
        return np.concatenate([table[:size], np.array(means, table.dtype)])

    with model_copy(model, target, replace=replace) as (scratch, tensors):
        for name, value in tensors.items():
            if value.shape[:1] == (rows,):
                tensors[name] = with_new_rows(value)
        home = scratch / checkpoint.directory.relative_to(model)
        config = read_object(home / "config.json")
        write_json(home / "config.json", {**config, "vocab_size": size + len(words)})
        extended.save(str(home / "tokenizer.json"))
        if (vocabulary := home / "vocab.txt").exists():
            tokens = sorted(extended.get_vocab().items(), key=itemgetter(1))
            vocabulary.write_text("".join(f"{token}\n" for token, _ in tokens), "utf-8")
