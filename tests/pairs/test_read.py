"""Are training pairs read unchanged, and contradictory files refused?"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable, Iterable
from itertools import chain
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from birchbark.collection.parsing.intake import Intake
from birchbark.errors import InputError
from birchbark.pairs.read import Columns, read_pairs, text_id
from birchbark.records import Pair
from fuzzing import broken, fuzz, is_read

pytestmark = pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")  # test_lines

HEADER = "qid\tquery\tdocid\ttext\tlabel\n"
TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\t\r\n"), min_size=1).filter(
    str.strip
)
PAIRS = st.lists(st.tuples(TEXT, TEXT, st.integers(0, 3)), min_size=1, max_size=5).map(
    lambda rows: [Pair(f"q{i}", q, f"d{i}", t, grade) for i, (q, t, grade) in enumerate(rows)]
)

SOME = [Pair("1", "birch", "a", "A canoe of bark.", 1), Pair("1", "birch", "b", "Bees.", 0)]


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A path for one file, rewritten by each example."""
    return tmp_path_factory.mktemp("pairs") / "pairs"


def read(path: Path, text: str, intake: Intake | None = None, **options: object) -> list[Pair]:
    path.write_text(text, "utf-8", newline="")
    return list(read_pairs(path, intake or Intake(), **options))  # type: ignore[arg-type]


def refusal(path: Path, text: str, **options: object) -> str:
    with pytest.raises(InputError) as caught:
        read(path, text, **options)
    return str(caught.value).removeprefix(f"{path.parent}/")


def tsv(pairs: Iterable[Pair]) -> str:
    rows = ((p.query_id, p.query, p.doc_id, p.text, str(p.relevance)) for p in pairs)
    return HEADER + "".join("\t".join(row) + "\n" for row in rows)


def jsonl(pairs: Iterable[Pair]) -> str:
    names = HEADER.split()
    rows = ((p.query_id, p.query, p.doc_id, p.text, p.relevance) for p in pairs)
    return "".join(json.dumps(dict(zip(names, row, strict=True))) + "\n" for row in rows)


@given(PAIRS, st.sampled_from([tsv, jsonl]), st.booleans())
def test_pairs_round_trip(
    file: Path, pairs: list[Pair], write: Callable[[Iterable[Pair]], str], gzipped: bool
) -> None:
    raw = write(pairs).encode()
    file.write_bytes(gzip.compress(raw) if gzipped else raw)
    assert list(read_pairs(file, Intake(), highest=3)) == pairs


@given(st.text() | st.text("ab01\t\n{}").map(HEADER.__add__), st.booleans())
def test_any_text_is_pairs_or_an_input_error(file: Path, text: str, skip_bad: bool) -> None:
    try:
        pairs = read(file, text, Intake(skip_bad=skip_bad))
    except InputError as error:
        assert str(error).startswith(str(file))
        return
    assert pairs
    assert not any(pair.fault for pair in pairs)


@given(
    st.dictionaries(
        st.sampled_from(HEADER.split()),
        st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.just([]),
    )
)
def test_any_object_is_a_pair_or_an_input_error(file: Path, values: dict[str, object]) -> None:
    try:
        pairs = read(file, json.dumps(values))
    except InputError as error:
        assert str(error).startswith(str(file))
        return
    assert [pair.relevance for pair in pairs] in ([0], [1])


def test_quotes_have_no_meaning(tmp_path: Path) -> None:
    text = HEADER + '1\t"open\t2\tsays ""hi""\t0\n1\t"open\t3\t"\t1\n'
    assert [pair.text for pair in read(tmp_path / "p", text)] == ['says ""hi""', '"']


def test_columns_may_have_other_names(tmp_path: Path) -> None:
    columns = Columns("q", "question", "d", "sentence", "grade")
    text = "grade\turls\tsentence\tquestion\td\tq\n2\tu\tBees dance.\tDo bees?\tbees\t7\n"
    pairs = read(tmp_path / "p", text, columns=columns, highest=2)
    assert pairs == [Pair("7", "Do bees?", "bees", "Bees dance.", 2)]


@pytest.mark.parametrize(
    "text",
    [
        "query\ttext\tlabel\nq\ta\t1\nq\tb\t0\np\ta\t0\n",
        '{"query": "q", "text": "a", "label": 1}\n{"query": "q", "text": "b", "label": "0"}\n'
        '{"query": "p", "text": "a", "label": 0, "qid": null}\n',
    ],
)
def test_missing_ids_are_derived_from_the_texts(tmp_path: Path, text: str) -> None:
    first, second, third = read(tmp_path / "p", text)
    assert first.query_id == second.query_id == text_id("q") != third.query_id
    assert first.doc_id == third.doc_id == text_id("a") != second.doc_id
    assert text_id("q") == "2b3570fb29bd1435"  # in every version


