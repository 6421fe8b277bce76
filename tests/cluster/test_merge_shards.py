"""Do shards, joined, give the files of a single process, and are wrong shards refused?"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from birchbark.cli import group
from birchbark.cluster import shard_record as shard_record_module
from birchbark.cluster.merge_shards import merge_shards
from birchbark.cluster.shard import Shard
from birchbark.errors import ArtifactError, BirchbarkError, InputError
from birchbark.index.build_index import Schema, build_index
from birchbark.records import Document

TEXTS = ["red car", "blue car", "red bus", "green bus. Red car.", "blue bicycle", "red red"]
QUERIES = ["red", "car", "bus", "nothing", "blue", "green car", "bicycle"]


@given(st.lists(st.integers()), st.integers(1, 9))
def test_shards_joined_are_the_whole(items: list[int], count: int) -> None:
    """Their sizes differ by at most one."""
    shards = [Shard(number, count).of(items) for number in range(1, count + 1)]
    assert [item for shard in shards for item in shard] == items
    assert max(map(len, shards)) - min(map(len, shards)) <= 1


@pytest.mark.parametrize("text", ["", "1", "0/2", "3/2", "1/0", "a/b", "-1/2", "1/2/3", "1 / 2"])
def test_wrong_shards(text: str) -> None:
    """A shard is NUMBER/COUNT, and its number is at most the count."""
    with pytest.raises(InputError, match="shard"):
        Shard.parse(text)


@pytest.fixture
def work(tmp_path: Path, bert: Callable[..., Path]) -> list[str]:
    """Return the arguments of a command that re-ranks seven queries, with report and evidence."""
    documents = [Document(f"d{n}", {"text": text}) for n, text in enumerate(TEXTS)]
    index, queries, run = (str(tmp_path / name) for name in ("i", "q.tsv", "bm25.run"))
    build_index(documents, tmp_path / "i", Schema("plain"))
    Path(queries).write_text("".join(f"q{n}\t{text}\n" for n, text in enumerate(QUERIES)))
    birchbark("retrieve", index, "--queries", queries, "--output", run)
    model = str(bert(labels=1))
    inputs = [index, "--run", run, "--queries", queries, "--model", model, "--embedding", "none"]
    files = [("--output", "bert.run"), ("--report", "r.tsv"), ("--evidence", "e.jsonl")]
    named = [part for option, name in files for part in (option, str(tmp_path / name))]
    return ["rerank", *inputs, *named]


def birchbark(*arguments: str) -> str:
    """Run a command; return what it says. Raises its error."""
    result = CliRunner().invoke(group, arguments)
    if result.exception:
        raise result.exception
    return result.stderr


def files(folder: Path) -> dict[str, bytes]:
    """Return the three files of the whole."""
    return {name: (folder / name).read_bytes() for name in ("bert.run", "r.tsv", "e.jsonl")}


@pytest.mark.parametrize("count", [1, 2, 5, 9])
def test_all_shards_give_the_files_of_one_process(
    tmp_path: Path, work: list[str], count: int
) -> None:
    """This holds for the run, the report and the evidence, also with more shards than queries."""
    birchbark(*work)
    whole = files(tmp_path)
    for name in whole:
        (tmp_path / name).unlink()
    for number in range(count, 0, -1):
        birchbark(*work, "--shard", f"{number}/{count}")
    assert not (tmp_path / "bert.run").exists()
    said = birchbark("merge", str(tmp_path / "bert.run"), "--delete-shards")
    assert files(tmp_path) == whole
    assert f"joined {count} shard" in said
    assert not list(tmp_path.glob("*-of-*"))


def test_shards_of_a_first_stage(tmp_path: Path, work: list[str]) -> None:
    """A run and its report are joined as well."""
    retrieve = ["retrieve", work[1], "--queries", str(tmp_path / "q.tsv"), "--rm3"]
    names = ("rm3.run", "rm3.tsv")
    retrieve += ["--output", str(tmp_path / names[0]), "--report", str(tmp_path / names[1])]
    birchbark(*retrieve)
    whole = [(tmp_path / name).read_bytes() for name in names]
    for shard in ("1/3", "2/3", "3/3"):
        birchbark(*retrieve, "--shard", shard)
    birchbark("merge", str(tmp_path / "rm3.run"))
    assert [(tmp_path / name).read_bytes() for name in names] == whole


def test_incomplete_or_damaged_shards_are_refused(tmp_path: Path, work: list[str]) -> None:
    """Nothing is written before all shards are known to be whole."""
    target = tmp_path / "bert.run"

    def refused(kind: type[BirchbarkError], message: str) -> None:
        with pytest.raises(kind, match=message):
            merge_shards(target)
        assert not target.exists()

    refused(InputError, r"bert\.run: no finished shards of this file")
    birchbark(*work, "--shard", "1/3")
    birchbark(*work, "--shard", "3/3")
    refused(InputError, r"shards are missing: expected 3 shards, found 2 finished .*--shard 2/3")
    first = tmp_path / "bert.run.1-of-3.json"
    text = first.read_text()
    many = tmp_path / "bert.run.1-of-100000000.json"
    many.write_text(json.dumps({**json.loads(text), "shard": [1, 100_000_000]}))
    for path in (first, tmp_path / "bert.run.3-of-3.json"):
        path.rename(path.with_suffix(".kept"))
    refused(InputError, "shards are missing: .*--shard 11/100000000, and 99,999,989 more")
    many.unlink()
    for path in tmp_path.glob("*.kept"):
        path.rename(path.with_suffix(".json"))
    birchbark(*work, "--shard", "2/3")
    birchbark(*work, "--shard", "2/2")
    refused(InputError, "different divisions: found …-of-2, …-of-3")
    for path in tmp_path.glob("*.2-of-2*"):
        path.unlink()

    part = tmp_path / "e.jsonl.2-of-3"
    text = part.read_text()
    part.write_text(text[:-5])
    refused(ArtifactError, r"e\.jsonl\.2-of-3: a file of a finished shard was changed")
    part.unlink()
    refused(ArtifactError, r"e\.jsonl\.2-of-3: a file of a finished shard is missing .*2/3 again")
    part.write_text(text)

    record = tmp_path / "bert.run.2-of-3.json"
    good = record.read_text()
    record.write_text(json.dumps({**json.loads(good), "version": 9}))
    refused(ArtifactError, "another version: expected birchbark shard 1, found birchbark shard 9")
    record.write_text(json.dumps({**json.loads(good), "shard": [4, 3]}))
    refused(ArtifactError, r"bert\.run\.2-of-3\.json: damaged record of a shard")
    for name in ("../bert.run", "/tmp/bert.run", "..", "", "n" * 300, "a\0b"):
        changed = {**json.loads(good), "files": [[name, 0, "0"]]}
        record.write_text(json.dumps(changed))
        refused(ArtifactError, r"bert\.run\.2-of-3\.json: damaged record of a shard.*the name")
    for header in ("1", -1, 0.5, True):
        changed = {**json.loads(good), "files": [["bert.run", header, "0"]]}
        record.write_text(json.dumps(changed))
        refused(ArtifactError, r"bert\.run\.2-of-3\.json: damaged record of a shard.*the header")
    record.write_text("[")
    refused(ArtifactError, r"bert\.run\.2-of-3\.json: damaged shard")
    record.write_text(good)
    assert merge_shards(target)[1] == 3


def test_shards_of_other_work_are_refused(
    tmp_path: Path, work: list[str], bert: Callable[..., Path]
) -> None:
    """The message says what differs; another path of the same model does not."""
    target = tmp_path / "bert.run"
    birchbark(*work, "--shard", "1/2")

    def refused(difference: str, *options: str) -> None:
        birchbark(*work, *options, "--shard", "2/2")
        with pytest.raises(InputError, match=f"different inputs: found different {difference} "):
            merge_shards(target)

    refused("settings", "--set", "first_stage_weight=0.5")
    refused("models", "--model", str(bert(labels=1, seed=9)))
    run = Path(work[work.index("--run") + 1])
    lines = run.read_text()
    run.write_text(lines.replace("bm25", "other"))
    refused("run")
    run.write_text(lines)
    queries = Path(work[work.index("--queries") + 1])
    queries.write_text(queries.read_text().replace("bicycle", "bus"))
    refused("queries")


def test_other_vectors_are_other_work(tmp_path: Path, work: list[str]) -> None:
    """Stored vectors can change scores, and a pipe cannot be hashed."""
    birchbark(*work, "--shard", "1/2")
    birchbark("index", "attach", work[1])
    birchbark(*work, "--shard", "2/2")
    with pytest.raises(InputError, match="different inputs: found different index "):
        merge_shards(tmp_path / "bert.run")
    piped = [str(tmp_path) if part.endswith("bm25.run") else part for part in work]
    with pytest.raises(BirchbarkError):
        birchbark(*piped, "--shard", "1/2")


def test_unlike_processors(
    tmp_path: Path, work: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their shards are joined on request only."""
    target = tmp_path / "bert.run"
    birchbark(*work, "--shard", "1/2")
    monkeypatch.setattr(shard_record_module, "processor", lambda: "x86_64 avx512f")
    birchbark(*work, "--shard", "2/2")
    with pytest.raises(InputError, match=r"unlike processors.*x86_64 avx512f"):
        merge_shards(target)
    birchbark("merge", str(target), "--unlike-processors")
    assert target.exists()


