"""Do the commands produce the right output, messages and exit codes?"""

from __future__ import annotations

import gzip
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from birchbark.cli import group, index_of_folder
from birchbark.collection.queries import read_queries
from birchbark.collection.runs import read_run
from birchbark.collection.segment_scores import read_segment_scores
from birchbark.errors import InputError
from birchbark.index.index import Index
from birchbark.retrieve.bm25 import BM25
from birchbark.retrieve.first_stage import FirstStage, rank_queries
from birchbark.segment.by_name import parse_segmenter
from birchbark.segment.whole import whole
from birchbark.segment.windows import Windows
from command_line import birchbark
from conftest import DOCUMENTS, READ_EVERYTHING, write_bert
from test_defaults import commands


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Change to a folder with a collection, queries, judgments and a tiny model."""
    monkeypatch.chdir(tmp_path)
    lines = [json.dumps({"id": d.doc_id, **d.fields}) for d in DOCUMENTS]
    (tmp_path / "docs.jsonl").write_text("\n".join(lines))
    (tmp_path / "q.tsv").write_text("1\tbirch river\n2\tiron engine\n3\tzeppelin\n")
    (tmp_path / "qrels.txt").write_text("1 0 canoe 2\n1 0 forest 1\n2 0 engine 1\n2 0 bees 0\n")
    write_bert(tmp_path / "model", labels=1, positions=64)
    return tmp_path


def test_output_in_an_encoding_that_lacks_characters(
    here: Path,
) -> None:
    """They are escaped."""
    birchbark("index", "docs.jsonl", "--to", "i")
    assert "\\xd7" in birchbark("search", "i", "birch", encoding="ascii")[0]


def test_closed_output() -> None:
    """A process may begin without standard output and error, as services do."""
    command = f"{sys.executable} -m birchbark fuse a.run >&- 2>&-"
    assert subprocess.run(command, shell=True, check=False).returncode == 2
    command = f"{sys.executable} -m birchbark --version >&-"
    done = subprocess.run(command, shell=True, check=False, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
@pytest.mark.parametrize("error", ["SystemError('by numba')", "ImportError('by onnxruntime')"])
def test_an_interruption_that_becomes_another_error(name: str, error: str) -> None:
    """Compiled code and imports report errors of their own; a second signal ends the process."""
    code = f"""
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # nohup and background jobs ignore them
from birchbark.cli.index_of_folder import index_path
from birchbark import cli
def fail(**_):
    try:
        signal.raise_signal(signal.{name})
    except KeyboardInterrupt:
        raise {error}
cli.group.main = fail
try:
    cli.main()
finally:
    signal.raise_signal(signal.{name})
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == -signal.Signals[name]
    assert done.stderr.startswith("birchbark: interrupted")
    assert done.stderr.count("\n") == 1


def test_an_interruption_of_importlib_waits_until_it_is_done() -> None:
    """In its callbacks, errors are lost and locks stay locked."""
    code = """
import signal
from birchbark import cli
def wait(**_):
    callback = "import signal; signal.raise_signal(signal.SIGTERM); print('done', flush=True)"
    exec(compile(callback, cli.IMPORTLIB, "exec"))
    signal.pause()
cli.group.main = wait
cli.main()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (130, "done\n")
    assert done.stderr.startswith("birchbark: interrupted")


def test_other_errors_and_ignored_signals() -> None:
    """An error that nobody expects has its traceback; nohup has SIGHUP ignored."""
    code = """
import signal
from birchbark import cli
signal.signal(signal.SIGHUP, signal.SIG_IGN)
def fail(**_):
    signal.raise_signal(signal.SIGHUP)
    raise SystemError("by numba")
cli.group.main = fail
cli.main()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "SystemError: by numba" in done.stderr


