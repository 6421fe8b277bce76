"""Do fingerprints of data tell what has changed?"""

from __future__ import annotations

from pathlib import Path

from birchbark.artifact import fingerprint
from birchbark.collection.data_files import KnownFiles, data_fingerprint


def test_a_folder_has_the_names_of_its_files(tmp_path: Path) -> None:
    """A document's id is its name; where the folder lies does not count."""
    for name in ("one", "other"):
        (tmp_path / name / "notes").mkdir(parents=True)
        (tmp_path / name / "notes" / "bees.txt").write_text("Bees dance.")
    one, other = (data_fingerprint(tmp_path / name) for name in ("one", "other"))
    assert one == other
    file = tmp_path / "one" / "notes" / "bees.txt"
    assert data_fingerprint(file) == fingerprint(file) != one
    file.rename(file.with_name("wasps.txt"))
    assert data_fingerprint(tmp_path / "one") != one


def test_full_texts_of_cord19(tmp_path: Path) -> None:
    """Recipes name the metadata alone, which may stay the same."""
    parsed = tmp_path / "document_parses" / "x.json"
    parsed.parent.mkdir()
    parsed.write_text("{}")
    metadata = tmp_path / "metadata.csv"
    metadata.write_text("cord_uid\n")
    known = KnownFiles(tmp_path.parent / "known.json")
    before = data_fingerprint(metadata)
    assert before == known.fingerprint(metadata) == data_fingerprint(tmp_path)
    parsed.write_text("{ }")
    assert before != data_fingerprint(metadata) == known.fingerprint(metadata)
