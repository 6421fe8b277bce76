"""Do public functions give the same result for a list, a tuple, a generator and a column?

Columns are those of frames, whose rows may have another order than their labels: an item by its
label is then another one than an item by its position.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from birchbark.arguments import instances_of, listed, text_of, texts_of
from birchbark.combine.aggregate import Top
from birchbark.combine.fusion import reciprocal_rank_fusion, score_fusion
from birchbark.combine.interpolate import Interpolation
from birchbark.errors import InputError
from birchbark.evaluate.measures import measure
from birchbark.index.build_index import Schema, build_index
from birchbark.index.index import Index
from birchbark.index.sharded_writer import open_writer
from birchbark.index.writer import IndexWriter
from birchbark.pipeline.load_rankers import load_ranker
from birchbark.pipeline.open_engine import open_engine
from birchbark.pipeline.pair_scorer import PairScorer
from birchbark.pipeline.rank_texts import highlight, rank
from birchbark.pipeline.rerank import rerank
from birchbark.pipeline.search import search
from birchbark.pipeline.searcher import Searcher
from birchbark.pipeline.settings.ranker import Ranker
from birchbark.records import Document, Qrels, Query, Ranking, Run
from birchbark.retrieve.bm25 import BM25
from birchbark.retrieve.engine import IndexEngine
from birchbark.retrieve.first_stage import FirstStage, rank_queries, rank_query
from birchbark.score.load_scorer import load_scorer
from conftest import DOCUMENTS, WordScorer

QUERY = "birch river"
NAN = float("nan")
TEXTS = st.lists(
    st.lists(st.sampled_from("birch bark river bees dance .".split()), max_size=20).map(" ".join),
    max_size=6,
)


class Column:
    """A column of a frame: iterates over its values by position, and has them by label."""

    def __init__(self, values: Iterable[Any]) -> None:
        self._values = list(values)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __getitem__(self, label: int) -> Any:
        return self._values[len(self._values) - 1 - label]


class Frame(Column):
    """A frame, which iterates over the names of its columns."""

    columns = ("text",)


def array(values: Iterable[Any]) -> Any:
    """Return an array of strings, or of objects."""
    items = list(values)
    if all(isinstance(item, str) for item in items):
        return np.array(items or [""])[: len(items)]
    made = np.empty(len(items), object)
    made[:] = items
    return made


def series(values: Iterable[Any]) -> Any:
    """Return a Series of pandas whose labels are in the reverse order."""
    items = list(values)
    return pytest.importorskip("pandas").Series(items, range(len(items))[::-1], dtype=object)


FORMS: dict[str, Callable[[Iterable[Any]], Any]] = {
    "tuple": tuple,
    "generator": lambda values: (value for value in values),
    "column": Column,
    "array": array,
    "series": series,
}
by_form = pytest.mark.parametrize("form", FORMS)


@by_form
@given(texts=TEXTS)
def test_texts_in_any_form_are_ranked_alike(form: str, texts: list[str]) -> None:
    """Each has the same position, text, score and evidence."""
    scorer, given_texts = WordScorer(), partial(FORMS[form], texts)
    expected = rank(QUERY, texts, scorer)
    assert rank(QUERY, given_texts(), scorer) == expected
    assert [texts[ranked.index] for ranked in expected] == [ranked.text for ranked in expected]
    assert highlight(QUERY, given_texts(), scorer) == highlight(QUERY, texts, scorer)
    pairs = PairScorer(scorer)
    assert pairs.rank(QUERY, given_texts()) == pairs.rank(QUERY, texts)
    rows = [(QUERY, text) for text in texts]
    assert pairs.predict(FORMS[form](rows)).tolist() == pairs.predict(rows).tolist()


@by_form
def test_documents_keep_their_ids_in_any_form(form: str) -> None:
    """Id, text and score of a result belong together."""
    documents = [{"text": text, "name": text[:5]} for text in ("bees dance", "birch by the river")]
    for result in PairScorer(WordScorer()).rank(
        QUERY, FORMS[form](documents), return_documents=True
    ):
        assert result["text"] == documents[result["corpus_id"]]["text"]
        assert result["name"] == result["text"][:5]
        assert result["score"] == (1.0 if result["name"] == "birch" else 0.0)


@by_form
@given(order=st.permutations(range(len(DOCUMENTS))))
@settings(max_examples=15)
def test_documents_in_any_form_and_order_give_the_same_run(
    form: str, order: list[int], tmp_path_factory: pytest.TempPathFactory, index: Index
) -> None:
    """Queries and scores in any form give the same run, too."""
    shuffled = [DOCUMENTS[i] for i in order]
    built = build_index(FORMS[form](shuffled), tmp_path_factory.mktemp("any") / "index")
    queries = [Query("1", QUERY), Query("2", "steam engine")]
    expected = rank_queries(index, queries)
    run = rank_queries(built, FORMS[form](queries))
    assert run == expected
    scored = rerank(index, expected, queries, Ranker(WordScorer()))
    assert rerank(built, run, FORMS[form](queries), FORMS[form]([Ranker(WordScorer())])) == scored
    hits = search(IndexEngine(built), QUERY, FORMS[form]([Ranker(WordScorer())])).hits
    assert hits == search(IndexEngine(index), QUERY, Ranker(WordScorer())).hits


@by_form
def test_ids_in_any_form(form: str, index: Index, tmp_path: Path) -> None:
    """They are ids of documents to read or delete, or of a ranking with its scores."""
    ids = ["bees", "canoe", "engine"]
    assert [d.doc_id for d in index.documents(FORMS[form](ids))] == ids
    assert Ranking.of(FORMS[form](ids), FORMS[form]([1.0, 3.0, 2.0])).doc_ids == (
        *("canoe", "engine", "bees"),
    )
    build_index(DOCUMENTS, tmp_path / "i")
    assert Searcher(tmp_path / "i", ()).delete(FORMS[form](ids)) == 3


@by_form
def test_runs_weights_and_measures_in_any_form(form: str) -> None:
    """Fusion and evaluation take them."""
    runs = [Run({"1": Ranking.from_pairs({"a": 1.0, "b": x})}) for x in (0.5, 3.0)]
    make = FORMS[form]
    assert score_fusion(make(runs), make([1, 0.1])) == score_fusion(runs, [1, 0.1])
    assert reciprocal_rank_fusion(make(runs)) == reciprocal_rank_fusion(runs)
    qrels = Qrels({"1": {"a": 1}})
    assert measure(qrels, runs[0], make(["AP"])) == measure(qrels, runs[0], ["AP"])


LISTS: dict[str, Callable[[Any, Index, Path], object]] = {
    "rank": lambda x, index, folder: rank(QUERY, x, WordScorer()),
    "highlight": lambda x, index, folder: highlight(QUERY, x, WordScorer()),
    "PairScorer.rank": lambda x, index, folder: PairScorer(WordScorer()).rank(QUERY, x),
    "PairScorer.predict": lambda x, index, folder: PairScorer(WordScorer()).predict(x),
    "build_index": lambda x, index, folder: build_index(x, folder / "new"),
    "rank_queries": lambda x, index, folder: rank_queries(index, x),
    "rerank": lambda x, index, folder: rerank(index, Run({}), x, Ranker(WordScorer())),
    "rankers": lambda x, index, folder: search(IndexEngine(index), QUERY, x),
    "Index.documents": lambda x, index, folder: index.documents(x),
    "Searcher.delete": lambda x, index, folder: Searcher(index.directory, ()).delete(x),
    "Ranking.of": lambda x, index, folder: Ranking.of(x, [1.0]),
    "score_fusion": lambda x, index, folder: score_fusion(x),
    "measure": lambda x, index, folder: measure(
        Qrels({"1": {"a": 1}}), Run({"1": Ranking.of(["a"], [1])}), x
    ),
}


@pytest.mark.parametrize("function", LISTS)
@pytest.mark.parametrize(
    "value", ["bees", b"bees", {"bees": 1}, {"bees"}, Frame([]), 3], ids=lambda x: type(x).__name__
)
def test_what_is_no_list_is_refused(
    function: str, value: object, index: Index, tmp_path: Path
) -> None:
    """A string is no list of its characters, and a frame none of its columns."""
    with pytest.raises(InputError, match=r"are not a list: expected a list.*found"):
        LISTS[function](value, index, tmp_path)


QUERIES: dict[str, Callable[[Any, Index], object]] = {
    "rank": lambda x, index: rank(x, ["a"], WordScorer()),
    "highlight": lambda x, index: highlight(x, ["a"], WordScorer()),
    "PairScorer.rank": lambda x, index: PairScorer(WordScorer()).rank(x, ["a"]),
    "rank_query": lambda x, index: rank_query(index, x),
    "search": lambda x, index: search(IndexEngine(index), x, Ranker(WordScorer())),
    "search by terms": lambda x, index: search(IndexEngine(index), x, ()),
    "Searcher.search": lambda x, index: Searcher(index.directory, ()).search(x),
    "Searcher.facets": lambda x, index: Searcher(index.directory, ()).facets(x),
    "Searcher.correct": lambda x, index: Searcher(index.directory, ()).correct(x),
    "Searcher.evidence": lambda x, index: Searcher(index.directory, Ranker(WordScorer())).evidence(
        "bees", x
    ),
    "Query": lambda x, index: Query("1", x),
}


@pytest.mark.parametrize("function", QUERIES)
@pytest.mark.parametrize("value", [None, NAN, 7, b"bees", ["bees"]], ids=repr)
def test_a_query_that_is_no_text_is_refused(function: str, value: object, index: Index) -> None:
    """The message shows what it is."""
    with pytest.raises(InputError, match=r"quer.* is not a text: expected a string, found"):
        QUERIES[function](value, index)


@pytest.mark.parametrize("value", [None, NAN, 7, ["a"]], ids=repr)
@pytest.mark.parametrize("function", [rank, highlight])
def test_a_text_that_is_none_is_refused(function: Callable[..., object], value: object) -> None:
    """The message says which one."""
    with pytest.raises(InputError, match=r"text 1 is not a text: expected a string, found"):
        function(QUERY, ["a", value], WordScorer())
    with pytest.raises(InputError, match=r"document 0 is not a text"):
        PairScorer(WordScorer()).rank(QUERY, [value])  # type: ignore[list-item]
    with pytest.raises(InputError, match=r"the text of document 0 is not a text"):
        PairScorer(WordScorer()).rank(QUERY, [{"text": value}])
    with pytest.raises(InputError, match=r"pair 0: not a pair of query and text: found tuple"):
        PairScorer(WordScorer()).predict([(QUERY, value)])  # type: ignore[list-item]


def test_items_of_another_kind_are_refused(index: Index) -> None:
    """What can be passed by mistake: one instead of several, names, plain dicts."""
    run = Run({"1": Ranking.of(["bees"], [1.0])})
    with pytest.raises(InputError, match="the queries are not a list: found one Query"):
        rerank(index, run, Query("1", QUERY), Ranker(WordScorer()))  # type: ignore[arg-type]
    with pytest.raises(
        InputError,
        match=r"item 0 of the queries has the wrong type: expected birchbark.Query, found str 'a'",
    ):
        rerank(index, run, ["a"], Ranker(WordScorer()))  # type: ignore[list-item]
    with pytest.raises(
        InputError, match=r"an item of the queries has the wrong type: expected birchbark\.Query"
    ):
        rank_queries(index, ["a"])  # type: ignore[list-item]
    with pytest.raises(InputError, match="a second query with the id 1"):
        rank_queries(index, [Query("1", "a"), Query("1", "b")])
    with pytest.raises(
        InputError, match=r"item 0 of the rankers has the wrong type: expected birchbark\.Ranker"
    ):
        rerank(index, run, [], ["birchbark-minilm-l6"])  # type: ignore[list-item]
    with pytest.raises(InputError, match="the runs are not a list: found one Run"):
        score_fusion(run)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"the run has the wrong type: expected birchbark\.Run"):
        measure(Qrels({"1": {"a": 1}}), {"1": {"a": 1.0}}, ["AP"])  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"qrels has the wrong type: expected birchbark\.Qrels"):
        measure({"1": {"a": 1}}, run, ["AP"])  # type: ignore[arg-type]


def test_integers_are_ids_everywhere(tmp_path: Path) -> None:
    """A document with the id 7 is found, judged and deleted as 7 and as "7"."""
    index = build_index([{"id": np.int64(7), "text": "birch"}], tmp_path / "i")
    assert index.documents([7])[0].doc_id == "7"  # type: ignore[list-item]
    run = Run({1: Ranking.of([7], [1.0])})  # type: ignore[dict-item, list-item]
    assert run == Run({"1": Ranking.of(["7"], [1.0])})
    judged = Qrels({np.int32(1): {np.int64(7): np.int64(2)}})  # type: ignore[dict-item]
    assert judged == Qrels({"1": {"7": 2}}) == Qrels({1: {7: 2.0}})  # type: ignore[dict-item]
    assert measure(judged, run, ["AP"]).values == {"AP": {"1": 1.0}}
    assert rank_queries(index, [Query(1, "birch")]).rankings.keys() == {"1"}  # type: ignore[arg-type]
    assert Searcher(index.directory, ()).delete([7]) == 1  # type: ignore[list-item]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Qrels({"1": {"a": 1.5}}), "query 1: grade is not an integer: found float 1.5"),
        (lambda: Qrels({"1": {"a": NAN}}), "query 1: grade is not an integer: found float nan"),
        (lambda: Qrels({"1": {"a": "1"}}), "query 1: grade is not an integer: found str '1'"),
        (lambda: Qrels({"1": {"a": 10**6}}), "query 1: grade is out of range"),
        (lambda: Qrels({1.0: {"a": 1}}), "query id is not an id"),
        (lambda: Qrels({None: {"a": 1}}), "query id is not an id"),
        (lambda: Qrels({"1": {NAN: 1}}), "query 1: document id is not an id"),
        (lambda: Qrels({1: {"a": 1}, "1": {"a": 0}}), "query 1 occurs twice"),
        (lambda: Run({"1": {"a": 1.0}}), "the ranking of query 1 is not a Ranking: found dict"),
        (lambda: Run({None: Ranking.of([], [])}), "query id is not an id"),
        (lambda: Query(1.5, "a"), "query id is not an id: expected a string or an integer"),
        (lambda: Ranking.of(["a", None], [1, 2]), "doc_id is not an id"),
        (lambda: Ranking.of(["a"], ["x"]), "scores are not numbers: found list"),
        (lambda: Ranking.of(["a"], [None]), "score of document a is not a finite number"),
        (lambda: Ranking.of(["a"], [NAN]), "score of document a is not a finite number"),
    ],
)
def test_records_that_are_refused(make: Callable[[], object], message: str) -> None:
    """The error names the value that was found, and no TypeError follows later on."""
    with pytest.raises(InputError, match=message):
        make()


def test_records_without_values() -> None:
    """None, NaN and numpy's NaN stand for a cell without value; a nested or infinite one is bad."""
    for missing in (None, NAN, np.float32("nan")):
        record = {"id": missing, "docno": 3, "title": missing, "text": "a", "year": missing}
        assert Document.from_dict(record) == Document("3", {"text": "a"})
    with pytest.raises(InputError, match="document 3 has no text"):
        Document.from_dict({"id": 3, "text": NAN})
    with pytest.raises(InputError, match=r"field tags cannot be stored as text"):
        Document.from_dict({"id": 3, "text": "a", "tags": ["b", NAN]})
    with pytest.raises(InputError, match=r"field year cannot be stored as text"):
        Document.from_dict({"id": 3, "text": "a", "year": float("inf")})
    of_numpy = {"id": "a", "text": "a", "year": np.int64(3), "tags": np.array(["b", "c"])}
    assert Document.from_dict(of_numpy).fields["year"] == "3"
    assert Document.from_dict(of_numpy).fields["tags"] == '["b", "c"]'
    with pytest.raises(InputError, match=r"a record is not a mapping: .*found str 'text'"):
        Document.from_dict("text")  # type: ignore[arg-type]