def test_all_ranking_commands(here: Path) -> None:
    """index, retrieve, rerank, evaluate and search work on each other's files."""
    assert "indexed 5 documents" in birchbark("index", "docs.jsonl", "--to", "i")[1]
    queries = ("--queries", "q.tsv")
    stderr = birchbark("retrieve", "i", *queries, "--rm3", "--output", "rm3.run")[1]
    assert "queries that matched nothing: 1 (3)" in stderr
    birchbark(
        "rerank", "i", "--run", "rm3.run", *queries, "--output", "bert.run", "--model", "model",
        "--set", "segments=windows:6/2", "--set", "aggregate=max",
        "--set", "first_stage_weight=0.3",
    )  # fmt: skip
    first, second = read_run(Path("rm3.run")), read_run(Path("bert.run"))
    assert (first.tag, second.tag) == ("bm25+rm3", "bm25+rm3+cross-encoder")
    assert {q: set(r.doc_ids) for q, r in first.rankings.items()} == {
        q: set(r.doc_ids) for q, r in second.rankings.items()
    }
    table = birchbark("evaluate", "qrels.txt", "rm3.run", "bert.run")[0]
    assert all(word in table for word in ("bm25+rm3+cross-encoder", "nDCG@10", "Bonferroni"))
    shown = birchbark("search", "i", "birch river", "--model", "model", "--top", "2")[0]
    assert " 1. " in shown
    assert " 2. " in shown
    assert " 3. " not in shown


def test_json_output_is_json(here: Path) -> None:
    """--json prints every part of every hit, and every figure."""
    birchbark("index", "docs.jsonl", "--to", "i")
    out = birchbark("search", "i", "birch", "--model", "model", "--json")[0]
    hits = [json.loads(line) for line in out.splitlines()]
    assert {h["doc_id"] for h in hits[:2]} == {"canoe", "forest"}
    for hit in hits:
        parts = hit["first_stage"] + hit["embedding"] + hit["evidence"]
        assert hit["score"] == pytest.approx(parts)
    birchbark("retrieve", "i", "--queries", "q.tsv", "--output", "a.run")
    (report,) = json.loads(birchbark("evaluate", "qrels.txt", "a.run", "--json", "-m", "AP")[0])
    assert report["per_query"]["AP"]["2"] == 1.0
    assert report["unjudged"] == 0
    assert report["grades"] is None
    stderr = birchbark("evaluate", "qrels.txt", "a.run", "--json", "--grades", "3")[0]
    assert set(json.loads(stderr)[0]["grades"]) == {"unjudged", "0", "1", "2"}
    assert "unjudged" in birchbark("evaluate", "qrels.txt", "a.run", "--grades", "3")[0]
    rows = birchbark("evaluate", "qrels.txt", "a.run", "--per-query", "-m", "AP")[0].splitlines()
    assert [row.split("\t")[:2] for row in rows] == [["1", "AP"], ["2", "AP"]]
    stderr = birchbark("evaluate", "qrels.txt", "a.run", "--per-query", "--json", status=2)[1]
    assert "--per-query cannot be combined with --json" in stderr


def test_runs_do_not_depend_on_threads(here: Path) -> None:
    """The same command writes the same bytes with any number of threads."""
    birchbark("index", "docs.jsonl", "--to", "i")
    birchbark("retrieve", "i", "--queries", "q.tsv", "--output", "a.run")
    for threads in ("1", "2"):
        birchbark(
            "rerank", "i", "--run", "a.run", "--queries", "q.tsv", "--model", "model",
            "--threads", threads, "--output", f"{threads}.run",
        )  # fmt: skip
    assert Path("1.run").read_bytes() == Path("2.run").read_bytes()