@pytest.mark.parametrize("column", ["query", "text", "label"])
def test_a_header_without_a_required_column_is_refused(tmp_path: Path, column: str) -> None:
    intake = Intake(skip_bad=True)  # without a header nothing can be read
    with pytest.raises(InputError) as caught:
        read(tmp_path / "p.tsv", "\n" + HEADER.replace(column, "x") + "1\tq\t1\tt\t1\n", intake)
    assert str(caught.value) == (
        f"{tmp_path / 'p.tsv'}:2: no column named {column}: found "
        f"{', '.join(HEADER.replace(column, 'x').split())} "
        "(add the header line; a training configuration can name other columns)"
    )


def test_a_repeated_column_is_refused(tmp_path: Path) -> None:
    message = "p:1: two columns are named text"
    assert refusal(tmp_path / "p", "query\ttext\ttext\tlabel\n") == message
    text = "query\ttext\tx\tx\tlabel\nq\tt\t\t\t1\n"  # but not if nobody reads it
    assert len(read(tmp_path / "p", text)) == 1


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("1\tq\t1\tt", "wrong number of columns: expected 5 as in the header, found 4"),
        ("1\tq\t1\ta\tb\t1", "wrong number of columns: expected 5 as in the header, found 6"),
        ("1\tq\t1\tt\t1.0", "grade is not an integer: found '1.0'"),
        ("1\tq\t1\tt\tyes", "grade is not an integer: found 'yes'"),
        ("1\tq\t1\tt\t1_0", "grade is not an integer: found '1_0'"),
        ("1\tq\t1\tt\t2", "relevance is too high: expected 0 to 1, found 2"),
        ("1\tq\t1\tt\t", "relevance is empty"),
        ("1\t \t1\tt\t1", "query is empty"),
        ("1\tq\t1\t\u3000\t1", "text is empty"),
        ("\tq\t1\tt\t1", "query_id is empty"),
        ("1\tq\t\tt\t1", "doc_id is empty"),
    ],
)
def test_the_error_for_a_bad_row_names_the_line(tmp_path: Path, row: str, message: str) -> None:
    text = f"{HEADER}0\tp\t0\tt\t1\n{row}\n9\tr\t9\tt\t0\n"
    assert refusal(tmp_path / "p.tsv", text).startswith(f"p.tsv:3: {message}")
    intake = Intake(skip_bad=True)
    assert [pair.query_id for pair in read(tmp_path / "p.tsv", text, intake)] == ["0", "9"]
    assert len(intake.skipped) == 1


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ('"query": "q", "text": "t"', "no column named label: found query, text"),
        ('"query": 3, "text": "t", "label": 1', "query is not a string: found 3"),
        ('"query": "q", "text": null, "label": 1', "text is not a string: found None"),
        ('"query": "q", "text": "t", "label": true', "grade is not an integer: found True"),
        ('"query": "q", "text": "t", "label": 1.5', "grade is not an integer: found float 1.5"),
        ('"query": "q", "text": "t", "label": null', "relevance is empty"),
        ('"query": "q", "text": "\\ud800", "label": 1', "text contains a lone surrogate"),
        ('"query": "\\udfff", "text": "t", "label": 1', "query contains a lone surrogate"),
        ('"query": "q", "text": "t", "label": 1, "qid": []', "field qid is not an id"),
        ('"query": "q"', "no column named text and none named label: found query"),
        ('"query" "q"', "broken JSON at column 10"),
    ],
)
def test_the_error_for_a_bad_object_names_the_line(
    tmp_path: Path, values: str, message: str
) -> None:
    good = '{"query": "p", "text": "t", "label": 0}'
    text = f"{good}\n{{{values}}}\n"
    assert refusal(tmp_path / "p.jsonl", text).startswith(f"p.jsonl:2: {message}")


def test_the_error_for_a_json_list_has_a_remedy(tmp_path: Path) -> None:
    assert "one complete object per line" in refusal(tmp_path / "p", '[{"query": "q"},\n')


def test_grades_below_zero_count_as_zero(tmp_path: Path) -> None:
    text = HEADER + "1\tq\t1\tspam\t-2\n1\tq\t2\tt\t2\n"
    assert [pair.relevance for pair in read(tmp_path / "p", text, highest=2)] == [0, 2]


@pytest.mark.parametrize("unjudged", [0, 1])
def test_the_grade_of_unjudged_pairs_can_be_set(tmp_path: Path, unjudged: int) -> None:
    text = HEADER + "1\tq\t1\tt\t\n"
    assert read(tmp_path / "p", text, unjudged=unjudged)[0].relevance == unjudged