def test_cells_of_pandas_without_values() -> None:
    """NA, NaT and NaN of a frame's records."""
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {
            "id": [1, 2],
            "title": ["a", None],
            "text": ["b", "c"],
            "seen": [pandas.NaT, pandas.NaT],
            "count": pandas.array([3, None], "Int64"),
        }
    )
    assert [Document.from_dict(record) for record in frame.to_dict("records")] == [
        Document("1", {"title": "a", "text": "b", "count": "3"}),
        Document("2", {"text": "c"}),
    ]
    with pytest.raises(
        InputError, match=r"the documents are not a list.*one of its columns, or its rows"
    ):
        build_index(frame, "never")


def test_documents_whose_values_are_no_strings(tmp_path: Path) -> None:
    """A Document is checked before it is indexed."""
    for document in (Document(1, {"text": "a"}), Document("1", {"text": NAN})):  # type: ignore
        with pytest.raises(InputError, match=r"a value that is no string: (1|nan)"):
            build_index([document], tmp_path / "i")


def test_lists_of_arguments() -> None:
    """The helpers themselves."""
    assert listed(iter("ab"), "letters") == ["a", "b"]
    assert texts_of(np.array(["a"]), "text") == ["a"]
    assert type(text_of(np.str_("a"), "it")) is str
    assert instances_of((x for x in (1, 2)), int, "numbers") == [1, 2]


