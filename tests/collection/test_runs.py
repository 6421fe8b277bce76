"""Do runs round-trip, and are runs refused that cannot be evaluated?"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from birchbark.collection.runs import read_run, write_run
from birchbark.errors import InputError
from birchbark.records import Ranking, Run

ID = st.text(min_size=1, max_size=5).filter(lambda s: not re.search(r"[\s\ufeff]", s))
SCORE = st.floats(width=32, allow_nan=False, allow_infinity=False)
RANKING = st.dictionaries(ID, SCORE, min_size=1, max_size=5).map(
    lambda scored: Ranking.of(list(scored), list(scored.values()))
)
RUNS = st.builds(Run, st.dictionaries(ID, RANKING, min_size=1, max_size=3), ID)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A path for one file, rewritten by each example."""
    return tmp_path_factory.mktemp("runs") / "file.run"


def read(path: Path, text: str) -> Run:
    """Write `text` to a file and return its run."""
    path.write_text(text, "utf-8", newline="")
    return read_run(path)


@given(RUNS)
def test_runs_round_trip(file: Path, run: Run) -> None:
    """Ids, scores to the last bit, order and tag are unchanged."""
    write_run(run, file)
    assert read_run(file) == run
    assert list(read_run(file).rankings) == list(run.rankings)


@given(RUNS)
@settings(max_examples=20)
def test_the_same_run_gives_the_same_bytes(file: Path, run: Run) -> None:
    """A run that is read and written again has the same bytes."""
    write_run(run, file)
    before = file.read_bytes()
    write_run(read_run(file), file)
    assert file.read_bytes() == before


@given(RUNS, st.randoms(use_true_random=False))
def test_neither_order_nor_rank_column_matters(file: Path, run: Run, random: object) -> None:
    """Documents are sorted by score and id alone, as in trec_eval."""
    lines = [
        f"{query_id} Q0 {doc_id} {random.randint(-9, 9)} {score!r} {run.tag}\n"  # type: ignore[attr-defined]
        for query_id, ranking in run.rankings.items()
        for doc_id, score in ranking
    ]
    random.shuffle(lines)  # type: ignore[attr-defined]
    assert read(file, "".join(lines)) == run


@given(st.text() | st.text("ab 01.-einf\n", max_size=60))
def test_any_text_is_a_run_or_an_input_error(file: Path, text: str) -> None:
    """Scores that are read are finite and non-increasing."""
    try:
        run = read(file, text)
    except InputError as error:
        assert str(error).startswith(str(file))
        return
    for ranking in run.rankings.values():
        assert np.isfinite(ranking.scores).all()
        assert (np.diff(ranking.scores) <= 0).all()


def test_the_format_is_trecs(tmp_path: Path) -> None:
    """Six columns, ranks from 1, ties by descending id, scores with the fewest digits."""
    ranking = Ranking.of(["a", "b", "c"], [0.5, 0.1, 0.5])
    write_run(Run({"q1": ranking, "q2": ranking.head(1)}, "tag"), tmp_path / "x.run")
    assert (tmp_path / "x.run").read_text().splitlines() == [
        "q1 Q0 c 1 0.5 tag",
        "q1 Q0 a 2 0.5 tag",
        "q1 Q0 b 3 0.1 tag",
        "q2 Q0 c 1 0.5 tag",
    ]


def test_the_tag_is_that_of_the_first_line(tmp_path: Path) -> None:
    """Lines of queries may be mixed; other tags are ignored."""
    run = read(tmp_path / "x.run", "q Q0 a 1 2 one\np Q0 a 1 2 two\nq\tQ0\tb\t2\t1\tone\r\n\n")
    assert run.tag == "one"
    assert {query_id: r.doc_ids for query_id, r in run.rankings.items()} == {
        "q": ("a", "b"),
        "p": ("a",),
    }


def test_a_missing_tag_has_its_own_hint(tmp_path: Path) -> None:
    """It is the most common mistake."""
    with pytest.raises(InputError) as caught:
        read(tmp_path / "x.run", "q Q0 a 1 2 tag\nq Q0 b 2 1\n")
    assert str(caught.value) == (
        f"{tmp_path / 'x.run'}:2: wrong number of columns: "
        "expected 6: query_id Q0 doc_id rank score tag, found 5 (is the tag missing?)"
    )


@pytest.mark.parametrize(("line", "found"), [("q a 1", 3), ("q Q0 a 1 2 my tag", 7)])
def test_other_numbers_of_fields_show_the_format(tmp_path: Path, line: str, found: int) -> None:
    """The error names all columns."""
    with pytest.raises(
        InputError, match=rf":1: .*expected 6: query_id Q0 doc_id rank score tag, found {found}"
    ):
        read(tmp_path / "x.run", line)


