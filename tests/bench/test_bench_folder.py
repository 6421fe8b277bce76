"""Are questions, runs and judgments kept, and is nothing lost or mixed up?"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from birchbark.bench.bench_folder import BenchFolder
from birchbark.bench.draft import DraftedQuestion
from birchbark.bench.rank_questions import JUDGED, SystemRun, pool
from birchbark.collection.qrels import read_qrels
from birchbark.errors import ArtifactError, InputError
from birchbark.records import Query, Ranking, Run

QUESTION = Query("q1", "where do bees sleep")


def test_judgments_are_a_trec_file_after_each_grade(tmp_path: Path) -> None:
    with closing(BenchFolder(tmp_path / "notes.bench")) as folder:
        folder.write_questions([QUESTION])
        folder.judge(QUESTION, "hive.txt", 3)
        folder.judge(QUESTION, "moor.txt", 0)
        file = folder.path / "judgments.qrels"
        assert file.read_text() == "q1 0 hive.txt 3\nq1 0 moor.txt 0\n"
        folder.judge(QUESTION, "hive.txt", 1)
        assert read_qrels(file).grades == {"q1": {"hive.txt": 1, "moor.txt": 0}}
    with closing(BenchFolder(tmp_path / "notes.bench")) as again:
        assert again.judgments.grades == {"q1": {"hive.txt": 1, "moor.txt": 0}}
        again.judge(QUESTION, "hive.txt", None)
        again.judge(QUESTION, "moor.txt", None)
        assert again.judgments.grades == {}
    with closing(BenchFolder(tmp_path / "notes.bench")) as empty:
        assert empty.judgments.grades == {}


@pytest.mark.parametrize("grade", [-1, 4])
def test_other_grades_are_refused(tmp_path: Path, grade: int) -> None:
    with (
        closing(BenchFolder(tmp_path / "notes.bench")) as folder,
        pytest.raises(InputError, match="grade is out of range: expected 0 to 3"),
    ):
        folder.judge(QUESTION, "hive.txt", grade)


def test_blanks_between_words_do_not_matter(tmp_path: Path) -> None:
    """People may edit the file; a judged question can still be written anew with others."""
    with closing(BenchFolder(tmp_path / "notes.bench")) as folder:
        (folder.path / "questions.tsv").write_text("q1\twhere do  bees   sleep \n")
        (question,) = folder.questions
        assert question.text == "where do bees sleep"
        folder.judge(Query("q1", "where  do bees sleep"), "hive.txt", 3)
        folder.write_questions([question, Query("q2", "other")])
        assert [query.query_id for query in folder.questions] == ["q1", "q2"]


def test_a_question_that_was_judged_keeps_its_words(tmp_path: Path) -> None:
    with closing(BenchFolder(tmp_path / "notes.bench")) as folder:
        folder.write_questions([QUESTION, Query("q2", "other")])
        folder.judge(QUESTION, "hive.txt", 3)
        (folder.path / "questions.tsv").write_text("q1\twhere do wasps sleep\nq2\tchanged\n")
        with pytest.raises(InputError, match="question q1 was judged in other words"):
            _ = folder.questions
        (folder.path / "questions.tsv").write_text("q3\twhere do wasps sleep\nq2\tchanged\n")
        assert [query.query_id for query in folder.questions] == ["q3", "q2"]


def test_the_source_of_a_drafted_question_is_kept(tmp_path: Path) -> None:
    with closing(BenchFolder(tmp_path / "notes.bench")) as folder:
        assert not folder.has_questions
        folder.write_drafted([DraftedQuestion(Query("drafted-1", "bees\tsleep"), "hive.txt")], 1)
        assert folder.has_questions
        assert folder.questions == [Query("drafted-1", "bees sleep")]
        assert folder.sources == {"drafted-1": "hive.txt"}


def test_what_was_found_is_kept_unless_something_has_changed(tmp_path: Path) -> None:
    run = Run({"q1": Ranking.of(["hive.txt"], [1.0]), "q2": Ranking.of([], [])}, "BM25")
    asked = {"q1": QUESTION.text, "q2": "nothing of it"}
    made = SystemRun(run, asked, {"q1": 0.25, "q2": 0.5})
    with closing(BenchFolder(tmp_path / "notes.bench")) as folder:
        assert folder.run("BM25", {"index": "a"}).asked == {}
        folder.write_run("BM25", {"index": "a"}, made)
        folder.judge(QUESTION, "hive.txt", 3)
    with closing(BenchFolder(tmp_path / "notes.bench")) as folder:
        assert folder.run("BM25", {"index": "b"}).asked == {}
        known = folder.run("BM25", {"index": "a"})
        assert known.run.rankings["q1"].doc_ids == ("hive.txt",)
        assert known.run.rankings["q2"].doc_ids == ()
        assert (known.asked, known.median_seconds) == (asked, 0.375)
        same = known.of([Query("q2", "nothing of it"), Query("q1", "other words")])
        assert list(same.run.rankings) == list(same.asked) == list(same.seconds) == ["q2"]
        (folder.path / "runs" / "BM25.run").unlink()
        assert folder.run("BM25", {"index": "a"}).asked == {}


def test_a_damaged_run_is_made_again(tmp_path: Path) -> None:
    made = SystemRun(Run({"q1": Ranking.of(["a"], [1.0])}, "BM25"), {"q1": "bees"}, {"q1": 0.5})
    with closing(BenchFolder(tmp_path / "notes.bench")) as folder:
        folder.write_run("BM25", {}, made)
        (folder.path / "runs" / "BM25.run").write_text("q1 Q0")
        assert folder.run("BM25", {}).asked == {}


@pytest.mark.parametrize(
    "state",
    [
        *("[]", "{}", "null", "{", '{"systems": [], "judged": {}}'),
        '{"systems": {"a": 3}, "judged": {}}',
        '{"systems": {"a": {"made_from": "", "asked": {"q": "x"}, "seconds": {}}}, "judged": {}}',
        '{"systems": {"a": {"made_from": "", "asked": {}, "seconds": {}}}, "judged": 1}',
    ],
)
def test_a_damaged_state_is_told(tmp_path: Path, state: str) -> None:
    BenchFolder(tmp_path / "b").close()
    (tmp_path / "b" / "bench.json").write_text(state)
    with pytest.raises(ArtifactError, match="damaged bench"):
        BenchFolder(tmp_path / "b")


def test_damaged_judgments_are_told(tmp_path: Path) -> None:
    BenchFolder(tmp_path / "b").close()
    (tmp_path / "b" / "judgments.qrels").write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match=r"judgments\.qrels"):
        BenchFolder(tmp_path / "b")


def test_a_question_whose_judgments_are_gone_may_change(tmp_path: Path) -> None:
    with closing(BenchFolder(tmp_path / "b")) as folder:
        folder.judge(QUESTION, "hive.txt", 3)
        folder.judge(QUESTION, "hive.txt", None)
        folder.write_questions([Query("q1", "where do wasps sleep")])
        assert folder.questions == [Query("q1", "where do wasps sleep")]


def test_a_folder_of_other_files_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(InputError, match="is not a bench"):
        BenchFolder(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_one_process_at_a_time_uses_it(tmp_path: Path) -> None:
    with (
        closing(BenchFolder(tmp_path / "notes.bench")),
        pytest.raises(ArtifactError, match="another process is writing to this bench"),
    ):
        BenchFolder(tmp_path / "notes.bench")
    BenchFolder(tmp_path / "notes.bench").close()


def test_weights_instead_of_words_are_refused(tmp_path: Path) -> None:
    with (
        closing(BenchFolder(tmp_path / "notes.bench")) as folder,
        pytest.raises(InputError, match="query q1: has weights instead of words"),
    ):
        folder.write_questions([Query("q1", "bee", {"bee": 1.5})])


def test_the_first_documents_of_every_system_are_judged_in_an_order_of_their_own() -> None:
    first = [f"d{n:02}" for n in range(10)]
    runs = [
        Run({"q1": Ranking.of(ids, range(10, 0, -1))}, tag)
        for tag, ids in (("BM25", first), ("model", [*first[7:], *first[:7]]))
    ]
    (pooled,) = pool(runs, [QUESTION]).values()
    assert sorted(pooled) == sorted({*first[:JUDGED], *first[7:], *first[:2]})
    assert pooled != sorted(pooled)
    assert pool(runs[::-1], [QUESTION]) == {"q1": pooled}
    assert pool(runs, [Query("q9", "unranked")]) == {"q9": []}


def test_a_run_that_was_stored_without_its_state_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its questions are not those that the state says were asked."""

    def killed(*arguments: object, **options: object) -> None:
        raise KeyboardInterrupt

    made = SystemRun(Run({"q1": Ranking.of(["a"], [1.0])}, "BM25"), {"q1": "bees"}, {"q1": 0.5})
    with closing(BenchFolder(tmp_path / "notes.bench")) as folder:
        folder.write_run("BM25", {}, made)
        monkeypatch.setattr(BenchFolder, "_store", killed)
        with pytest.raises(KeyboardInterrupt):
            folder.write_run("BM25", {}, SystemRun(Run({}, "BM25"), {}, {}))
    with closing(BenchFolder(tmp_path / "notes.bench")) as again:
        assert again.run("BM25", {}).asked == {}


def test_a_folder_without_state_is_a_bench_if_it_has_nothing_else(tmp_path: Path) -> None:
    """A process has ended before it wrote the state."""
    (tmp_path / "lock").touch()
    (tmp_path / ".birchbark-tmp-00").touch()
    BenchFolder(tmp_path).close()
    (tmp_path / "bench.json").unlink()
    (tmp_path / "other").touch()
    with pytest.raises(InputError, match="is not a bench"):
        BenchFolder(tmp_path)
