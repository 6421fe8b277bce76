"""Does a filter allow exactly the documents that its text says?"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from birchbark.errors import DeadlineError, InputError
from birchbark.index.build_index import Schema, build_index
from birchbark.index.index import Index
from birchbark.index.part import PackedLists, is_above
from birchbark.index.writer import IndexWriter
from birchbark.pipeline.searcher import Searcher
from birchbark.records import Document
from birchbark.retrieve.filters import Filter, filter_of, parse_filters
from birchbark.retrieve.first_stage import FirstStage, match_ratio, matching_ids, rank_query
from birchbark.retrieve.match import ALL
from birchbark.retrieve.vector_search import filter_masks
from birchbark.text.normal_form import composed
from conftest import WORDS

VALUES = (
    "pdf html a|b !pdf docs/a docs/b/c 2023-12-31 2024-01-05 2024-03 2024-03-09 2024-12-01 7 07.0 "
    '12 -3 1e3 2024 x..y star* "quoted" é 日本 nan'
).split()


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    """A document per value, named after it, and one without a value, in several parts."""
    documents = [Document(value, {"text": "bee", "kind": value}) for value in VALUES]
    documents.append(Document("none", {"text": "bee"}))
    folder = tmp_path_factory.mktemp("filters") / "i"
    return build_index(documents, folder, Schema(keywords=["kind"]), part_tokens=6)


def found(index: Index, text: str) -> set[str]:
    """Return the documents that a search with the filter finds."""
    stage = FirstStage(filters={"kind": text}, match=ALL)
    return set(rank_query(index, "bee", stage).doc_ids)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("pdf", {"pdf"}),
        ("pdf|html", {"pdf", "html"}),
        ("docs/*", {"docs/a", "docs/b/c"}),
        ("docs/*|html|missing", {"docs/a", "docs/b/c", "html"}),
        ("2024-01..2024-03", {"2024-01-05", "2024-03", "2024-03-09"}),
        ("2024-03-02..2024-12", {"2024-03-09", "2024-12-01"}),
        ("7..12", {"7", "07.0", "12"}),
        ("..6", {"-3", "2023-12-31", "2024-01-05", "2024-03", "2024-03-09", "2024-12-01", "!pdf"}
         | {'"quoted"'}),
        ("1000..", {"1e3", "2024", "2023-12-31", "2024-01-05", "2024-03", "2024-03-09"}
         | {"2024-12-01", "pdf", "html", "a|b", "docs/a", "docs/b/c", "x..y", "star*", "é", "日本"}
         | {"nan"}),
        ('"a|b"', {"a|b"}),
        ('"a|"*', {"a|b"}),
        ('"!"*|"x.."*|"star*"*', {"!pdf", "x..y", "star*"}),
        ('"!pdf"', {"!pdf"}),
        ('"x..y"|"star*"', {"x..y", "star*"}),
        ('"""quoted"""', {'"quoted"'}),
        ("é..", {"é", "日本"}),
    ],
)  # fmt: skip
def test_filters(index: Index, text: str, expected: set[str]) -> None:
    """Values, beginnings, ranges of numbers and of text; negated, all others."""
    assert found(index, text) == expected
    assert found(index, f"!{text}") == {*VALUES, "none"} - expected


def allows(text: str, value: str) -> bool:
    """Return what the documentation says of a single value, beginning or range."""
    if text.endswith("*"):
        return value.startswith(text[:-1])
    low, dots, high = text.partition("..")
    if not dots:
        return value == text
    try:
        numbers = [float(limit) for limit in (low, high) if limit]
        number = float(value)
        if not any(x != x for x in [*numbers, number]):
            return (not low or float(low) <= number) and (not high or number <= float(high))
    except ValueError:
        pass
    as_bytes = value.encode()
    return low.encode() <= as_bytes and (
        not high or as_bytes[: len(high.encode())] <= high.encode()
    )


LIMIT = st.sampled_from(["", "2", "2024", "2024-03", "7", "-5", "12.5", "a", "d", "docs", "é"])
RANGE = (
    st.tuples(LIMIT, LIMIT)
    .filter(lambda limits: any(limits) and not (all(limits) and is_above(*limits)))
    .map("..".join)
)
PLAIN = st.sampled_from([value for value in VALUES if filter_of(value) == value])
BEGINNING = st.sampled_from(["*", "2*", "2024*", "2024-0*", "docs/*", "d*", "z*"])
LISTS = st.lists(RANGE | PLAIN | BEGINNING, min_size=1, max_size=8)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(parts=LISTS, negated=st.booleans())
def test_filters_equal_brute_force(index: Index, parts: list[str], negated: bool) -> None:
    """Any alternatives, with the masks that vector search uses as well."""
    text = "!" * negated + "|".join(parts)
    expected = {value for value in VALUES if any(allows(part, value) for part in parts)}
    expected = {*VALUES, "none"} - expected if negated else expected
    assert found(index, text) == expected
    masks = filter_masks(index, {"kind": text})
    assert sum(int(mask.sum()) for mask in masks) == len(expected)


@given(st.text(min_size=1))
@example("\uf900")
def test_every_value_has_a_filter(value: str) -> None:
    """It is the value itself, in quotation marks where it could mean something else."""
    assert Filter.parse("type", filter_of(value)) == Filter(values=(composed(value),))


@pytest.mark.parametrize(
    "text",
    [
        *("", "!", "|", "a|", "|a", "a||b", "a|!b", "!a|!b", '"a|b', '"a|b"x', '"a"..b', '"'),
        *("2024..2023", "10..9", "2024-05..2024-04", "b..a"),
    ],
)
def test_malformed_filters(index: Index, text: str) -> None:
    """They are refused, by a search as well."""
    with pytest.raises(InputError, match="not a filter"):
        Filter.parse("type", text)
    with pytest.raises(InputError, match="not a filter"):
        rank_query(index, "bee", FirstStage(filters={"kind": text}))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2024-05", "c d"),
        ("2024/5", "c d"),
        ("2024", "b c d"),
        ("2024-05-31", "d"),
        ("2023|2024-05-02", "a c"),
        ("!2024", "a e"),
        ("!2023|2024-05", "b e"),
        ("2024-13", ""),
        ("2024-05..", "c d"),
        ("2024/5..2024/7", "c d"),
        ("2024-5-3..", "d"),
        ("..2024-5", "a b c d"),
    ],
)
def test_a_part_of_a_date_is_any_time_in_it(text: str, expected: str, tmp_path: Path) -> None:
    """In alternatives and negations, too, and in a query as in a filter."""
    dates = ("2023-12-31", "2024", "2024-05-02", "2024-05-31T09:00", "")
    documents = [
        Document(name, {"text": "bee", **({"modified": date} if date else {})})
        for name, date in zip("abcde", dates, strict=True)
    ]
    index = build_index(documents, tmp_path / "i", Schema(keywords=["modified"]))
    by_filter = rank_query(index, "bee", FirstStage(filters={"modified": text}, match=ALL))
    assert sorted(by_filter.doc_ids) == expected.split()
    query = f"bee -modified:{text[1:]}" if text.startswith("!") else f"bee modified:{text}"
    by_query = Searcher(index.directory, ()).search(query).hits
    assert sorted(hit.document.doc_id for hit in by_query) == expected.split()


def test_dates_are_found_as_they_are_spelt(tmp_path: Path) -> None:
    """The filter of a value finds its document, also if the date is in another format."""
    dates = ["2024/05/01", "2024-05-01", "2024/5/1", "2024/05"]
    documents = [Document(date, {"text": "bee", "date": date}) for date in dates]
    index = build_index(documents, tmp_path / "i", Schema(keywords=["date"]))
    for date in dates:
        stage = FirstStage(filters={"date": filter_of(date)}, match=ALL)
        assert date in rank_query(index, "bee", stage).doc_ids
    slashes = FirstStage(filters={"date": "2024/05/01"}, match=ALL)
    assert set(rank_query(index, "bee", slashes).doc_ids) == {"2024/05/01", "2024-05-01"}


def test_alternatives_are_limited() -> None:
    """Equal ones count once in what is looked up."""
    assert Filter.parse("type", "a|" * 999 + "b") == Filter(values=("a", "b"))
    with pytest.raises(InputError, match="too many alternatives: expected at most 1,000,"):
        Filter.parse("type", "a|" * 1000 + "b")


def test_filters_unpack_postings_once(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    """They do so however many alternatives have a value, and however often a search asks."""
    unpacked, take = [], PackedLists.take

    def counted(lists: PackedLists, numbers: Any) -> Any:
        unpacked.extend(numbers.tolist())
        return take(lists, numbers)

    monkeypatch.setattr(PackedLists, "take", counted)
    ranges = "|".join([*(f"..z{n}" for n in range(400)), *(f"{n}.." for n in range(400))])
    for _ in range(2):
        for mask in filter_masks(index, {"kind": f"{ranges}|p*|d*"}):
            assert mask.any()
    fields = [part.fields[index.filter_number("kind")] for part in index.parts]
    terms = sum(field.end_term - field.first_term for field in fields)
    assert 0 < len(unpacked) <= 2 * terms  # a term is chosen as text, as a number, or both


def test_facets_end_between_filters(index: Index) -> None:
    """They end there even if no document is read, since none meets the filter."""
    searcher, steps = Searcher(index.directory, ()), list[int]()
    searcher.facets("bee", {"kind": "z*"}, on_batch=lambda: steps.append(len(steps)))
    assert len(steps) > len(VALUES)  # those counted without the filter
    with pytest.raises(DeadlineError):
        searcher.facets("missing", {"kind": "z*"}, budget=0)


def test_filters_of_options() -> None:
    """Two filters of one field would exclude each other."""
    assert parse_filters(["a=b=c", "kind=pdf|html"]) == {"a": "b=c", "kind": "pdf|html"}
    with pytest.raises(InputError, match=r"two filters of the field a.*\(a=b\|c for both\)"):
        parse_filters(["a=b", "a=c"])
    with pytest.raises(InputError, match=r"\(a=!b\|c for both\)"):
        parse_filters(["a=!b", "a=!c"])
    for one, other in (("a=1..", "a=..2"), ("a=!b", "a=c")):
        with pytest.raises(InputError, match="two filters") as refused:
            parse_filters([one, other])
        assert "for both" not in str(refused.value)
    with pytest.raises(InputError, match="not a filter: expected FIELD=VALUE"):
        parse_filters(["a"])


def test_filters_of_one_field_add(index: Index) -> None:
    """A filter that is added to one of the same field leaves out more, in any order."""
    first, second, third = "2024-01..2024-12", "2024-03*|pdf", "!2024-03"
    for one, *others in itertools.permutations([first, second, third]):
        stage = FirstStage(filters={"kind": one}, match=ALL)
        for text in others:
            stage = stage.filtered({"kind": text})
        assert rank_query(index, "bee", stage).doc_ids == ("2024-03-09",)
        assert matching_ids(index, "bee", stage) == {"2024-03-09"}
        assert stage.filters == {"kind": one}
    with pytest.raises(InputError, match="the filter of the field kind"):
        stage.filtered({"kind": 2024})  # type: ignore[dict-item]


def test_facets_are_filters(tmp_path: Path) -> None:
    """Each facet narrows a search to as many candidates as it says."""
    values = ["a|b", "a|b", "!x", "!x", "plain", '"q"', "y..z", "2024-01-02", "2024-05-06", "c*"]
    documents = [
        Document(str(n), {"text": f"bee {n}", "kind": value}) for n, value in enumerate(values)
    ]
    build_index(documents, tmp_path / "i", Schema(keywords=["kind"]))
    searcher = Searcher(tmp_path / "i", ())
    (facet,) = searcher.facets("bee")
    for text, count in facet.values:
        hits = searcher.search("bee", 10, filters={"kind": text}).hits
        assert len(hits) == count, text
        assert searcher.facets("bee", {"kind": text}) == [facet]  # also once one is chosen


def test_filters_require_a_value(tmp_path: Path) -> None:
    """Exact values, in every part, also after updates and merges; scores do not change."""
    documents = [
        Document(
            f"d{i}", {"text": f"bee {WORDS[i]}", "kind": ["a b", "A b"][i % 2], "year": str(i)}
        )
        for i in range(8)
    ]
    index = build_index(documents, tmp_path / "i", Schema(keywords=["kind", "year"]), part_tokens=3)
    plain = dict(rank_query(index, "bee"))
    ranking = rank_query(index, "bee", FirstStage(filters={"kind": "a b"}))
    assert dict(ranking) == {d: s for d, s in plain.items() if d in {"d0", "d2", "d4", "d6"}}
    both = FirstStage(filters={"kind": "a b", "year": "4"}, match=ALL)
    assert rank_query(index, "zeppelin", both).doc_ids == ("d4",)
    assert match_ratio(index, "bee", FirstStage(filters={"kind": "A b"})) == 0.5
    assert len(rank_query(index, "bee", FirstStage(filters={"kind": "a"}))) == 0
    with IndexWriter(tmp_path / "i") as writer:
        writer.add(Document("d0", {"text": "bee", "kind": "A b"}))
        writer.delete("d2")
    changed = rank_query(Index(tmp_path / "i"), "bee", FirstStage(filters={"kind": "a b"}))
    assert set(changed.doc_ids) == {"d4", "d6"}
    with IndexWriter(tmp_path / "i") as writer:
        writer.merge()
    changed = rank_query(Index(tmp_path / "i"), "bee", FirstStage(filters={"kind": "A b"}))
    assert set(changed.doc_ids) == {"d0", "d1", "d3", "d5", "d7"}
    with pytest.raises(InputError, match=r"no field 'text' to filter by.*one of kind, year"):
        rank_query(index, "bee", FirstStage(filters={"text": "bee"}))
    with pytest.raises(InputError, match="'contents' is both searched and filtered by"):
        build_index(documents, tmp_path / "j", Schema(keywords=["contents"]))