def test_scores_are_stored_listed_and_deleted(here: Path) -> None:
    """A second run or search scores nothing, and ranks the same."""
    birchbark("index", "docs.jsonl", "--to", "i")
    birchbark("retrieve", "i", "--queries", "q.tsv", "--output", "a.run")
    model = ("--model", "model", "--set", "segments=sentences", *READ_EVERYTHING)
    command = ("rerank", "i", "--run", "a.run", "--queries", "q.tsv", *model)
    birchbark(*command, "--output", "plain.run")
    stderr = birchbark(*command, "--output", "1.run", "--scores", "kept")[1]
    pairs = int(stderr.split()[0])
    assert pairs > 5
    assert f"{pairs} pairs scored, 0 reused; scores in kept" in stderr
    for more in (
        (),
        ("--set", "aggregate=max", "--set", "first_stage_weight=0.1", "--set", "depth=2"),
    ):
        stderr = birchbark(*command, "--output", "2.run", "--scores", "kept", *more)[1]
        assert stderr.startswith("0 pairs scored, ")
        if not more:
            assert Path("2.run").read_bytes() == Path("plain.run").read_bytes()
    assert Path("1.run").read_bytes() == Path("plain.run").read_bytes()
    stderr = birchbark("search", "i", "birch river", *model, "--scores", "kept")[1]
    assert stderr.startswith("0 pairs scored, ")
    evidence = (*command, "--scores", "kept", "--output", "3.run", "--evidence")
    assert "are the same file" in birchbark(*evidence, "3.run", status=2)[1]
    birchbark(*evidence, "e.jsonl")
    lines = [json.loads(line) for line in Path("e.jsonl").read_text().splitlines()]
    ranked = [line.split() for line in Path("3.run").read_text().splitlines()]
    assert [(line["query_id"], line["doc_id"]) for line in lines] == [(r[0], r[2]) for r in ranked]
    for line, (*_, score, _) in zip(lines, ranked, strict=True):
        assert line["score"] == pytest.approx(float(score), rel=1e-4)
        best = sorted((s["score"] for s in line["segments"]), reverse=True)
        assert line["scores"][: len(best)] == best
        assert not {"marks", "sentence"} & {key for s in line["segments"] for key in s}
    birchbark(
        *command,
        "--scores",
        "kept",
        "--output",
        "4.run",
        "--set",
        "aggregate=max",
        "--evidence",
        "m.jsonl",
    )
    of_max = [json.loads(line) for line in Path("m.jsonl").read_text().splitlines()]
    by_pair = {(line["query_id"], line["doc_id"]): line["scores"] for line in lines}
    assert all(by_pair[line["query_id"], line["doc_id"]] == line["scores"] for line in of_max)
    assert max(map(len, by_pair.values())) > 1
    birchbark(*command, "--output", "5.run", "--set", "read_documents=1", "--evidence", "p.jsonl")
    read = [json.loads(line) for line in Path("p.jsonl").read_text().splitlines()]
    assert 0 < len(read) < len(lines)
    assert all(line["scored"] and line["scores"] for line in read)
    assert read_segment_scores(Path("e.jsonl"))["1"]
    rows = [line.split("\t") for line in birchbark("scores", "kept")[0].splitlines()]
    assert rows[0] == ["scorer", "pairs", "bytes", "name"]
    ((identifier, kept, size, name),) = rows[1:]
    assert (kept, name) == (str(pairs), "model cross-encoder")
    (file,) = Path("kept").glob("*.scores")
    assert int(size.replace(",", "")) == file.stat().st_size
    listed = json.loads(birchbark("scores", "kept", "--json")[0])
    assert listed == [
        {"scorer": identifier, "pairs": pairs, "bytes": file.stat().st_size, "name": name}
    ]
    assert "no scorer matches 'x'" in birchbark("scores", "kept", "--prune", "x", status=2)[1]
    out, stderr = birchbark("scores", "kept", "--prune", identifier[:8])
    assert len(out.splitlines()) == 1
    assert f"deleted {pairs} pairs of {identifier}, model cross-encoder" in stderr
    assert (
        "i: the folder holds files that are not scores"
        in birchbark(*command, "--output", "2.run", "--scores", "i", status=2)[1]
    )
    assert "none: no score store here" in birchbark("scores", "none", status=2)[1]