@pytest.mark.parametrize("text", ["", "\n \n", HEADER, HEADER + "\n"])
def test_a_file_without_pairs_is_refused(tmp_path: Path, text: str) -> None:
    assert refusal(tmp_path / "p.tsv", text).startswith("p.tsv: no pairs")


def test_a_file_of_bad_pairs_alone_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"p: no pairs: found 2 bad records"):
        read(tmp_path / "p", HEADER + "1\n2\n", Intake(skip_bad=True))


def test_a_query_id_for_two_texts_is_refused(tmp_path: Path) -> None:
    text = HEADER + "1\tq\t1\tt\t1\n1\tother\t2\tt\t1\n"
    assert refusal(tmp_path / "p", text) == (
        "p:3: query id 1 has two different texts: found 'other' (give each query a distinct id)"
    )


def test_contradictions_are_refused(tmp_path: Path) -> None:
    text = HEADER + "1\tq\t1\tt\t1\n2\tp\t1\tt\t0\n1\tq\t1\tt\t0\n"
    assert refusal(tmp_path / "p", text) == (
        "p:4: document 1 is judged twice for query 1: found relevance 1 and 0 "
        "(remove one of the two pairs)"
    )
    text = "query\ttext\tlabel\nq\tt\t1\nq\tt\t0\n"  # without ids, the text is the document
    assert re.match(r"p:3: document \w{16} is judged twice", refusal(tmp_path / "p", text))


def test_repeated_texts_are_read_and_noted(tmp_path: Path) -> None:
    intake = Intake()
    text = HEADER + "1\tq\t1\tt\t1\n1\tq\t1\tt\t1\n1\tq\t2\tt\t0\n2\tp\t1\tt\t0\n"
    assert len(read(tmp_path / "p", text, intake)) == 4
    assert intake.notes == {
        "text repeated for its query, with the same relevance": 1,
        "text repeated for its query, with different relevance": 1,
    }


def test_the_error_for_a_wrong_encoding_names_the_line(tmp_path: Path) -> None:
    (tmp_path / "p").write_bytes(HEADER.encode() + b"1\tcaf\xe9\t1\tt\t1\n")
    with pytest.raises(InputError, match=r"p:2: wrong encoding"):
        list(read_pairs(tmp_path / "p", Intake()))
    assert next(read_pairs(tmp_path / "p", Intake(encoding="latin-1"))).query == "café"


def test_microblog_pairs_are_read(data: Callable[[str], Path]) -> None:
    """The counts of SOURCE.md, except five pairs with an empty text; no query id has two texts."""
    intake = Intake(skip_bad=True)
    files = sorted(data("mb").glob("trec-*.tsv"))
    pairs = list(chain.from_iterable(read_pairs(file, intake) for file in files))
    assert {error.what for error in intake.skipped} == {"text is empty"}
    assert len(pairs) + len(intake.skipped) == 177_430
    assert len(intake.skipped) == 5
    assert sum(pair.relevance for pair in pairs) == 16_765
    assert len({pair.query_id for pair in pairs}) == 224
    assert len({(pair.query_id, pair.query) for pair in pairs}) == 224


def test_microblog_grades_are_read(data: Callable[[str], Path]) -> None:
    """Label 1 stands for grades 1 and 2."""
    graded = Columns(relevance="grade")
    for year, positive in ((2011, 2_083), (2012, 3_470), (2013, 4_306), (2014, 6_906)):
        file = data("mb") / f"trec-{year}.tsv"
        pairs = read_pairs(file, Intake(skip_bad=True), graded, highest=2, unjudged=0)
        assert sum(pair.relevance > 0 for pair in pairs) == positive


@pytest.mark.parametrize(
    ("name", "count", "positive"),
    [("wikiqa/train.tsv", 20_360, 1_040), ("selqa/dev.tsv", 9_377, 893)],
)
def test_question_pairs_are_read(
    data: Callable[[str], Path], name: str, count: int, positive: int
) -> None:
    pairs = list(read_pairs(data(name), Intake()))
    assert (len(pairs), sum(pair.relevance for pair in pairs)) == (count, positive)


@fuzz(25)
@given(raw=broken([tsv(SOME).encode(), jsonl(SOME).encode()]), skip=st.booleans())
def test_broken_pairs(raw: bytes, skip: bool, file: Path) -> None:
    """If a file of pairs is read, so is each line of it that is not blank, or skipped and told."""
    file.write_bytes(raw)
    intake = Intake(skip_bad=skip)
    found = is_read(lambda: list(read_pairs(file, intake)), file)
    lines = [
        line for line in raw.decode(errors="replace").split("\n") if line.strip("\ufeff").strip()
    ]
    header = bool(lines) and not lines[0].lstrip("\ufeff").lstrip().startswith(("{", "["))
    assert found is None or len(found) + len(intake.skipped) == len(lines) - header
