"""Is a manifest read as it was written, and refused where it is wrong?"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from attached_words import SCHEMA, refuse, words_of

from birchbark.errors import ArtifactError, InputError
from birchbark.index.build_index import build_index
from birchbark.index.index import Index
from birchbark.index.layout import MANIFEST, Manifest
from birchbark.index.shards import is_index
from birchbark.index.writer import IndexWriter
from conftest import DOCUMENTS


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "damaged index"),
        pytest.param("[" * 200_000, "damaged index", id="deep"),
        ("{}", "not an index"),
        (
            '{"format": "birchbark index", "version": 99}',
            "unsupported index version: expected 7, found 99",
        ),
        ('{"format": "birchbark index", "version": 7}', "checksum is wrong"),
    ],
)
def test_an_invalid_manifest_is_reported(tmp_path: Path, content: str, message: str) -> None:
    """It is damaged, of another program, or of another version."""
    (tmp_path / MANIFEST).write_text(content)
    is_index(tmp_path)  # without an error
    with pytest.raises(ArtifactError, match=message):
        Index(tmp_path)


def test_what_to_do_about_a_folder_that_is_no_index(tmp_path: Path) -> None:
    """Its index may be beside it, or be made; and a folder that is missing is said to be."""
    folder = tmp_path / "notes"
    with pytest.raises(InputError, match=r"no index here.*there is no such folder"):
        Index(folder)
    folder.mkdir()
    with pytest.raises(
        InputError, match=r"make one of this folder: birchbark index .*notes\.index"
    ):
        Index(folder)
    build_index(DOCUMENTS, tmp_path / "notes.index")
    with pytest.raises(InputError, match=r"the index of this folder is .*notes\.index"):
        Index(folder)


def test_manifest_round_trips(index: Index, tmp_path: Path) -> None:
    """A manifest is read as it was written."""
    manifest = Manifest.read(index.directory)
    manifest.write(tmp_path)
    assert Manifest.read(tmp_path) == manifest


@pytest.mark.parametrize("name", ["../other", "part-1/..", "/tmp", "part-000001-000\n", ""])
def test_a_manifest_names_no_folder_elsewhere(tmp_path: Path, name: str) -> None:
    """Otherwise a writer might delete it."""
    build_index(DOCUMENTS, tmp_path / "i")
    manifest = Manifest.read(tmp_path / "i")
    replace(manifest, parts=(replace(manifest.parts[0], name=name),)).write(tmp_path / "i")
    for open_index in (Index, IndexWriter):
        with pytest.raises(ArtifactError, match="is not the name of a part"):
            open_index(tmp_path / "i")


def test_manifest_with_attachments_round_trips(tmp_path: Path) -> None:
    """A manifest is read as it was written; tuples in a config come back as lists."""
    build_index(DOCUMENTS, tmp_path / "i")
    schema = replace(SCHEMA, config={"windows": (150, 50), "model": None})
    with IndexWriter(tmp_path / "i") as writer:
        writer.attach("words", schema, words_of())
        writer.attach("words", schema, refuse)
        assert writer.attachments["words"].config == {"windows": [150, 50], "model": None}
    manifest = Manifest.read(tmp_path / "i")
    manifest.write(tmp_path)
    assert Manifest.read(tmp_path) == manifest
