"""Are judgments read unchanged, and contradictions refused?"""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from birchbark.collection.qrels import read_qrels
from birchbark.errors import InputError
from birchbark.records import Qrels

ID = st.text(min_size=1, max_size=5).filter(lambda s: not re.search(r"[\s\ufeff]", s))
GRADES = st.dictionaries(
    ID, st.dictionaries(ID, st.integers(-2, 4), min_size=1, max_size=3), min_size=1, max_size=3
)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A path for one file, rewritten by each example."""
    return tmp_path_factory.mktemp("qrels") / "qrels.txt"


def read(path: Path, text: str) -> Qrels:
    """Write `text` to a file and return its judgments."""
    path.write_text(text, "utf-8", newline="")
    return read_qrels(path)


@given(GRADES, st.sampled_from([" ", "\t", "  "]), st.sampled_from(["\n", "\r\n", " \n\n"]))
def test_judgments_round_trip(
    file: Path, grades: dict[str, dict[str, int]], space: str, end: str
) -> None:
    """Any white space may be between columns and lines."""
    lines = [
        space.join((query_id, "0", doc_id, str(grade)))
        for query_id, of_query in grades.items()
        for doc_id, grade in of_query.items()
    ]
    qrels = read(file, end.join(lines) + end)
    assert qrels == Qrels(grades)
    assert len(qrels) == len(lines)


@given(st.text() | st.text("ab 01\n-.", max_size=40))
def test_any_text_is_judgments_or_an_input_error(file: Path, text: str) -> None:
    """Every grade that is read is an integer."""
    try:
        qrels = read(file, text)
    except InputError as error:
        assert str(error).startswith(str(file))
        return
    assert len(qrels) > 0
    assert all(isinstance(g, int) for grades in qrels.grades.values() for g in grades.values())


@pytest.mark.parametrize(("line", "found"), [("q 0 d", 3), ("q 0 d 1 2", 5), ("q", 1)])
def test_a_line_has_four_columns(tmp_path: Path, line: str, found: int) -> None:
    """The error names the line and the number of columns."""
    with pytest.raises(
        InputError, match=rf"q\.txt:2: wrong number of columns: expected 4, found {found}"
    ):
        read(tmp_path / "q.txt", f"q 0 c 1\n{line}\n")


@pytest.mark.parametrize(
    "grade",
    [
        "1.0",
        "yes",
        "1e3",
        "--1",
        "9" * 5_000,
        "1_0",
    ],
)
def test_a_grade_is_a_whole_number(tmp_path: Path, grade: str) -> None:
    """The error shows any other value."""
    with pytest.raises(
        InputError, match=rf":1: grade is not an integer: found '{re.escape(grade)}'"
    ):
        read(tmp_path / "q.txt", f"q 0 d {grade}\n")


def test_negative_grades_are_kept(tmp_path: Path) -> None:
    """Spam has grade -2 in the web track; measures decide what it counts as."""
    assert read(tmp_path / "q.txt", "q 0 d -2\nq 0 e +1\n").grades == {"q": {"d": -2, "e": 1}}


def test_the_second_column_has_no_meaning(tmp_path: Path) -> None:
    """It may be 0, Q0 or the number of a round."""
    assert read(tmp_path / "q.txt", "q Q0 d 1\nq 0.5 e 0\n").grades == {"q": {"d": 1, "e": 0}}


def test_contradictions_are_refused(tmp_path: Path) -> None:
    """The error names the second place, both grades and the remedy."""
    with pytest.raises(InputError) as caught:
        read(tmp_path / "q.txt", "q 0 d 1\np 0 d 0\nq 0 d 2\n")
    assert str(caught.value) == (
        f"{tmp_path / 'q.txt'}:3: document d is judged twice for query q: found grades 1 and 2 "
        "(delete one of the two lines)"
    )


def test_the_same_line_twice_is_harmless(tmp_path: Path) -> None:
    """Equal judgments are one judgment; a document may be judged for two queries."""
    assert len(read(tmp_path / "q.txt", "q 0 d 1\nq 0 d 1\nq 7 d 1\np 0 d 0\n")) == 2


@pytest.mark.parametrize("text", ["", "\n\n"])
def test_a_file_without_judgments_is_refused(tmp_path: Path, text: str) -> None:
    """An empty file is most likely the wrong file."""
    with pytest.raises(InputError, match=r"q\.txt: no judgments"):
        read(tmp_path / "q.txt", text)


@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")  # test_lines: closed
def test_gzip_and_byte_order_mark_are_removed(tmp_path: Path) -> None:
    """The first query id is the same."""
    (tmp_path / "q.gz").write_bytes(gzip.compress(b"\xef\xbb\xbfq 0 d 1\r\n"))
    assert read_qrels(tmp_path / "q.gz").grades == {"q": {"d": 1}}


def test_codec_is_read(data: Callable[[str], Path]) -> None:
    """42 topics and 6,186 judgments."""
    qrels = read_qrels(data("checks/codec/document_ndcg.qrels"))
    assert (len(qrels.grades), len(qrels)) == (42, 6186)


def test_judgments_of_beir(tmp_path: Path) -> None:
    """A header and three columns, separated by tabs; errors name the line."""
    header = "query-id\tcorpus-id\tscore\n"
    assert read(tmp_path / "q.tsv", f"{header}1\td1\t2\n1\td2\t0\n") == Qrels(
        {"1": {"d1": 2, "d2": 0}}
    )
    with pytest.raises(InputError, match=r"q\.tsv:3: .*expected 3, found 4"):
        read(tmp_path / "q.tsv", f"{header}1\td1\t2\n1\t0\td2\t0\n")


@pytest.mark.parametrize("grade", ["10001", "-10001", "999999999"])
def test_huge_grades_are_refused(file: Path, grade: str) -> None:
    """Measures would need memory in proportion to them."""
    with pytest.raises(InputError, match="grade is out of range: expected at most 10,000"):
        read(file, f"q 0 d {grade}\n")
    assert read(file, "q 0 d 10000\n").grades["q"]["d"] == 10_000