def test_bad_records_fail_or_are_counted(here: Path) -> None:
    """A bad record is an error, or with --skip-bad a message."""
    with Path("docs.jsonl").open("a") as out:
        out.write('\n{"id": "canoe", "text": "again"}\nnot json\n')
    stderr = birchbark("index", "docs.jsonl", "--to", "i", status=2)[1]
    assert "docs.jsonl:6: a second document with the id canoe" in stderr
    assert "--skip-bad" in stderr
    assert not Path("i").exists()
    unknown = ("index", ".", "--to", "i", "--encoding", "nosuch")  # not that of each file alone
    assert "unknown encoding 'nosuch'" in birchbark(*unknown, status=2)[1]
    assert not Path("i").exists()
    stderr = birchbark("index", "docs.jsonl", "--to", "i", "--skip-bad")[1]
    assert "indexed 5 documents" in stderr
    assert "birchbark index sync i; or choose" in birchbark("index", ".", "--to", "i", status=2)[1]
    assert "skipped 2 bad records" in stderr
    assert "docs.jsonl:7: broken JSON" in stderr


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (("index", "none", "--to", "i"), 2, "none: no such file or folder"),
        (("index", "q.dat", "--to", "i"), 2, "cannot detect the format"),
        (("index", "empty", "--to", "i"), 2, "empty: no documents"),
        (("index", "docs.jsonl", "--to", "model"), 2, "model: already exists"),
        (("index", "docs.jsonl", "--to", "model", "--replace"), 2, "model: no index here"),
        (("retrieve", "model", "--queries", "q.tsv", "--output", "x"), 2, "no index here"),
        (("search", "model", "x"), 2, "no index here"),
        (("evaluate", "qrels.txt", "none.run"), 2, "none.run: no such file"),
        (("evaluate", "qrels.txt", "qrels.txt"), 2, "qrels.txt:1: wrong number of columns"),
        (("evaluate", "q.tsv", "x.run"), 2, "q.tsv:1: wrong number of columns"),
        (("index", "docs.jsonl"), 2, "to build an index, set --to INDEX"),
        (("fly",), 2, "No such command 'fly'"),
    ],
)
def test_invalid_input_is_one_line(
    here: Path, arguments: tuple[str, ...], status: int, message: str
) -> None:
    """Invalid input exits with code 2 and a message, never with a traceback."""
    (here / "empty").mkdir()
    (here / "q.dat").write_text("?")
    assert message in birchbark(*arguments, status=status)[1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--set", "segments=pages"), "unknown segments 'pages'"),
        (("--set", "segments=windows:9/9"), "window overlap is out of range"),
        (("--set", "aggregate=best"), "unknown aggregation 'best'"),
        (("--set", "first_stage_weight=2"), "first-stage weight is out of range"),
        (("--ranker", "k1.toml"), "k1.toml: first_stage: k1 is out of range"),
        (("--ranker", "none.toml"), "none.toml: no such file: expected a TOML file"),
        (
            ("--ranker", "or.toml", "--embedding", "model", "--set", "embedding_weight=2"),
            "embedding_w",
        ),
        (
            ("--ranker", "or.toml", "--set", "read_pairs=-1"),
            "or.toml: stage[1].read_pairs: out of range",
        ),
        (("--set", "depth=0"), "stage[1].depth: out of range"),
        (("--model", "nowhere"), "nowhere: no such model"),
        (
            ("--embedding", "none", "--set", "embedding_weight=0.2"),
            "embedding_weight has no effect without an embedding",
        ),
        (
            ("--embedding", "none", "--set", "embed_segments=2"),
            "embed_segments has no effect without an embedding",
        ),
        (
            ("--embedding", "none", "--set", "embed_documents=9"),
            "embed_documents has no effect without an embedding",
        ),
        (("--set", "read_segments=0"), "stage[1].read_segments: out of range: expected 1 or more"),
        (("--set", "read_documents=few"), "invalid read_documents: expected 1 or more"),
        (("--set", "embed_documents=0"), "stage[1].embed_documents: out of range"),
        (("--set", "read_pairs=-1"), "stage[1].read_pairs: out of range"),
        (
            ("--set", "read_segments=2", "--ranker", "max.toml"),
            "max_segments and max_length cannot be combined with reading only some segments",
        ),
        (
            ("--set", "first_stage.model=tfidf", "--ranker", "k1.toml"),
            "k1 has no effect with model tfidf",
        ),
        (("--model", "none", "--budget", "1s"), "--budget has no effect without BERT"),
        (
            ("--model", "none", "--set", "depth=3"),
            "depth has no effect with model none",
        ),
        (
            ("--embedding", "model", "--set", "embedding_weight=2"),
            "embedding_weight is out of range",
        ),
        (("--set", "aggregate=top:nan"), "invalid weights for the top segments"),
        (("--set", "aggregate=top:1,inf"), "invalid weights for the top segments"),
        (("--set", "segments=windows:5/5"), "window overlap is out of range"),
        (("--budget", "soon"), "not a time"),
        (("--min-probability", "nan"), "nan is not a number"),
    ],
)
def test_invalid_options(here: Path, options: tuple[str, ...], message: str) -> None:
    """Each option rejects invalid values and ineffective combinations."""
    birchbark("index", "docs.jsonl", "--to", "i")
    Path("k1.toml").write_text("first_stage.k1 = -1")
    Path("or.toml").write_text("first_stage.match = 'or'")
    Path("max.toml").write_text("[[stage]]\nmax_segments = 5")
    arguments = ("search", "i", "birch", "--model", "model", *options)
    result = CliRunner().invoke(group, arguments)
    assert message in str(result.exception) + result.output


