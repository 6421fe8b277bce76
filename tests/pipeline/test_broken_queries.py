"""Is every text answered or refused as a query, in time that grows no faster than its length?"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from birchbark.index.build_index import Schema, build_index
from birchbark.pipeline.searcher import Searcher
from birchbark.pipeline.settings.ranker import Ranker
from conftest import DOCUMENTS, WordScorer
from fuzzing import broken, fuzz, is_read, long_bytes
from growth import FASTER_THAN_SQUARE, growth

QUERIES = [
    b"why do bees dance", b'"birch bark" river -stone', b"river type:pdf|html -type:!text",
    b"river before:2024-05 after:2023-01-01 modified:2024", b'from:"Ann Lee"* path:docs/*',
    b"modified:2024-01..2024-05 type:..b", '“the river” -„Stein“ «bark» 白樺'.encode(),
]  # fmt: skip
FIELDS = ("type", "modified", "from", "path")


@pytest.fixture(scope="module")
def searcher(tmp_path_factory: pytest.TempPathFactory) -> Searcher:
    """DOCUMENTS with keyword fields, in several parts."""
    folder = tmp_path_factory.mktemp("queries") / "i"
    about = {"type": "pdf", "modified": "2024-05-01", "from": "Ann Lee", "path": "docs/a"}
    records = [{"id": d.doc_id, **d.fields, **about} for d in DOCUMENTS]
    build_index(records, folder, Schema(keywords=FIELDS), part_tokens=20)
    return Searcher(folder, Ranker(WordScorer()))


def ask(searcher: Searcher, text: str, **choices: object) -> None:
    """Use a query in all ways that the service does."""
    parsed = searcher.parse(text)
    answer = searcher.search(parsed, 3, **choices)  # type: ignore[arg-type]
    searcher.notes(parsed, answer, {})
    searcher.correct(parsed)
    searcher.facets(parsed)
    if answer.hits:
        searcher.evidence(answer.hits[0].document.doc_id, parsed)


@fuzz(25)
@given(raw=broken(QUERIES))
def test_any_query(raw: bytes, searcher: Searcher) -> None:
    """A query may even have half a pair of surrogates, as JSON may."""
    is_read(lambda: ask(searcher, raw.decode("utf-8", "surrogateescape")), "")


@fuzz(10)
@given(
    name=st.sampled_from(FIELDS),
    raw=broken([b"pdf|html", b"!text", b"2024-01..2024-05", b"docs/*", b'"a|b"', b"..7"]),
)
def test_any_filter(name: str, raw: bytes, searcher: Searcher) -> None:
    """The service, agents and programs give filters beside the query."""
    value = raw.decode("utf-8", "surrogateescape")
    is_read(lambda: searcher.search("river", filters={name: value}), "")


@fuzz(3)
@given(texts=long_bytes(QUERIES, 4_000))
def test_time_grows_with_the_length_of_a_query(
    texts: tuple[bytes, bytes], searcher: Searcher
) -> None:
    """Queries of 4 and 16 KB are compared, most of which are one piece that is repeated."""
    short, long = (raw.decode("utf-8", "replace") for raw in texts)
    search = growth(lambda text: is_read(lambda: ask(searcher, text), ""), short, long)
    assert search < FASTER_THAN_SQUARE
