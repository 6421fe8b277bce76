"""Which words of a collection does a tokeniser take apart, and how can a model learn them whole?

After the cord paper, 3.3.2: the most frequent words that the vocabulary lacks are added to it. A
new word begins as the mean of its pieces, so that the model reads it much as before until it is
trained.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from birchbark.artifact import write_json
from birchbark.checkpoint.model_json import read_object
from birchbark.checkpoint.packing import write_again
from birchbark.checkpoint.reader import open_any
from birchbark.checkpoint.tokenizer import Pieces
from birchbark.errors import InputError

TOGETHER = 1024  # texts that are taken apart at a time


def new_words(
    pieces: Pieces,
    texts: Iterable[str],
    count: int,
    advance: Callable[[int], object] = lambda texts: None,
) -> dict[str, int]:
    """The `count` most frequent words that have several pieces → how often they occur.

    Words are those of the tokeniser, in its spelling (small letters, for most); they begin with a
    letter. Of equally frequent ones the first by letters. Raises InputError if there are none.
    """
    found: Counter[str] = Counter()
    for text in texts:
        found.update(word for word in pieces.words(text) if word[0].isalpha())
        advance(1)
    words = sorted(found, key=lambda word: (-found[word], word))
    chosen: dict[str, int] = {}
    for begin in range(0, len(words), TOGETHER):
        some = words[begin : begin + TOGETHER]
        apart = [w for w, ids in zip(some, pieces.encode(some), strict=True) if len(ids) > 1]
        chosen |= {word: found[word] for word in apart[: count - len(chosen)]}
        if len(chosen) == count:
            break
    if not chosen:
        raise InputError("every word is a piece of the vocabulary", found=f"{len(found):,} words")
    return chosen


def extend(model: Path, words: Sequence[str], target: Path, *, replace: bool = False) -> None:
    """Write `model` to `target` with `words` in its vocabulary, whole or not at all.

    What the model has for each piece (its vector, and what a masked model says of it) is for a new
    word the mean over its pieces. Raises InputError for words that the vocabulary has, for a
    vocabulary that is none of WordPieces, and if `target` exists unless it is to be replaced.
    """
    checkpoint = open_any(model)
    pieces = Pieces(checkpoint)
    longer = pieces.with_words(words)
    own, size, rows = pieces.encode(words), pieces.size, checkpoint.shape.vocabulary

    def longer_table(value: NDArray[Any]) -> NDArray[Any]:
        means = [value[ids].mean(axis=0) for ids in own]
        return np.concatenate([value[:size], np.array(means, value.dtype)])

    with write_again(model, target, replace=replace) as (scratch, tensors):
        for name, value in tensors.items():
            if value.shape[:1] == (rows,):
                tensors[name] = longer_table(value)
        home = scratch / checkpoint.directory.relative_to(model)
        config = read_object(home / "config.json")
        write_json(home / "config.json", {**config, "vocab_size": size + len(words)})
        longer.save(str(home / "tokenizer.json"))
        if (plain := home / "vocab.txt").exists():
            with plain.open("a", encoding="utf-8") as out:
                out.writelines(f"{word}\n" for word in words)