def test_files_of_other_types_are_told_in_a_line(tmp_path: Path) -> None:
    """A folder can have a hundred types; the most frequent are named."""
    (tmp_path / "files").mkdir()
    for name in ("a.txt", "a.b1", "b.b1", *(f"c.x{n}" for n in range(7))):
        (tmp_path / "files" / name).write_text("birch")
    _, told = birchbark("index", str(tmp_path / "files"), "--to", str(tmp_path / "index"))
    (note,) = re.findall("note: file of .*", told)
    shown = r"\.b1 \(2\), (\.x\d \(1\), ){4}… and 3 more \(9 times\)"
    assert re.fullmatch(f"note: file of another type not read: {shown}", note)


def test_failed_command_keeps_old_file(here: Path) -> None:
    """A run that cannot be written leaves the old file unchanged."""
    birchbark("index", "docs.jsonl", "--to", "i")
    Path("a.run").write_text("old")
    birchbark(
        "retrieve", "i", "--queries", "q.tsv", "--tag", "two words", "--output", "a.run", status=2
    )
    assert Path("a.run").read_text() == "old"
    assert not list(here.glob(".birchbark-tmp-*"))


def test_gzipped_collection(here: Path) -> None:
    """Compressed collections are read like others."""
    Path("docs.jsonl.gz").write_bytes(gzip.compress(Path("docs.jsonl").read_bytes()))
    assert "indexed 5 documents" in birchbark("index", "docs.jsonl.gz", "--to", "i")[1]


COMMANDS = dict(commands(group, "birchbark"))


@pytest.mark.parametrize("name", COMMANDS)
def test_help_is_complete(name: str) -> None:
    """Each command has an example, whose options exist, and each option a text."""
    command = COMMANDS[name]
    assert re.match(rf"Examples?\b.*?: {name} ", (command.epilog or "") + " ")
    assert all(option.help for option in command.params if isinstance(option, click.Option))
    for example in re.findall(r"(birchbark [^;#]+)", command.epilog or ""):
        words = [word for word in example.split() if re.fullmatch("[a-z-]+", word)]
        names = [" ".join(words[:count]) for count in (3, 2, 1)]
        used = next(name for name in names if name in COMMANDS)
        used = "birchbark index build" if used == "birchbark index" else used
        called = [used]
        if used == "birchbark cluster":  # another command follows
            called += [f"birchbark {word}" for word in words if f"birchbark {word}" in COMMANDS]
        known = {
            x for name in called for parameter in COMMANDS[name].params for x in parameter.opts
        }
        assert set(re.findall(r"(?<!\S)-{1,2}[a-z][a-z0-9-]*", example)) <= known, example


def test_names_of_segmenters() -> None:
    """Segmenters are parsed from their names on the command line."""
    assert parse_segmenter("windows") == Windows(150, 50)
    assert parse_segmenter("windows:20/5") == Windows(20, 5)
    assert parse_segmenter("whole") is whole
    for bad in ("", "windows:x/y", "windows:20", "sentence"):
        with pytest.raises(InputError, match="unknown segments"):
            parse_segmenter(bad)


def test_an_index_changes_and_is_checked(here: Path) -> None:
    """add, delete, merge, stats and verify work."""
    birchbark("index", "build", "docs.jsonl", "--to", "i")
    Path("more.tsv").write_text("bees\tBees sleep.\nwasps\tWasps sting.\n")
    assert (
        "added 1 document and replaced 1; 6 in i" in birchbark("index", "add", "i", "more.tsv")[1]
    )
    stderr = birchbark("index", "delete", "i", "canoe", "nessie", status=2)[1]
    assert "no document nessie; nothing was deleted" in stderr
    Path("ids.txt").write_text("canoe\n\nforest\n")
    assert "deleted 2 documents; 4 in i" in birchbark("index", "delete", "i", "--ids", "ids.txt")[1]
    figures = dict(row.split("\t") for row in birchbark("index", "stats", "i")[0].splitlines())
    assert (figures["documents"], figures["parts"]) == ("4", "2")
    values = json.loads(birchbark("index", "stats", "i", "--json")[0])
    assert {n: f"{v:,}" if isinstance(v, int) else v for n, v in values.items()} == figures
    assert figures["deleted, not yet merged away"] == "3"
    assert "4 documents in 1 part" in birchbark("index", "merge", "i")[1]
    figures = dict(row.split("\t") for row in birchbark("index", "stats", "i")[0].splitlines())
    assert (figures["parts"], figures["deleted, not yet merged away"]) == ("1", "0")
    assert "all checksums match" in birchbark("index", "stats", "i", "--verify")[1]
    docs = next(Path("i").rglob("postings.words"))
    docs.write_bytes(docs.read_bytes()[:-1] + b"\7")
    out, stderr = birchbark("index", "stats", "i", "--verify", status=1)
    assert out.startswith("i/part-")
    assert "i: damaged" in stderr