def test_wrong_options(tmp_path: Path, work: list[str]) -> None:
    """All files of a shard are in one folder; the run's queries must be among all queries."""
    with pytest.raises(InputError, match="all files must be in one folder"):
        birchbark(*work, "--evidence", str(tmp_path / "i" / "e.jsonl"), "--shard", "1/2")
    with pytest.raises(InputError, match="no such shard"):
        birchbark(*work, "--shard", "3/2")
    queries = Path(work[work.index("--queries") + 1])
    queries.write_text("q0\tred\n")
    with pytest.raises(InputError, match="which is not among the queries"):
        birchbark(*work, "--shard", "1/2")


def test_shards_share_a_store_of_scores(tmp_path: Path, work: list[str]) -> None:
    """Each adds to its own, uses what the whole has, and merging joins them, also elsewhere."""
    here = tmp_path / "here"
    here.mkdir()
    command = [part.replace(str(tmp_path / "bert.run"), str(here / "bert.run")) for part in work]
    command = command[: command.index("--report")]
    scored = ["--scores", str(here / "scores")]
    birchbark(*command, "--scores", str(tmp_path / "all"))
    for shard in ("1/2", "2/2"):
        birchbark(*command, *scored, "--shard", shard)
    assert "was finished before" in birchbark(*command, *scored, "--shard", "1/2")
    assert "was finished before" not in birchbark(*command, "--shard", "1/2")  # other scores
    birchbark(*command, *scored, "--shard", "1/2")
    here = here.rename(tmp_path / "there")
    birchbark("merge", str(here / "bert.run"), "--delete-shards")
    assert sorted(path.name for path in here.iterdir()) == ["bert.run", "scores"]
    listed = CliRunner().invoke(group, ["scores", str(here / "scores")]).output
    expected = CliRunner().invoke(group, ["scores", str(tmp_path / "all")]).output
    assert listed.splitlines()[:2] == expected.splitlines()[:2]
    again = birchbark(
        *command[:-1], str(here / "b.run"), "--scores", str(here / "scores"), "--shard", "1/2"
    )
    assert "0 pairs scored" in again


def test_scores_that_cannot_be_stored_are_refused_first(tmp_path: Path, work: list[str]) -> None:
    """They are refused before a shard is ranked, not when all shards are merged."""
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.txt").write_text("a")
    for scores in ("notes", "q.tsv"):
        with pytest.raises(InputError, match="scores"):
            birchbark(*work, "--scores", str(tmp_path / scores), "--shard", "1/2")
        assert not list(tmp_path.glob("*-of-*"))


def test_other_embedding_weights_are_other_work(tmp_path: Path, work: list[str]) -> None:
    """A weight that was given and an equal one by default are the same work; another one is not."""
    at = work.index("--embedding")
    work = [*work[:at], *work[at + 2 :]]  # with the default embedding
    birchbark(*work, "--shard", "1/3")
    birchbark(*work, "--set", "embedding_weight=0.5", "--shard", "2/3")
    birchbark(*work, "--set", "embedding_weight=0.7", "--shard", "3/3")
    with pytest.raises(
        InputError, match=r"1/3 and 3/3 were made from different inputs.*different settings"
    ):
        merge_shards(tmp_path / "bert.run")