@pytest.mark.parametrize(
    "score",
    [
        "high",
        "1,5",
        "0x10",
        "1_0",
        "３",
    ],
)
def test_a_score_is_a_number(tmp_path: Path, score: str) -> None:
    """The error shows any other value and its line."""
    with pytest.raises(InputError, match=rf"x\.run:1: score is not a number: found '{score}'"):
        read(tmp_path / "x.run", f"q Q0 a 1 {score} tag\n")


@pytest.mark.parametrize(
    "score",
    [
        "nan",
        "inf",
        "-inf",
        "Infinity",
        "1e400",
        "1e39",
    ],
)
def test_scores_are_finite_in_single_precision(tmp_path: Path, score: str) -> None:
    """Infinite scores are refused without a warning of numpy."""
    with pytest.raises(InputError, match=r"x\.run:2: score is not finite in single"):
        read(tmp_path / "x.run", f"q Q0 a 1 1 tag\nq Q0 b 2 {score} tag\n")


def test_a_document_is_listed_once_for_a_query(tmp_path: Path) -> None:
    """The error names the query; other queries may rank the same document."""
    lines = "q Q0 a 1 2 t\np Q0 a 1 2 t\n"
    assert len(read(tmp_path / "x.run", lines).rankings) == 2
    with pytest.raises(InputError, match=r"x\.run:3: document a is ranked twice for query p"):
        read(tmp_path / "x.run", lines + "p Q0 a 2 1 t\n")


@pytest.mark.parametrize("text", ["", "\n\n"])
def test_an_empty_run_is_refused(tmp_path: Path, text: str) -> None:
    """An empty file is most likely the wrong file."""
    with pytest.raises(InputError, match=r"x\.run: no ranked documents"):
        read(tmp_path / "x.run", text)


@pytest.mark.parametrize("wrong", ["two words", "tab\t", "line\n", "\u3000", ""])
@pytest.mark.parametrize("part", ["query_id", "doc_id", "tag"])
def test_ids_with_white_space_are_refused_on_writing(tmp_path: Path, part: str, wrong: str) -> None:
    """No file is written, and an existing one stays as it was."""
    names = {"query_id": "q", "doc_id": "a", "tag": "t", part: wrong}
    good = Run({"q": Ranking.of(["a"], [1.0])}, "t")
    bad = Run(
        {"p": Ranking.of(["a"], [1.0]), names["query_id"]: Ranking.of([names["doc_id"]], [1.0])},
        names["tag"],
    )
    with pytest.raises(
        InputError, match=rf"new\.run: run files cannot contain {re.escape(repr(wrong))}"
    ):
        write_run(bad, tmp_path / "new.run")
    assert list(tmp_path.iterdir()) == []
    write_run(good, tmp_path / "old.run")
    with pytest.raises(InputError):
        write_run(bad, tmp_path / "old.run")
    assert list(tmp_path.iterdir()) == [tmp_path / "old.run"]
    assert read_run(tmp_path / "old.run") == good


@pytest.mark.parametrize("query_id", ["\ud800", "\ufeffq"], ids=["lone surrogate", "BOM"])
def test_ids_round_trip_or_are_refused(tmp_path: Path, query_id: str) -> None:
    """Lone surrogates and a byte order mark at the start are refused."""
    run = Run({query_id: Ranking.of(["a"], [1.0])})
    try:
        write_run(run, tmp_path / "x.run")
    except InputError:
        assert list(tmp_path.iterdir()) == []
    else:
        assert read_run(tmp_path / "x.run") == run


def test_a_run_replaces_an_earlier_one(tmp_path: Path) -> None:
    """Parent folders are made, and no temporary file is left."""
    path = tmp_path / "runs" / "deep" / "x.run"
    for score in (1.0, 2.0):
        write_run(Run({"q": Ranking.of(["a"], [score])}), path)
    assert read_run(path).rankings["q"].scores.tolist() == [2.0]
    assert list(path.parent.iterdir()) == [path]


def test_codecs_runs_are_read(data: Callable[[str], Path]) -> None:
    """42 queries each; the run with repeated documents is refused, its corrected copy is read."""
    refused = []
    for path in sorted(data("checks/codec/runs").glob("*.run")):
        try:
            assert len(read_run(path).rankings) == 42
        except InputError as error:
            assert re.search(r":\d+: document \S+ is ranked twice for query \S+", str(error))
            refused.append(path.name)
    assert refused == ["document_bm25+rm3-tuned.run"]