def test_field_options(here: Path) -> None:
    """Fields are indexed separately or joined, searched with weights, and matched by number."""
    fields = ("--field", "title", "--field", "all=title+text")
    birchbark("index", "docs.jsonl", "--to", "i", *fields)
    command = ("retrieve", "i", "--queries", "q.tsv", "--output", "a.run")
    birchbark(*command, "--set", "first_stage.fields={title=0.25, all=1}", "--match", "2")
    assert set(read_run(Path("a.run")).rankings["1"].doc_ids) == {"canoe", "forest"}
    stderr = birchbark(*command, "--set", "first_stage.fields.body=1", status=2)[1]
    assert "no field 'body' to search: expected one of title, all" in stderr
    assert "no field 'contents' to search" in birchbark(*command, status=2)[1]
    stderr = birchbark(*command, "--set", "first_stage.fields.all=x", status=2)[1]
    assert "first_stage.fields.all: wrong type" in stderr
    assert "are the same file" in birchbark(*command, "--report", "./a.run", status=2)[1]
    Path("w.jsonl").write_text('{"id": "1", "text": "parcel", "vector": {"parcel": 1}}\n')
    weighted = ("retrieve", "i", "--queries", "w.jsonl", "--match", "nearest", "--output", "x.run")
    weighted += ("--set", "first_stage.vector_set=static")
    assert "weights of queries have no effect" in birchbark(*weighted, status=2)[1]
    told = birchbark("index", "docs.jsonl", "--to", "j", "--field", "foo")[1]
    assert "no document has the field foo, which is to be searched" in told


def test_k1_and_b_by_field(here: Path) -> None:
    """A field's k1 and b in a ranker's file are those of the library; invalid ones are refused."""
    fields = ("--field", "title", "--field", "text")
    birchbark("index", "docs.jsonl", "--to", "i", *fields)
    command = ("retrieve", "i", "--queries", "q.tsv", "--output", "a.run", "--ranker", "r.toml")
    table = "[first_stage]\nk1 = 2\nb = 1\nfields = {title = 1, text = 1}\nfield_bm25."
    Path("r.toml").write_text(f"{table}title = {{ k1 = 0.5, b = 0 }}")
    birchbark(*command)
    stage = FirstStage(BM25(2, 1), {"title": 1, "text": 1}, {"title": BM25(0.5, 0)})
    wanted = rank_queries(Index("i"), read_queries(Path("q.tsv")), stage).rankings
    assert read_run(Path("a.run")).rankings == {q: r for q, r in wanted.items() if len(r)}
    for wrong, stderr in (
        ("title = { k = 1 }", "r.toml: first_stage.field_bm25.title.k: unknown key"),
        ("title = { k1 = 1, b = 2 }", "b is out of range"),
        ("body = { k1 = 1, b = 0.5 }", "'body', which is not searched"),
        ("title = { k1 = 1, b = 1 }\nmodel = 'tfidf'", "k1 has no effect with model tfidf"),
    ):
        Path("r.toml").write_text(table + wrong)
        assert stderr in birchbark(*command, status=2)[1]
    of_all = "title = { k1 = 1, b = 1 }\nfield_bm25.text = { k1 = 1, b = 0 }"
    Path("r.toml").write_text(table + of_all)
    assert "k1 has no effect: field_bm25 gives all" in birchbark(*command, status=2)[1]


def test_search_without_bert(here: Path) -> None:
    """Hits are shown with the beginning of their texts, and loads no model."""
    birchbark("index", "docs.jsonl", "--to", "i", "--forward-index")
    command = ("search", "i", "birch canoe", "--model", "none")
    shown = birchbark(*command)[0]
    assert shown.startswith(" 1. canoe")
    assert "birch bark" in shown
    (hit,) = map(json.loads, birchbark(*command, "--top", "1", "--json")[0].splitlines())
    assert (hit["doc_id"], hit["segments"], hit["evidence"]) == ("canoe", [], 0.0)
    assert hit["score"] == hit["first_stage"] > 0
    stderr = birchbark(*command, "--budget", "1s", status=2)[1]
    assert "--budget has no effect without BERT" in stderr


