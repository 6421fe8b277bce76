"""Does `birchbark bench` draft, rank and report, and do again only what has changed?"""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from birchbark.bench.rank_questions import RANKED
from birchbark.collection.runs import read_run
from birchbark.index.build_index import build_index
from birchbark.index.writer import IndexWriter
from birchbark.records import Document
from command_line import birchbark
from conftest import write_bert

SUBJECTS = "parcels gardens bridges orchards kettles lanterns".split()


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    folder.mkdir()
    for subject in SUBJECTS:
        for number in (1, 2):
            text = (
                f"# {subject}\n\n## How owners repair broken {subject}\n\nPaint them in {number}.\n"
            )
            (folder / f"{subject}{number}.md").write_text(text)
    return folder


@pytest.fixture
def models(tmp_path: Path) -> list[str]:
    paths = [write_bert(tmp_path / name, labels=1) for name in ("large", "small")]
    return [option for path in paths for option in ("--model", str(path))]


def test_it_drafts_ranks_and_reports(notes: Path, models: list[str]) -> None:
    out, err = birchbark("bench", str(notes), "--count", "4", *models)
    assert out.startswith("No recommendation yet: 0 questions judged")
    assert "On the 4 drafted questions" in out
    assert "drafted 4 questions, which you may edit" in err
    bench = notes.with_name("notes.bench")
    assert f"report: {bench / 'report.html'}" in err
    assert f"to judge: {shlex.join(['birchbark', 'bench', str(notes), *models, '--judge'])}" in err
    assert "Does re-ranking help in notes?" in (bench / "report.html").read_text()
    assert (bench / "questions.tsv").read_text().count("drafted-") == 4
    for tag in ("BM25", "large", "small"):
        run = read_run(bench / "runs" / f"{tag}.run")
        assert run.tag == tag
        assert all(len(ranking.doc_ids) <= RANKED for ranking in run.rankings.values())


def test_only_what_has_changed_is_ranked_again(notes: Path, models: list[str]) -> None:
    birchbark("bench", str(notes), "--count", "4", *models[:2])
    bench = notes.with_name("notes.bench")
    before = {path.name: path.stat().st_mtime_ns for path in (bench / "runs").iterdir()}
    assert len(before) == 2
    birchbark("bench", str(notes), *models)
    after = {path.name: path.stat().st_mtime_ns for path in (bench / "runs").iterdir()}
    assert after.keys() == {*before, "small.run"}
    assert {name: after[name] for name in before} == before
    questions = bench / "questions.tsv"
    questions.write_text(questions.read_text() + "mine\tgarden repair\n")
    birchbark("bench", str(notes), *models)
    run = read_run(bench / "runs" / "BM25.run")
    assert "mine" in run.rankings


def test_questions_of_one_s_own(notes: Path, models: list[str], tmp_path: Path) -> None:
    (tmp_path / "mine.tsv").write_text("q1\tbroken kettle\nq2\tbridge paint\n")
    given = ("--queries", str(tmp_path / "mine.tsv"), "--to", str(tmp_path / "b"), "--json")
    out, _ = birchbark("bench", str(notes), *given, *models[:2])
    report = json.loads(out)
    assert report["comparisons"] == {}
    assert report["seconds"].keys() == {"BM25", "large"}
    assert (tmp_path / "b" / "questions.tsv").read_text() == "q1\tbroken kettle\nq2\tbridge paint\n"


def test_questions_are_not_replaced(notes: Path, models: list[str], tmp_path: Path) -> None:
    birchbark("bench", str(notes), "--count", "4", *models[:2])
    questions = notes.with_name("notes.bench") / "questions.tsv"
    before = questions.read_text()
    (tmp_path / "mine.tsv").write_text("q1\tbroken kettle\n")
    for option in (("--queries", str(tmp_path / "mine.tsv")), ("--count", "5")):
        _, err = birchbark("bench", str(notes), *option, *models[:2], status=2)
        assert f"has questions already: found {option[0]}" in err
    assert questions.read_text() == before
    birchbark("bench", str(notes), "--count", "4", *models[:2])  # as many as there are
    drafted = ("--queries", str(tmp_path / "mine.tsv"), "--count", "5", "--to", str(tmp_path / "b"))
    _, err = birchbark("bench", str(notes), *drafted, *models[:2], status=2)
    assert "--count cannot be combined with --queries" in err