REFUSED: dict[str, tuple[Callable[[Index], object], str]] = {
    "names of read fields": (lambda i: Schema(read_fields="body"), "read_fields are not a list"),
    "names of keywords": (lambda i: Schema(keywords="type"), "keywords are not a list"),
    "sources of a field": (
        lambda i: Schema(fields={"body": "body"}),
        "source fields are not a",
    ),
    "fields of a schema": (lambda i: Schema(fields=["body"]), "fields is not a mapping"),
    "read fields of a document": (
        lambda i: build_index([Document("1", {"text": "a"}, "text")], "never"),
        "read_fields is no tuple of names: 'text'",
    ),
    "a pair as a mapping": (
        lambda i: PairScorer(WordScorer()).predict([{"query": "a", "text": "b"}]),
        "pair 0: not a pair of query and text: found dict",
    ),
    "a pair without order": (
        lambda i: PairScorer(WordScorer()).predict([{"a", "b"}]),
        "pair 0: not a pair of query and text: found set",
    ),
    "top": (lambda i: rank("a", ["b"], WordScorer(), 1.5), "top is not a whole number"),
    "top as text": (lambda i: rank("a", ["b"], WordScorer(), "1"), "top is not a whole number"),
    "depth": (lambda i: rank_query(i, "bees", depth=1.5), "depth is not a whole number"),
    "depth below 0": (lambda i: Ranking.of(["a"], [1]).head(-1), "depth is out of range"),
    "depth of a run": (lambda i: Run({"1": Ranking.of(["a"], [1])}).head(-1), "depth is out of"),
    "rankings": (lambda i: Run([Ranking.of(["a"], [1])]), "rankings is not a mapping"),
    "tag": (lambda i: Run({}, 5), "the tag of a run is not a text"),
    "grades": (lambda i: Qrels(["a"]), "grades is not a mapping"),
    "grades of a query": (lambda i: Qrels({"1": ["a"]}), "the judgment of query 1 is not a map"),
    "pairs of a ranking": (lambda i: Ranking.from_pairs(["ab", "cd"]), "not a pair of doc_id and"),
    "fields": (lambda i: FirstStage(fields=["contents"]), "fields is not a mapping"),
    "match": (
        lambda i: FirstStage(match="and"),
        "match has the wrong type: expected birchbark.retrieve.match.Match",
    ),
    "model": (lambda i: FirstStage(model="bm25"), "not a weighting model"),
    "model of a field": (
        lambda i: FirstStage(field_models={"titel": BM25()}),
        "a model for the field 'titel', which is not searched: expected contents",
    ),
    "filters": (
        lambda i: Searcher(i.directory, ()).search("bees", filters="type=pdf"),
        "filters is not a mapping",
    ),
    "candidates": (
        lambda i: Searcher(i.directory, ()).search("bees", candidates="neareest"),
        "unknown candidates: expected nearest or terms, found 'neareest'",
    ),
    "a query twice": (
        lambda i: rerank(i, Run({}), [Query("1", "a"), Query("1", "b")], Ranker(WordScorer())),
        "a second query with the id 1",
    ),
    "a precision": (
        lambda i: load_scorer("birchbark-minilm-l6", precision=8),
        "unknown precision: .*found int 8",
    ),
    "a scale": (lambda i: load_ranker(first_stage_scale="MAX"), "unknown scale|first_stage_scale"),
}