def test_demo_replaces_only_a_demo(here: Path) -> None:
    """A folder with other contents is not touched."""
    birchbark("index", "docs.jsonl", "--to", "mine/index")
    stderr = birchbark("demo", "--to", "mine", status=2)[1]
    assert "mine: was not created by the demo" in stderr
    assert len(Index("mine/index")) == 5


def test_unwritable_output_fails_first(here: Path) -> None:
    """No model is loaded if the run could not be written."""
    birchbark("index", "docs.jsonl", "--to", "i")
    command = ("rerank", "i", "--run", "none.run", "--queries", "q.tsv", "--model", "nowhere")
    assert "model: is a folder" in birchbark(*command, "--output", "model", status=2)[1]
    assert "q.tsv: is a file" in birchbark(*command, "--output", "q.tsv/x.run", status=2)[1]
    assert "/dev/stdout" in birchbark(*command, "--output", "-", status=2)[1]
    stderr = birchbark(*command, "--output", "x", "--tag", "two words", status=2)[1]
    assert "a tag must be a single word" in stderr


@pytest.mark.skipif(sys.platform != "linux", reason="names are any bytes on Linux alone")
def test_a_folder_whose_name_is_no_text(here: Path) -> None:
    """It is indexed, synced and searched like others."""
    folder = Path(os.fsdecode(b"caf\xe9"))
    folder.mkdir()
    (folder / "a.txt").write_text("Bees dance.")
    birchbark("index", str(folder), "--to", "i")
    (folder / "b.txt").write_text("Bees fly.")
    birchbark("index", "sync", "i")
    assert birchbark("search", "i", "bees", "--model", "none")[0].count("Bees") == 2
    birchbark("index", "sync", str(folder))


def test_equal_tags_and_equal_files(here: Path) -> None:
    """Runs with equal tags are shown with their files, and a file given twice counts once."""
    birchbark("index", "docs.jsonl", "--to", "i")
    for name, k1 in (("a.run", "0.9"), ("b.run", "2.0")):
        Path("r.toml").write_text(f"first_stage.k1 = {k1}")
        command = ("retrieve", "i", "--queries", "q.tsv", "--output", name)
        birchbark(*command, "--ranker", "r.toml")
    table = birchbark("evaluate", "qrels.txt", "a.run", "b.run", "./a.run")[0]
    assert "bm25 (b.run)" in table
    assert table.count("bm25 (") == 2
    assert "for 4 comparisons" in table
    Path("one.txt").write_text("1 0 canoe 1\n")
    stderr = birchbark("evaluate", "one.txt", "a.run", "b.run")[1]
    assert "too few for tests" in stderr


def test_expanded_queries_are_reported_and_read_back(here: Path) -> None:
    """A query expanded by RM3 can be printed, and searched with --weighted."""
    birchbark("index", "docs.jsonl", "--to", "i")
    command = ("retrieve", "i", "--queries", "q.tsv")
    birchbark(*command, "--rm3", "--output", "a.run", "--report", "report.tsv")
    rows = [line.split("\t") for line in Path("report.tsv").read_text().splitlines()]
    assert [row[:2] for row in rows] == [["1", "0.600000"], ["2", "0.400000"], ["3", "0.000000"]]
    assert "birch^" in rows[0][2]
    Path("expanded.tsv").write_text("".join(f"{row[0]}\t{row[2]}\n" for row in rows))
    birchbark("retrieve", "i", "--queries", "expanded.tsv", "--weighted", "--output", "b.run")
    first, second = read_run(Path("a.run")), read_run(Path("b.run"))
    for query_id, ranking in first.rankings.items():
        assert second.rankings[query_id].doc_ids == ranking.doc_ids
    Path("expanded.tsv").write_text("1\tbirch^1\n2\tbirch^-1\n")
    refused = ("retrieve", "i", "--queries", "expanded.tsv", "--weighted", "--output", "c.run")
    assert "query 2: the query: invalid weight" in birchbark(*refused, status=2)[1]
    assert not Path("c.run").exists()


