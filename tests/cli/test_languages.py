"""Are documents in other languages found, and is it told that the default models read English?"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from birchbark import Index
from birchbark.cli import group
from birchbark.index.sharded_writer import open_writer
from birchbark.pipeline.upkeep.language_notes import language_notes

GERMAN = (
    "Die Häuser der Stadt sind alt, aber viele Menschen wohnen gern in ihnen.",
    "Das Kanu aus Birkenrinde gleitet den Fluss hinunter, an der alten Brücke vorbei.",
)
JAPANESE = (
    "東京タワーは東京都港区にある電波塔である。観光地としても有名で、毎年多くの人が訪れる。" * 2,
    "白樺の樹皮で作られたカヌーは、とても軽くて丈夫なので、川を渡るために使われていた。" * 2,
)


def birchbark(*arguments: str) -> Result:
    return CliRunner().invoke(group, arguments, catch_exceptions=False)


@pytest.fixture(params=[(GERMAN, "german", "altes Haus"), (JAPANESE, "cjk", "東京の観光")])
def collection(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, str, str]:
    """A collection, its analyzer, and a query that its first document answers."""
    texts, analyzer, query = request.param
    lines = [json.dumps({"id": str(n), "text": text}) for n, text in enumerate(texts)]
    (tmp_path / "docs.jsonl").write_text("\n".join(lines))
    return str(tmp_path / "docs.jsonl"), analyzer, query


def test_other_forms_of_words_are_found(collection: tuple[str, str, str], tmp_path: Path) -> None:
    """BM25 finds them with the analyzer of the language."""
    path, analyzer, query = collection
    index = str(tmp_path / "i")
    birchbark("index", path, "--to", index, "--analyzer", analyzer)
    found = birchbark("search", index, query, "--model", "none", "--json").stdout
    first, *_ = map(json.loads, found.splitlines())
    assert first["doc_id"] == "0"
    assert first["snippet"]["marks"]
    assert f"analyzer\t{analyzer}" in birchbark("index", "stats", index).stdout


def test_that_the_models_read_english_is_told(
    collection: tuple[str, str, str], tmp_path: Path
) -> None:
    """It is told when an index is built, unless the analyzer is that of the language."""
    pytest.importorskip("py3langid")
    path, analyzer, _ = collection
    told = birchbark("index", path, "--to", str(tmp_path / "1")).stderr
    assert "another language than English" in told
    assert f"--analyzer {analyzer} is for this language" in told
    told = birchbark("index", path, "--to", str(tmp_path / "2"), "--analyzer", analyzer).stderr
    assert "another language than English" in told
    assert "is for English words" not in told
    short = tmp_path / "short.tsv"
    short.write_text("".join(f"{n}\tDas Haus Nummer {n} ist schön.\n" for n in range(9)))
    told = birchbark("index", str(short), "--to", str(tmp_path / "4")).stderr
    assert "--analyzer german is for this language" in told
    with open_writer(tmp_path / "4") as writer:
        writer.delete("1")
    assert language_notes(Index(tmp_path / "4"))[1].endswith("german is for this language")
    english = tmp_path / "english.tsv"
    english.write_text(
        "1\tThe birch bark canoe glides down the river, past the old stone bridge.\n"
    )
    assert "English" not in birchbark("index", str(english), "--to", str(tmp_path / "3")).stderr


def test_an_unknown_analyzer(collection: tuple[str, str, str], tmp_path: Path) -> None:
    """The error lists those that there are, before anything is read."""
    result = CliRunner().invoke(
        group, ["index", collection[0], "--to", str(tmp_path / "i"), "--analyzer", "klingon"]
    )
    assert "unknown analyzer 'klingon': expected one of english, " in str(result.exception)
    assert not (tmp_path / "i").exists()
