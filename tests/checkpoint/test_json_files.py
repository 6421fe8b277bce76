"""Is a file that is not the expected JSON named in an error?"""

from __future__ import annotations

import os
import re

import numpy as np
import pytest
from damaged_models import Bert, load

from birchbark.errors import CheckpointError

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


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "1_Pooling/config.json"])
def test_a_named_pipe_is_not_read(bert: Bert, name: str) -> None:
    """Reading it would wait for ever."""
    path = bert(labels=1) / name
    path.parent.mkdir(exist_ok=True)
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    with pytest.raises(CheckpointError, match=f"{re.escape(str(path))}: neither a file nor a fol"):
        load(path.parents[name.count("/")])