def test_filter(here: Path) -> None:
    """--filter restricts a search to documents with a keyword."""
    Path("docs.jsonl").write_text(
        '{"id": "a", "text": "bee", "kind": "insect"}\n'
        '{"id": "b", "text": "bee", "kind": "letter"}\n'
    )
    birchbark("index", "docs.jsonl", "--to", "i", "--keyword", "kind")
    Path("q.tsv").write_text("1\tbee\n")
    command = ("retrieve", "i", "--queries", "q.tsv", "--output", "a.run")
    birchbark(*command, "--filter", "kind=letter")
    assert read_run(Path("a.run")).rankings["1"].doc_ids == ("b",)
    assert (
        "birchbark: --filter: not a filter" in birchbark(*command, "--filter", "kind", status=2)[1]
    )
    assert "no field 'id' to filter by" in birchbark(*command, "--filter", "id=a", status=2)[1]


def test_where_the_index_of_a_folder_is() -> None:
    """Beside it, with the names of all folders; the root has no name."""
    assert index_of_folder.index_path([Path("/a/b")]) == Path("/a/b.index")
    assert index_of_folder.index_path([Path("/a/b"), Path("/c/d")]) == Path("/a/b+d.index")
    assert index_of_folder.index_path([Path("/")]) == Path("/.index")


def test_a_folder_and_its_index_are_kept_in_step(here: Path) -> None:
    """The index beside the folder is built at the first time; bad files are listed."""
    (here / "notes" / "drafts").mkdir(parents=True)
    (here / "notes" / "a.txt").write_text("A birch canoe.")
    (here / "notes" / "drafts" / "b.md").write_text("# Bees\nBees dance.")
    assert "indexed" in birchbark("index", "sync", "notes")[1]
    (here / "notes" / "c.html").write_bytes(b"\0\xff\1")
    (here / "notes" / "a.txt").unlink()
    stderr = birchbark("index", "sync", "notes")[1]
    assert "0 documents new, 0 changed, 1 deleted, 1 unchanged" in stderr
    assert "c.html" in stderr
    shown = birchbark(
        "search", "notes.index", "bees", "--filter", "path=drafts/*", "--model", "model"
    )[0]
    assert "drafts/b.md" in shown
    assert (
        "drafts/b.md" in birchbark("search", "notes.index", "bees", "dance", "--model", "none")[0]
    )
    birchbark("index", "notes", "--to", "i", "--exclude", "drafts/", "--strict", status=2)
    (here / "notes" / "c.html").unlink()
    (here / "notes" / "d.py").write_text("print('canoe')")
    stderr = birchbark("index", "notes", "--to", "i", "--exclude", "drafts/", "--include", "*.py")[
        1
    ]
    assert "1 document, 4 tokens of contents, 2 tokens of file_names, in i" in stderr
    assert "1 unchanged" in birchbark("index", "sync", "i")[1]
    stderr = birchbark("index", "docs.jsonl", "--to", "j", "--include", "*.md", status=2)[1]
    assert "include, exclude and follow_links have no effect here" in stderr
    birchbark("index", "docs.jsonl", "--to", "j")
    assert "not built from a folder" in birchbark("index", "sync", "j", status=2)[1]


def test_commands_and_options_are_completed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The shell completes them as docs/reference/cli.md says."""

    def completed(line: str) -> list[str]:
        words = {"COMP_WORDS": line, "COMP_CWORD": str(line.count(" "))}
        environment = {**os.environ, **words, "_BIRCHBARK_COMPLETE": "bash_complete"}
        script = "from birchbark.cli import main; import sys; sys.argv = ['birchbark']; main()"
        done = subprocess.run(
            [sys.executable, "-c", script], env=environment, capture_output=True, text=True
        )
        return [choice.partition(",")[2] for choice in done.stdout.splitlines()]

    assert completed("birchbark ind") == ["index"]
    assert "--json" in completed("birchbark evaluate --")


def test_two_processes_index_the_same_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one that is later uses the index of the other."""
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "bees.txt").write_text("Bees dance.")
    build = index_of_folder.build_from

    def second(*arguments: object, **named: object) -> object:
        build(*arguments, **named)  # type: ignore[arg-type]
        return build(*arguments, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(index_of_folder, "build_from", second)
    index = (tmp_path / "notes.index").resolve()
    assert index_of_folder.index_of([tmp_path / "notes"]) == (index, False)
    (tmp_path / "other").mkdir()
    with pytest.raises(InputError):  # nothing to index
        index_of_folder.index_of([tmp_path / "other"])