@pytest.mark.parametrize("argument", REFUSED)
def test_arguments_that_are_refused(argument: str, index: Index) -> None:
    """Each would be read as something else, be ignored, or end in another library's error."""
    attempt, message = REFUSED[argument]
    with pytest.raises(InputError, match=message):
        attempt(index)


def test_a_ranking_from_what_has_items() -> None:
    """A Series of scores by id is a mapping in all but name."""
    pandas = pytest.importorskip("pandas")
    series = pandas.Series([1.0, 3.0], index=["a", "b"])
    assert Ranking.from_pairs(series) == Ranking.of(["b", "a"], [3.0, 1.0])
    with pytest.raises(InputError, match="the pairs are not a list"):
        Ranking.from_pairs(pandas.DataFrame({"a": [1.0]}))


def test_texts_of_records() -> None:
    """A list of texts is read as paragraphs; an empty text gives way to another that is not."""
    text = Document.from_dict({"id": 1, "title": ["a", "b"], "text": ["They dance\nhive.", "c"]})
    assert text == Document("1", {"title": "a\n\nb", "text": "They dance\nhive.\n\nc"})
    for name in ("segment", "content", "passage"):
        assert Document.from_dict({"docid": "x", "title": "t", name: "hive"}).text == "hive"
    assert Document.from_dict({"id": 1, "text": "", "body": "hive"}).text == "hive"
    assert Document.from_dict({"id": 1, "text": "", "title": "t"}).fields == {
        **{"text": "", "title": "t"}
    }


