"""Which fields divide the candidates of a search, and which queries does an index suggest?"""

from __future__ import annotations

from pathlib import Path

from birchbark.index.build_index import Schema, build_index
from birchbark.pipeline.answers.example_queries import example_queries
from birchbark.pipeline.answers.facets import Facet, count_facets
from birchbark.pipeline.searcher import Searcher
from birchbark.records import Document

FILES = [
    ("a", "text", "2025-03-01"),
    ("b", "html", "2025-11-30"),
    ("c", "html", "2026-01-02"),
    ("d", "", "soon"),
]
DOCUMENTS = [
    Document(name, {"path": name, "type": kind, "modified": date, "language": "en"})
    for name, kind, date in FILES
]


def test_values_are_counted() -> None:
    """Dates by year; fields with one value, or with a different one each, are no facets."""
    assert count_facets(DOCUMENTS, ("path", "type", "modified", "language", "absent")) == [
        Facet("type", (("html", 2), ("text", 1))),
        Facet("modified", (("2025*", 2), ("2026*", 1), ("soon", 1))),
    ]


def test_only_dates_are_counted_by_year() -> None:
    """An ISSN begins like one."""
    many = [Document(str(n), {"issn": "0028-0836" if n else "2024-05-01T10:00"}) for n in range(3)]
    (facet,) = count_facets(many, ("issn",))
    assert facet.values == (("0028-0836", 2), ("2024*", 1))


VALUES: dict[str, tuple[list[str], dict[str, int]]] = {
    "publish_time": (  # years and dates, as in CORD-19
        ["2020", "2020", "2020-03-01", "2020-04-02", "2019", "2020 Spring", "soon"],
        {"2020*": 5, "2019*": 1, "soon": 1},
    ),
    "year": (  # no months: a year is a value like others
        ["2020", "2020", "2019", "2019", "20201", "2021", "2021"],
        {"2019": 2, "2020": 2, "2021": 2, "20201": 1},
    ),
    "code": (  # 56 is no month
        ["1234", "1234", "1234-56", "12345", "12345", "1234-00", "1234-13"],
        {"1234": 2, "12345": 2, "1234-00": 1, "1234-13": 1, "1234-56": 1},
    ),
    "kind": (["Caf\u00e9", "Cafe\u0301", "tea", "tea", "a|b", "!x", "c*"],
        {"Caf\u00e9": 2, "tea": 2, '"!x"': 1, '"a|b"': 1, '"c*"': 1}),
    "date": (  # a filter 2020 means all of the year
        ["2020", "2020-05", "2019", "2019", "2018/5/1", "2018-5", "2018-13"],
        {"2019*": 2, "2020*": 2, '"2018-5"': 1, '"2018/5/1"': 1, "2018-13": 1},
    ),
    "modified": (
        ["2018", "2018", "2020", "2020", "2020-06-01T10:00", "2020/5/1", "1999"],
        {"2020*": 4, "2018*": 2, "1999*": 1},
    ),
    "path": (["Caf\u00e9/1", "Cafe\u0301/2", "Caf\u00e9/b/3", "tea/4", "tea/5", "6", "7"],
        {"Caf\u00e9/*": 3, "tea/*": 2, "Caf\u00e9/b/*": 1}),
}  # fmt: skip


def test_counts_are_those_of_the_filters(tmp_path: Path) -> None:
    """A filter that is offered finds as many documents as it says, and a year is there once."""
    documents = [
        Document(str(n), {"text": f"bee {n}"} | {field: VALUES[field][0][n] for field in VALUES})
        for n in range(7)
    ]
    build_index(documents, tmp_path / "index", Schema(keywords=tuple(VALUES)))
    searcher = Searcher(tmp_path / "index", ())
    facets = {facet.field: facet.values for facet in searcher.facets("bee")}
    assert facets == {field: tuple(counts.items()) for field, (_, counts) in VALUES.items()}
    for field, values in facets.items():
        found = {
            text: len(searcher.search("bee", filters={field: text}).hits) for text, _ in values
        }
        assert found == dict(values)


def test_values_that_are_left_out_are_counted() -> None:
    many = [Document(str(n), {"type": f"t{max(0, n - 1):02}"}) for n in range(16)]
    (facet,) = count_facets(many, ("type",))
    assert (len(facet.values), facet.values[0], facet.others) == (12, ("t00", 2), 3)


def test_paths_are_counted_by_folder() -> None:
    """Folders above are counted too.

    Folders that exclude nothing, or only what a subfolder does, are left out.
    """
    names = ["a/b/c/1", "a/b/c/2", "a/b/d/3", "a-b/4", "a..b/5", "e|f/6", "7"]
    documents = [Document(name, {"path": name}) for name in names]
    assert count_facets(documents, ["path"]) == [
        Facet("path", (("a/b/*", 3), ("a/b/c/*", 2), ("a-b/*", 1), ("a/b/d/*", 1)))
    ]
    assert count_facets(documents[:2], ["path"]) == []
    (facet,) = count_facets(documents[:3], ["path"])
    assert facet.values == (("a/b/c/*", 2), ("a/b/d/*", 1))
    many = [Document(str(n), {"path": f"{n:02}/x"}) for n in range(70)]
    (facet,) = count_facets(many, ["path"])
    assert (len(facet.values), facet.others) == (60, 10)


def test_no_documents() -> None:
    assert count_facets([], ("type",)) == []


def test_examples_are_titles_that_read_like_queries(tmp_path: Path) -> None:
    titles = ["Short", "How birch bark is made", "x = 3; y = 4", "Moved for good", "Moved for good"]
    titles += ["Rivers of the north", "1 2 3 4", "A word " * 9, "Iron bridges", "Bees and flowers"]
    documents = [
        Document(str(n), {"title": title, "text": "a text"}) for n, title in enumerate(titles)
    ]
    index = build_index(documents, tmp_path / "index")
    expected = ["How birch bark is made", "Rivers of the north", "Bees and flowers"]
    assert example_queries(index) == expected
    assert example_queries(index, 2) == expected[:2]
    steps: list[int] = []
    example_queries(index, on_step=lambda: steps.append(1))
    assert len(steps) == len(titles)  # documents are read one at a time


def test_very_deep_paths_count_to_a_depth() -> None:
    """The work does not grow with the square of a path's length."""
    deep = "/".join("abcdefghijklmnopqrst") + "/x"
    paths = [deep, "a/y", "z", "a/" * 2_048 + "x"]
    documents = [Document(str(n), {"path": path}) for n, path in enumerate(paths)]
    (facet,) = count_facets(documents, ["path"])
    assert [value for value, _ in facet.values] == ["a/*", "a/b/c/d/e/f/g/h/i/j/k/l/m/n/o/p/*"]