def test_the_same_command_is_no_other_question(
    notes: Path, models: list[str], tmp_path: Path
) -> None:
    """Also if fewer could be drafted than were asked for, and with spaces in questions."""
    birchbark("bench", str(notes), "--count", "400", *models[:2])
    birchbark("bench", str(notes), "--count", "400", *models[:2])
    (tmp_path / "mine.tsv").write_text("q1\tbroken  kettle\n")
    mine = ("--to", str(tmp_path / "mine"), "--queries", str(tmp_path / "mine.tsv"))
    birchbark("bench", str(notes), *mine, *models[:2])
    birchbark("bench", str(notes), *mine, *models[:2])


def test_a_question_that_a_system_refuses_is_named(
    notes: Path, models: list[str], tmp_path: Path
) -> None:
    """Before it is stored, so that the file can be mended."""
    (tmp_path / "mine.tsv").write_text(f"q1\tbridge\nq2\t{'kettle ' * 5000}\n")
    given = ("--queries", str(tmp_path / "mine.tsv"))
    _, err = birchbark("bench", str(notes), *given, *models[:2], status=2)
    assert "question q2: " in err
    (tmp_path / "mine.tsv").write_text("q1\tbridge\nq2\tkettle\n")
    birchbark("bench", str(notes), *given, *models[:2])
    birchbark("bench", str(notes), *given, *models[:2])  # the same questions again


def test_ids_with_white_space_are_refused(tmp_path: Path, models: list[str]) -> None:
    """Runs and judgments are divided by it. A deleted document does not matter."""
    documents = [
        Document(name, {"text": "# How kettles boil\n\nThey do."}) for name in ("a b", "c")
    ]
    index = build_index(documents, tmp_path / "index").directory
    _, err = birchbark("bench", str(index), *models[:2], status=2)
    assert "run files cannot contain 'a b'" in err
    with IndexWriter(index) as writer:
        writer.delete("a b")
    birchbark("bench", str(index), *models[:2])


def test_questions_are_literal(notes: Path, models: list[str], tmp_path: Path) -> None:
    """As `retrieve` takes them: a minus leaves nothing out, and a phrase is no condition."""
    (tmp_path / "mine.tsv").write_text('q1\t-kettle\nq2\t"kettle bridge"\n')
    birchbark("bench", str(notes), "--queries", str(tmp_path / "mine.tsv"), *models[:2])
    found = read_run(next(notes.with_name("notes.bench").glob("runs/*.run"))).rankings
    assert len(found["q1"])
    assert len(found["q2"])


def test_questions_that_match_nothing(notes: Path, models: list[str], tmp_path: Path) -> None:
    (tmp_path / "mine.tsv").write_text("q1\tzzzz\nq2\tqqqq\n")
    given = ("--queries", str(tmp_path / "mine.tsv"), *models[:2])
    birchbark("bench", str(notes), *given)
    birchbark("bench", str(notes), *given)


def test_documents_that_are_gone_are_no_sources(notes: Path, models: list[str]) -> None:
    birchbark("bench", str(notes), "--count", "4", *models[:2])
    bench = notes.with_name("notes.bench")
    gone = (bench / "drafted.qrels").read_text().split()[2]
    (notes / gone).unlink()
    birchbark("index", "sync", str(notes))
    out, _ = birchbark("bench", str(notes), *models[:2], "--json")
    assert json.loads(out)["comparisons"]["Drafted questions"]["questions"] == 3


def test_a_model_whose_name_has_a_blank(notes: Path, tmp_path: Path) -> None:
    model = write_bert(tmp_path / "my model", labels=1)
    _, err = birchbark("bench", str(notes), "--model", str(model), status=2)
    assert "a tag must be a single word" in err


def test_two_models_of_one_name_are_refused(notes: Path, models: list[str], tmp_path: Path) -> None:
    other = write_bert(tmp_path / "other" / "large", labels=1)
    _, err = birchbark("bench", str(notes), *models, "--model", str(other), status=2)
    assert "systems need different names: found BM25, large, small, large" in err


def test_documents_without_anything_to_ask(tmp_path: Path, models: list[str]) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.txt").write_text("1 2 3\n")
    _, err = birchbark("bench", str(tmp_path / "notes"), *models, status=2)
    assert "no question could be drafted from these documents" in err
    assert "write questions of your own: --queries FILE" in err


def test_the_port_is_of_the_page(notes: Path, models: list[str]) -> None:
    _, err = birchbark("bench", str(notes), *models, "--port", "0", status=2)
    assert "--port has no effect without --judge" in err