@pytest.mark.parametrize(
    ("record", "text"),
    [
        ({"contents": "zebra", "text": ""}, "zebra"),
        ({"text": "", "contents": "zebra"}, "zebra"),
        ({"body": "zebra", "text": []}, "zebra"),
        ({"text": [""], "body": "zebra"}, "zebra"),
        ({"text": " ", "passage": "zebra"}, "zebra"),
        ({"text": "zebra", "contents": "other"}, "zebra"),
        ({"text": ["zebra", None, "ant"]}, "zebra\n\nant"),
        ({"text": ["zebra", NAN]}, "zebra"),
    ],
)
def test_which_text_is_read(record: dict[str, Any], text: str) -> None:
    """The first that is not empty, in whatever order the record has them."""
    assert Document.from_dict({"id": "1", **record}).text == text


def test_dates_of_numpy() -> None:
    """NaT is no value; others become text in ISO format, whatever their unit."""
    record = {"id": 1, "text": "a", "seen": np.datetime64("NaT")}
    assert "seen" not in Document.from_dict(record).fields
    for unit in ("D", "ns"):
        record["seen"] = [np.datetime64("2024-01-02", unit)]
        assert Document.from_dict(record).fields["seen"].startswith('["2024-01-02')


MORE_REFUSED: dict[str, tuple[Callable[[Index], object], str]] = {
    "a filter": (
        lambda i: Searcher(i.directory, ()).search("bees", filters={"year": 2020}),
        "the filter of the field year is not a text: expected a string, found int 2020",
    ),
    "an expansion": (
        lambda i: FirstStage(expansion=True),
        "expansion has the wrong type: expected birchbark.retrieve.rm3.RM3",
    ),
    "a class of models": (lambda i: FirstStage(BM25), "not a weighting model"),
    "a first stage": (
        lambda i: IndexEngine(i, "bm25"),
        "the first stage has the wrong type: expected birchbark.FirstStage",
    ),
    "a searcher's": (
        lambda i: Searcher(i, (), "bm25"),
        "the first stage has the wrong type: expected birchbark.FirstStage",
    ),
    "no directory": (lambda i: Searcher(None), "the directory of the index is not a path"),
    "a number as index": (lambda i: Index(3), "the directory of the index is not a path: .*int 3"),
    "a place to build": (lambda i: build_index([], 3), "the directory of the index is not a path"),
    "an analyzer as schema": (
        lambda i: build_index(DOCUMENTS, i.directory, "german", replace=True),
        "the schema has the wrong type: expected .*Schema, found str 'german'",
    ),
    "no place to write": (lambda i: IndexWriter(None), "directory of the index is not a path"),
    "no answer": (
        lambda i: Searcher(i, ()).notes("bees", None),
        "the answer has the wrong type: expected .*Answer, found None",
    ),
    "an unknown number": (lambda i: i.check_known(iter([5])), "no document 5"),
    "a directory of documents": (
        lambda i: rerank(str(i.directory), Run({}), [], Ranker(WordScorer())),
        "the store of the documents has the wrong type: expected an Index",
    ),
    "a tag": (
        lambda i: rerank(
            i, Run({}), [Query("1", "a")], (Ranker(WordScorer()),), tag=5, on_query=pytest.fail
        ),
        "the tag is not a text: expected a string, found int 5",
    ),
    "a directory as index": (
        lambda i: rank_query(str(i.directory), "a"),
        "has the wrong type: expected birchbark.Index",
    ),
    "a directory to rank": (
        lambda i: open_engine(str(i.directory)),
        "has the wrong type: expected birchbark.Index",
    ),
    "an index as engine": (
        lambda i: search(i, "a", ()),
        "no first stage: expected what",
    ),
    "an aggregation": (
        lambda i: load_ranker(aggregate=Top((1.0,))),
        "aggregate: wrong type",
    ),
    "a precision": (lambda i: load_ranker(precision="int4"), "precision"),
    "a number to embed": (lambda i: load_ranker(embed_documents="x"), "embed_documents"),
    "a list of models": (lambda i: rank("a", ["b"], ["l3"]), "not a model: expected its name"),
    "a top that is no integer": (lambda i: rank("a", ["b"], WordScorer(), 1.0), "whole number"),
    "no top": (lambda i: search(IndexEngine(i), "a", (), None), "top is not a whole number"),
    "a budget": (lambda i: Searcher(i.directory, ()).search("a", budget="1"), "budget is not a nu"),
    "a budget of NaN": (lambda i: rank("a", ["b"], WordScorer(), budget=NAN), "budget is out of"),
    "k1": (lambda i: BM25(k1="1"), "k1 is not a number"),
    "a weight": (lambda i: Interpolation("0.3"), "first-stage weight is not a number"),
    "weights of runs": (lambda i: score_fusion([Run({})], ["1"]), "weight of a run is not a num"),
    "a missing weight": (lambda i: score_fusion([Run({})], [None]), "run is not a number"),
    "a rank constant": (
        lambda i: reciprocal_rank_fusion([Run({})], rank_constant="60"),
        "rank constant is not a number",
    ),
    "a huge grade": (lambda i: Qrels({"1": {"a": 10**400}}), "grade is out of range"),
    "a huge score": (lambda i: Ranking.of(["a"], [10**400]), "scores are not numbers"),
    "an empty document id": (lambda i: Qrels({"1": {"": 1}}), "an id of a judgment is empty"),
    "an empty query id": (lambda i: Qrels({"": {"a": 1}}), "an id of a judgment is empty"),
    "no weights of a query": (lambda i: Query("1", "a", {}), "query 1 has no weights"),
    "weights that are a text": (
        lambda i: Query("1", "a", "b"),
        "weights of query 1 is not a mapping",
    ),
    "a term that is a number": (
        lambda i: Query("1", "a", {101: 0.5}),
        "weights of query 1: invalid weight of term 101",
    ),
    "a weight that is a text": (
        lambda i: rank_query(i, {"bee": "1.5"}),
        "the query: invalid weight of term 'bee'",
    ),
}


