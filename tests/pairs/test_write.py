"""Do written pairs read back equal, and is no incomplete file written?"""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from birchbark.collection.parsing.intake import Intake
from birchbark.errors import InputError
from birchbark.pairs.read import read_pairs
from birchbark.pairs.write import write_pairs
from birchbark.records import Pair

IDS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=3)
TEXTS = st.text(
    st.characters(exclude_categories=["Cs"]) | st.sampled_from("\t\r\n\u2028\x1c\"' {[")
)
PAIRS = st.lists(st.builds(Pair, IDS, TEXTS, IDS, TEXTS, st.integers(0, 3)), max_size=6)
GOOD = [
    Pair("1", "do bees dance", "bees", "Bees\nThey  dance.", 1),
    Pair("2", "birch", "bees", "Bees\tdance", 0),
    Pair("2", "birch", "bark", "Bark", 2),
]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A path for one file, rewritten by each example."""
    return tmp_path_factory.mktemp("pairs") / "pairs.tsv"


def as_written(pair: Pair) -> Pair:
    query, text = " ".join(pair.query.split()), " ".join(pair.text.split())
    return Pair(pair.query_id, query, pair.doc_id, text, pair.relevance)


@given(PAIRS)
@example([Pair("1", "a", "b", "c", 1), Pair("\ufeff", "d", "e", "f", 0)])
def test_pairs_round_trip_through_a_file(path: Path, pairs: list[Pair]) -> None:
    """Only white space in texts may change; bad pairs are counted and not written."""
    intake = Intake(skip_bad=True)
    try:
        (stats,) = write_pairs(pairs, path, intake)
    except InputError as error:
        assert "no pair" in str(error)
        return
    read = list(read_pairs(path, Intake(), highest=3))
    expected = iter([as_written(pair) for pair in pairs])
    assert all(pair in expected for pair in read)  # in their order
    assert len(read) == stats.pairs == len(pairs) - len(intake.skipped)
    assert stats.relevant == sum(pair.relevance > 0 for pair in read)
    assert stats.queries == {pair.query_id for pair in read}
    assert stats.answered == {pair.query_id for pair in read if pair.relevance}
    assert stats.words == sum(len(pair.text.split()) for pair in read)


def test_the_file_is_tsv_with_a_header(tmp_path: Path) -> None:
    """White space within texts becomes one space."""
    write_pairs(GOOD, tmp_path / "p.tsv", Intake())
    assert (tmp_path / "p.tsv").read_text() == (
        "qid\tquery\tdocid\ttext\tlabel\n"
        "1\tdo bees dance\tbees\tBees They dance.\t1\n"
        "2\tbirch\tbees\tBees dance\t0\n"
        "2\tbirch\tbark\tBark\t2\n"
    )


def test_a_split_writes_each_query_to_one_file(tmp_path: Path) -> None:
    """Each file has its own statistics."""
    one, other = tmp_path / "p.tsv", tmp_path / "h.tsv"
    stats = write_pairs(GOOD, one, Intake(), other, {"1"})
    assert [t.pairs for t in stats] == [2, 1]
    assert [t.highest for t in stats] == [2, 1]
    assert list(read_pairs(one, Intake(), highest=2)) == [as_written(pair) for pair in GOOD[1:]]
    assert list(read_pairs(other, Intake())) == [as_written(GOOD[0])]


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (Pair("1", "do bees dance", "a\tb", "x", 0), r"pair 4: pair files .* the id 'a\\tb'"),
        (Pair("1\n", "do bees dance", "d", "x", 0), "cannot contain the id"),
        (Pair("1", "do bees dance", "d", " \n", 0), "pair 4: text is empty"),
        (Pair("1", "do bees dance", "d", "\ud800", 0), "pair 4: text contains a lone surrogate"),
        (Pair("1", "other words", "d", "x", 0), "pair 4: query id 1 has two different texts"),
        (Pair("1", "do bees dance", "bees", "x", 0), "document bees is judged twice for query 1"),
    ],
)
def test_a_bad_pair_leaves_the_existing_file_unchanged(
    tmp_path: Path, bad: Pair, message: str
) -> None:
    """With skip_bad, it is counted."""
    (tmp_path / "p.tsv").write_text("old")
    with pytest.raises(InputError, match=message):
        write_pairs([*GOOD, bad], tmp_path / "p.tsv", Intake())
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [("p.tsv", "old")]
    intake = Intake(skip_bad=True)
    write_pairs([*GOOD, bad], tmp_path / "p.tsv", intake)
    assert len(intake.skipped) == 1
    assert len(list(read_pairs(tmp_path / "p.tsv", Intake(), highest=2))) == 3


def test_a_file_without_pairs_is_not_written(tmp_path: Path) -> None:
    """An error is raised if either file would be empty, or if no pair is relevant."""
    one, other = tmp_path / "p.tsv", tmp_path / "h.tsv"
    with pytest.raises(InputError, match=r"h\.tsv: this file would have no pairs"):
        write_pairs(GOOD, one, Intake(), other, {"7"})
    with pytest.raises(InputError, match="no pair is relevant: found 1 pairs of relevance 0"):
        write_pairs([GOOD[1]], one, Intake())
    with pytest.raises(InputError, match="no pairs"):
        write_pairs([], one, Intake())
    assert not list(tmp_path.iterdir())
