"""Does the command line do what --help says, and fail as it promises?"""

from __future__ import annotations

import gzip
import json
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from click.testing import CliRunner

from birchbark.cli import VERBS, group
from birchbark.collection.queries import read_queries
from birchbark.collection.runs import read_run
from birchbark.combine.aggregate import Top, parse_aggregation
from birchbark.combine.interpolate import Interpolation
from birchbark.errors import InputError
from birchbark.evaluate.measures import USUAL
from birchbark.index.reader import Index
from birchbark.pipeline import ranker
from birchbark.pipeline.opening import USUAL_AGGREGATION, USUAL_SEGMENTS
from birchbark.retrieve.bm25 import BM25
from birchbark.retrieve.first_stage import FirstStage, rank_queries
from birchbark.retrieve.rank import DEPTH
from birchbark.retrieve.rm3 import RM3
from birchbark.segment.named import parse_segmenter
from birchbark.segment.whole import whole
from birchbark.segment.windows import Windows
from conftest import DOCUMENTS, WordScorer, write_bert


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with a collection, queries, judgments and a tiny model."""
    monkeypatch.chdir(tmp_path)
    lines = [json.dumps({"id": d.doc_id, **d.fields}) for d in DOCUMENTS]
    (tmp_path / "docs.jsonl").write_text("\n".join(lines))
    (tmp_path / "q.tsv").write_text("1\tbirch river\n2\tiron engine\n3\tzeppelin\n")
    (tmp_path / "qrels.txt").write_text("1 0 canoe 2\n1 0 forest 1\n2 0 engine 1\n2 0 bees 0\n")
    write_bert(tmp_path / "model", labels=1, positions=64)
    return tmp_path


def birchbark(*arguments: str, status: int = 0) -> tuple[str, str]:
    """Standard output and error of a whole process."""
    command = [sys.executable, "-m", "birchbark", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == status, done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout, done.stderr


def test_the_whole_way(here: Path) -> None:
    """index, retrieve, rerank, evaluate, search: files in, files out."""
    assert "indexed 5 documents" in birchbark("index", "docs.jsonl", "--to", "i")[1]
    asked = ("--queries", "q.tsv")
    said = birchbark("retrieve", "i", *asked, "--rm3", "--output", "rm3.run")[1]
    assert "1 queries matched nothing: 3" in said
    birchbark(
        "rerank", "i", "--run", "rm3.run", *asked, "--output", "bert.run", "--model", "model",
        "--segments", "windows:6/2", "--aggregate", "max", "--first-stage-weight", "0.3",
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
    """For programs: every part of every hit, and of every figure."""
    birchbark("index", "docs.jsonl", "--to", "i")
    out = birchbark("search", "i", "birch", "--model", "model", "--json")[0]
    hits = [json.loads(line) for line in out.splitlines()]
    assert {h["doc_id"] for h in hits} == {"canoe", "forest"}
    for hit in hits:
        assert hit["score"] == pytest.approx(hit["first_stage"] + hit["evidence"])
    birchbark("retrieve", "i", "--queries", "q.tsv", "--output", "a.run")
    (report,) = json.loads(birchbark("evaluate", "qrels.txt", "a.run", "--json", "-m", "AP")[0])
    assert report["per_query"]["AP"]["2"] == 1.0
    assert report["unjudged"] == 0
    assert report["grades"] is None
    said = birchbark("evaluate", "qrels.txt", "a.run", "--json", "--grades", "3")[0]
    assert set(json.loads(said)[0]["grades"]) == {"unjudged", "0", "1", "2"}
    assert "unjudged" in birchbark("evaluate", "qrels.txt", "a.run", "--grades", "3")[0]
    rows = birchbark("evaluate", "qrels.txt", "a.run", "--per-query", "-m", "AP")[0].splitlines()
    assert [row.split("\t")[:2] for row in rows] == [["1", "AP"], ["2", "AP"]]
    told = birchbark("evaluate", "qrels.txt", "a.run", "--per-query", "--json", status=2)[1]
    assert "--json does nothing beside --per-query" in told


def test_the_same_command_writes_the_same_bytes(here: Path) -> None:
    """Whatever the number of threads."""
    birchbark("index", "docs.jsonl", "--to", "i")
    birchbark("retrieve", "i", "--queries", "q.tsv", "--output", "a.run")
    for threads in ("1", "2"):
        birchbark(
            "rerank", "i", "--run", "a.run", "--queries", "q.tsv", "--model", "model",
            "--threads", threads, "--output", f"{threads}.run",
        )  # fmt: skip
    assert Path("1.run").read_bytes() == Path("2.run").read_bytes()


def test_queries_in_other_words(here: Path) -> None:
    """Weighted terms that retrieve takes, and what they were made of."""
    birchbark("index", "docs.jsonl", "--to", "i")
    model = write_bert(here / "masked", masked=True)
    asked = ("reword", "i", "--queries", "q.tsv", "--model", str(model))
    said = birchbark(*asked, "--count", "2", "--output", "w.tsv", "--report", "words.tsv")[1]
    assert re.match(r"\d+ rewordings of 3 queries", said)
    told = [line.split("\t") for line in Path("words.tsv").read_text().splitlines()]
    assert all(0 <= float(weight) <= 1 for _, weight, _ in told)
    birchbark("retrieve", "i", "--queries", "w.tsv", "--weighted", "--output", "w.run")
    assert {line.split()[0] for line in Path("w.run").read_text().splitlines()} >= {"1", "2"}
    Path("stop.tsv").write_text("1\tthe\n2\tbirch\n")
    asked = ("reword", "i", "--queries", "stop.tsv", "--model", str(model), "--output", "s.tsv")
    said = birchbark(*asked)[1]
    assert "1 queries hold no term, and are left out: 1" in said
    assert Path("s.tsv").read_text().startswith("2\tbirch^")


def test_scores_are_kept_shown_and_forgotten(here: Path) -> None:
    """A second run scores nothing and writes the same bytes; so does a search for one of them."""
    birchbark("index", "docs.jsonl", "--to", "i")
    birchbark("retrieve", "i", "--queries", "q.tsv", "--output", "a.run")
    asked = ("rerank", "i", "--run", "a.run", "--queries", "q.tsv", "--model", "model")
    birchbark(*asked, "--output", "plain.run")
    said = birchbark(*asked, "--output", "1.run", "--scores", "kept")[1]
    pairs = int(said.split()[0])
    assert pairs > 5
    assert f"{pairs} pairs scored, 0 known before; scores in kept" in said
    for more in ((), ("--aggregate", "max", "--first-stage-weight", "0.1", "--depth", "2")):
        said = birchbark(*asked, "--output", "2.run", "--scores", "kept", *more)[1]
        assert said.startswith("0 pairs scored, ")
        if not more:
            assert Path("2.run").read_bytes() == Path("plain.run").read_bytes()
    assert Path("1.run").read_bytes() == Path("plain.run").read_bytes()
    said = birchbark("search", "i", "birch river", "--model", "model", "--scores", "kept")[1]
    assert said.startswith("0 pairs scored, ")
    rows = [line.split("\t") for line in birchbark("scores", "kept")[0].splitlines()]
    assert rows[0] == ["checkpoint", "pairs", "bytes", "name"]
    ((checkpoint, kept, size, name),) = rows[1:]
    assert (kept, name) == (str(pairs), "model cross-encoder")
    (file,) = Path("kept").glob("*.scores")
    assert int(size.replace(",", "")) == file.stat().st_size
    assert "no checkpoint is called 'x'" in birchbark("scores", "kept", "--prune", "x", status=2)[1]
    out, said = birchbark("scores", "kept", "--prune", checkpoint[:8])
    assert len(out.splitlines()) == 1
    assert f"forgot {pairs} pairs of {checkpoint}, model cross-encoder" in said
    assert (
        "i: holds something else"
        in birchbark(*asked, "--output", "2.run", "--scores", "i", status=2)[1]
    )
    assert "none: no score store here" in birchbark("scores", "none", status=2)[1]


def test_bad_records_stop_or_are_counted(here: Path) -> None:
    """Never skipped in silence."""
    with Path("docs.jsonl").open("a") as out:
        out.write('\n{"id": "canoe", "text": "again"}\nnot json\n')
    said = birchbark("index", "docs.jsonl", "--to", "i", status=2)[1]
    assert "docs.jsonl:6: a second document with the id canoe" in said
    assert "--skip-bad" in said
    assert not Path("i").exists()
    said = birchbark("index", "docs.jsonl", "--to", "i", "--skip-bad")[1]
    assert "indexed 5 documents" in said
    assert "skipped 2 bad records" in said
    assert "docs.jsonl:7: broken JSON" in said


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (("index", "none", "--to", "i"), 2, "none: no such file or folder"),
        (("index", "q.dat", "--to", "i"), 2, "cannot tell the format"),
        (("index", "empty", "--to", "i"), 2, "empty: no documents"),
        (("index", "docs.jsonl", "--to", "model"), 2, "model: already exists"),
        (("index", "docs.jsonl", "--to", "model", "--replace"), 2, "model: no index here"),
        (("retrieve", "model", "--queries", "q.tsv", "--output", "x"), 2, "no index here"),
        (("search", "model", "x"), 2, "no index here"),
        (("evaluate", "qrels.txt", "none.run"), 2, "none.run: no such file"),
        (("evaluate", "qrels.txt", "qrels.txt"), 2, "qrels.txt:1: wrong number of fields"),
        (("evaluate", "q.tsv", "x.run"), 2, "q.tsv:1: wrong number of columns"),
        (("index", "docs.jsonl"), 2, "to index it, say where: --to INDEX"),
        (("fly",), 2, "No such command 'fly'"),
    ],
)
def test_wrong_input_is_told_in_one_line(
    here: Path, arguments: tuple[str, ...], status: int, message: str
) -> None:
    """Exit code 2 for wrong input, 1 for failures, and never a traceback."""
    (here / "empty").mkdir()
    (here / "q.dat").write_text("?")
    assert message in birchbark(*arguments, status=status)[1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--segments", "pages"), "unknown segments 'pages'"),
        (("--segments", "windows:9/9"), "windows cannot overlap so far"),
        (("--aggregate", "best"), "unknown aggregation 'best'"),
        (("--first-stage-weight", "2"), "first-stage weight is out of range"),
        (("--k1", "-1"), "k1 is out of range"),
        (("--depth", "0"), "depth is out of range"),
        (("--model", "nowhere"), "nowhere: no such model"),
        (("--rm3-terms", "5"), "--rm3-terms does nothing without --rm3"),
        (("--embedding-weight", "0.2"), "--embedding-weight does nothing without --embedding"),
        (("--first-stage", "tfidf", "--k1", "2"), "--k1 is for BM25"),
        (("--first-stage-only", "--budget", "1s"), "is for BERT"),
        (("--first-stage-only", "--model", "model"), "--model is for BERT"),
        (("--max-segments", "0"), "0 is not in the range"),
        (("--embedding", "model", "--embedding-weight", "2"), "--embedding-weight is out of range"),
        (("--aggregate", "top:nan"), "not weights of the top segments"),
        (("--aggregate", "top:1,inf"), "not weights of the top segments"),
        (("--segments", "windows:5/5"), "windows cannot overlap so far"),
        (("--budget", "soon"), "not a time"),
    ],
)
def test_wrong_choices_are_told(here: Path, options: tuple[str, ...], message: str) -> None:
    """Each option says what it takes."""
    birchbark("index", "docs.jsonl", "--to", "i")
    arguments = ("search", "i", "birch", "--model", "model", *options)
    result = CliRunner().invoke(group, arguments)
    assert message in str(result.exception) + result.output


def test_a_killed_run_leaves_no_half_file(here: Path) -> None:
    """A run that cannot be written leaves what was there."""
    birchbark("index", "docs.jsonl", "--to", "i")
    Path("a.run").write_text("old")
    birchbark(
        "retrieve", "i", "--queries", "q.tsv", "--tag", "two words", "--output", "a.run", status=2
    )
    assert Path("a.run").read_text() == "old"
    assert not list(here.glob(".tmp-*"))


def test_gzipped_collections_are_read(here: Path) -> None:
    """As they come."""
    Path("docs.jsonl.gz").write_bytes(gzip.compress(Path("docs.jsonl").read_bytes()))
    assert "indexed 5 documents" in birchbark("index", "docs.jsonl.gz", "--to", "i")[1]


@pytest.mark.parametrize("verb", VERBS)
def test_help_shows_an_example(verb: str) -> None:
    """Which begins like a command."""
    shown = CliRunner().invoke(group, [verb, "--help"]).output
    assert re.search(rf"Examples?: birchbark\s+{verb}\b", shown)


def test_names_of_segmenters() -> None:
    """As the command line spells them."""
    assert parse_segmenter("windows") == Windows(150, 50)
    assert parse_segmenter("windows:20/5") == Windows(20, 5)
    assert parse_segmenter("whole") is whole
    for bad in ("", "windows:x/y", "windows:20", "sentence"):
        with pytest.raises(InputError, match="unknown segments"):
            parse_segmenter(bad)


def test_an_index_changes_and_is_checked(here: Path) -> None:
    """add, delete, merge, stats, verify."""
    birchbark("index", "build", "docs.jsonl", "--to", "i")
    Path("more.tsv").write_text("bees\tBees sleep.\nwasps\tWasps sting.\n")
    assert (
        "added 1 documents and replaced 1; 6 in i" in birchbark("index", "add", "i", "more.tsv")[1]
    )
    said = birchbark("index", "delete", "i", "canoe", "nessie", status=2)[1]
    assert "no document nessie (nothing changed)" in said
    Path("ids.txt").write_text("canoe\n\nforest\n")
    assert "deleted 2 documents; 4 in i" in birchbark("index", "delete", "i", "--ids", "ids.txt")[1]
    figures = dict(row.split("\t") for row in birchbark("index", "stats", "i")[0].splitlines())
    assert (figures["documents"], figures["parts"]) == ("4", "2")
    assert figures["deleted, not yet merged away"] == "3"
    assert "4 documents in one part" in birchbark("index", "merge", "i")[1]
    figures = dict(row.split("\t") for row in birchbark("index", "stats", "i")[0].splitlines())
    assert (figures["parts"], figures["deleted, not yet merged away"]) == ("1", "0")
    assert "all checksums hold" in birchbark("index", "verify", "i")[1]
    docs = next(Path("i").rglob("postings.words"))
    docs.write_bytes(docs.read_bytes()[:-1] + b"\7")
    out, said = birchbark("index", "verify", "i", status=1)
    assert out.startswith("i/part-")
    assert "i: damaged" in said


def test_fields_are_chosen_on_the_command_line(here: Path) -> None:
    """Indexed one by one or joined, searched with weights, matched by number."""
    fields = ("--field", "title", "--field", "all=title+text")
    birchbark("index", "docs.jsonl", "--to", "i", *fields)
    asked = ("retrieve", "i", "--queries", "q.tsv", "--output", "a.run")
    birchbark(*asked, "--field", "title=0.25", "--field", "all", "--match", "2")
    assert set(read_run(Path("a.run")).rankings["1"].doc_ids) == {"canoe", "forest"}
    said = birchbark(*asked, "--field", "body", status=2)[1]
    assert "no field 'body' to search (--field names one of title, all)" in said
    assert "no field 'contents' to search" in birchbark(*asked, status=2)[1]
    assert "not a field weight" in birchbark(*asked, "--field", "all=x", status=2)[1]


def test_k1_and_b_are_chosen_by_field(here: Path) -> None:
    """On the command line as in the library; nonsense is refused."""
    fields = ("--field", "title", "--field", "text")
    birchbark("index", "docs.jsonl", "--to", "i", *fields)
    asked = ("retrieve", "i", "--queries", "q.tsv", "--output", "a.run", *fields)
    birchbark(*asked, "--field-bm25", "title=0.5/0", "--k1", "2", "--b", "1")
    stage = FirstStage(BM25(2, 1), {"title": 1, "text": 1}, {"title": BM25(0.5, 0)})
    wanted = rank_queries(Index("i"), read_queries(Path("q.tsv")), stage).rankings
    assert read_run(Path("a.run")).rankings == {q: r for q, r in wanted.items() if len(r)}
    for wrong, said in (
        ("title=1", "not a field's k1 and b"),
        ("title=1/2", "b is out of range"),
        ("body=1/0.5", "'body', which is not searched"),
    ):
        assert said in birchbark(*asked, "--field-bm25", wrong, status=2)[1]
    said = birchbark(*asked, "--field-bm25", "title=1/1", "--first-stage", "tfidf", status=2)[1]
    assert "--field-bm25 is for BM25" in said


def test_search_may_do_without_bert(here: Path) -> None:
    """Hits of the first stage, no model loaded, with how their texts begin."""
    birchbark("index", "docs.jsonl", "--to", "i", "--forward")
    asked = ("search", "i", "birch canoe", "--first-stage-only")
    shown = birchbark(*asked)[0]
    assert shown.startswith(" 1. canoe")
    assert "birch bark" in shown
    (hit,) = map(json.loads, birchbark(*asked, "--top", "1", "--json")[0].splitlines())
    assert (hit["doc_id"], hit["segments"], hit["evidence"]) == ("canoe", [], 0.0)
    assert hit["score"] == hit["first_stage"] > 0


def test_the_defaults_are_those_of_the_library() -> None:
    """Written twice, so that --help stays light; equal all the same."""
    values = {}
    for verb in ("search", "retrieve", "evaluate"):
        for parameter in import_module(f"birchbark.cli.{verb}").command.params:
            values[f"{verb} {parameter.name}"] = parameter.default
    model, expansion = BM25(), RM3()
    assert (values["search k1"], values["search b"]) == (model.k1, model.b)
    assert values["search rm3_documents"] == expansion.documents
    assert values["search rm3_terms"] == expansion.terms
    assert values["search rm3_weight"] == expansion.original_weight
    assert values["search rm3_max_df"] == expansion.max_df_share
    assert values["search depth"] == ranker.DEPTH
    assert values["retrieve depth"] == DEPTH
    assert values["search first_stage_weight"] == Interpolation().first_stage_weight
    assert values["search first_stage_scale"] == Interpolation().scale
    assert parse_aggregation(USUAL_AGGREGATION) == Top()
    assert parse_segmenter(USUAL_SEGMENTS) is ranker.Ranker(WordScorer()).segmenter
    assert values["evaluate names"] == USUAL


def test_a_demo_replaces_only_a_demo(here: Path) -> None:
    """A folder with something else in it is left alone."""
    birchbark("index", "docs.jsonl", "--to", "mine/index")
    said = birchbark("demo", "--to", "mine", status=2)[1]
    assert "mine: holds something else than a demo" in said
    assert len(Index("mine/index")) == 5


def test_what_cannot_be_written_is_told_before_the_work(here: Path) -> None:
    """No model is loaded for a run without a place."""
    birchbark("index", "docs.jsonl", "--to", "i")
    asked = ("rerank", "i", "--run", "none.run", "--queries", "q.tsv", "--model", "nowhere")
    assert "model: is a folder" in birchbark(*asked, "--output", "model", status=2)[1]
    said = birchbark(*asked, "--output", "x", "--tag", "two words", status=2)[1]
    assert "a tag is one word" in said


def test_equal_tags_are_told_apart_and_equal_files_are_one(here: Path) -> None:
    """The family of comparisons is that of different runs."""
    birchbark("index", "docs.jsonl", "--to", "i")
    for name, k1 in (("a.run", "0.9"), ("b.run", "2")):
        birchbark("retrieve", "i", "--queries", "q.tsv", "--output", name, "--k1", k1)
    table = birchbark("evaluate", "qrels.txt", "a.run", "b.run", "./a.run")[0]
    assert "bm25 (b.run)" in table
    assert table.count("bm25 (") == 2
    assert "times 4 comparisons" in table
    Path("one.txt").write_text("1 0 canoe 1\n")
    said = birchbark("evaluate", "one.txt", "a.run", "b.run")[1]
    assert "too few for tests" in said


def test_expanded_queries_are_reported_and_read_back(here: Path) -> None:
    """What RM3 made of a query can be printed, changed, and searched as it stands."""
    birchbark("index", "docs.jsonl", "--to", "i")
    asked = ("retrieve", "i", "--queries", "q.tsv")
    birchbark(*asked, "--rm3", "--output", "a.run", "--report", "report.tsv")
    rows = [line.split("\t") for line in Path("report.tsv").read_text().splitlines()]
    assert [row[:2] for row in rows] == [["1", "0.600000"], ["2", "0.400000"], ["3", "0.000000"]]
    assert "birch^" in rows[0][2]
    Path("expanded.tsv").write_text("".join(f"{row[0]}\t{row[2]}\n" for row in rows))
    birchbark("retrieve", "i", "--queries", "expanded.tsv", "--weighted", "--output", "b.run")
    first, second = read_run(Path("a.run")), read_run(Path("b.run"))
    for query_id, ranking in first.rankings.items():
        assert second.rankings[query_id].doc_ids == ranking.doc_ids


def test_documents_are_filtered_on_the_command_line(here: Path) -> None:
    """Classes of Python's library, say, without its functions."""
    Path("docs.jsonl").write_text(
        '{"id": "a", "text": "bee", "kind": "insect"}\n'
        '{"id": "b", "text": "bee", "kind": "letter"}\n'
    )
    birchbark("index", "docs.jsonl", "--to", "i", "--keyword", "kind")
    Path("q.tsv").write_text("1\tbee\n")
    asked = ("retrieve", "i", "--queries", "q.tsv", "--output", "a.run")
    birchbark(*asked, "--filter", "kind=letter")
    assert read_run(Path("a.run")).rankings["1"].doc_ids == ("b",)
    assert "not a filter" in birchbark(*asked, "--filter", "kind", status=2)[1]
    assert "no field 'id' to filter by" in birchbark(*asked, "--filter", "id=a", status=2)[1]