@pytest.mark.parametrize("argument", MORE_REFUSED)
def test_values_of_other_types_are_refused(argument: str, index: Index) -> None:
    """They would be ignored, or end in a TypeError that names none of them."""
    attempt, message = MORE_REFUSED[argument]
    with pytest.raises(InputError, match=message):
        attempt(index)


def test_whole_numbers_of_a_column_with_missing_values() -> None:
    """An integer that a frame has made a float is found by a filter for the integer."""
    record = {"id": 1, "text": "a", "year": 2020.0, "share": 0.5, "count": np.float32(3)}
    fields = Document.from_dict(record).fields
    assert (fields["year"], fields["share"], fields["count"]) == ("2020", "0.5", "3")


def test_an_index_stands_for_its_directory(index: Index) -> None:
    """Where a directory is wanted, what build_index returned may be given."""
    of_directory = Searcher(index.directory, ()).search("bees").hits
    assert [hit.document for hit in Searcher(index, ()).search("bees").hits] == [
        hit.document for hit in of_directory
    ]
    assert Index(index).directory == index.directory
    with open_writer(index) as writer:
        assert "bees" in writer


class _OfRanx:
    """What a Run and Qrels of ranx can do."""

    def to_dict(self) -> dict[str, dict[str, float]]:
        return {"q1": {"a": 1, "b": 3}, "q2": {"c": 0}}


RUN = Run({"q1": Ranking.of(["b", "a"], [3.0, 1.0]), "q2": Ranking.of(["c"], [0.0])}, "x")
QRELS = Qrels({"q1": {"a": 1, "b": 3}, "q2": {"c": 0}}, 2)


def test_runs_and_judgments_of_other_libraries() -> None:
    """Dicts, and what has a method that returns one, both ways."""
    for values in (_OfRanx(), _OfRanx().to_dict()):
        assert Run.of(values, "x") == RUN
        assert Qrels.of(values, 2) == QRELS
    assert Run.of(RUN.to_dict(), "x") == Run.of(RUN.to_records(), "x") == RUN
    assert Qrels.of(QRELS.to_dict(), 2) == Qrels.of(QRELS.to_records(), 2) == QRELS
    assert list(RUN.to_dict()["q1"]) == ["b", "a"]


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize(
    "columns",
    [
        ("query_id", "doc_id", "score", "relevance"),  # ir-measures
        ("qid", "docno", "score", "label"),  # PyTerrier
        ("q_id", "doc_id", "score", "score"),  # ranx
        ("query-id", "corpus-id", "score", "score"),  # BEIR
    ],
)
def test_frames_of_runs_and_judgments(library: str, columns: tuple[str, ...]) -> None:
    """Columns are called as other libraries call them; other columns are ignored."""
    frames = pytest.importorskip(library)
    query, doc, score, grade = columns
    run = [{query: r["query_id"], doc: r["doc_id"], score: r["score"]} for r in RUN.to_records()]
    judged = [
        {query: r["query_id"], doc: r["doc_id"], grade: r["relevance"]} for r in QRELS.to_records()
    ]
    assert Run.of(frames.DataFrame(run[::-1]), "x").rankings == dict(reversed(RUN.rankings.items()))
    assert Qrels.of(frames.DataFrame(judged), 2) == QRELS
    assert [row["rank"] for row in RUN.to_records()] == [1, 2, 1]
    with pytest.raises(InputError, match="a run: no such column: expected query_id or qid or"):
        Run.of(frames.DataFrame({"doc_id": ["a"], "score": [1.0]}))
    with pytest.raises(InputError, match="no such column"):
        Run.of(frames.DataFrame({"a": [1], "b": [2]}))
    twice = [*judged, judged[0]]
    with pytest.raises(InputError, match="judgments: document a occurs twice for query q1"):
        Qrels.of(frames.DataFrame(twice))


def test_what_is_no_run() -> None:
    """A list of pairs, a text and a frame whose columns have numbers for names."""
    pandas = pytest.importorskip("pandas")
    for values in ([("q", "d")], "q", 3, pandas.DataFrame([["q", "d", 1.0]])):
        with pytest.raises(InputError):
            Run.of(values)
