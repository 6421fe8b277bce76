"""Do all searches honour the operators of a query, whatever finds the candidates?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import chain, repeat
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from birchbark.deadline import NO_TIME
from birchbark.errors import InputError
from birchbark.index.attachment_schema import AttachmentSchema, RowForm
from birchbark.index.build_index import Schema, build_index
from birchbark.index.index import Index
from birchbark.index.writer import IndexWriter
from birchbark.pipeline.answers.facets import MAX_VALUES
from birchbark.pipeline.searcher import Searcher
from birchbark.pipeline.settings.ranker import Ranker
from birchbark.pipeline.stored.precompute import precompute_vectors
from birchbark.records import Document
from birchbark.retrieve.allowed_documents import KnownPhrases, Phrase, allowed_documents
from birchbark.retrieve.first_stage import FirstStage, rank_query
from birchbark.retrieve.query_language import parse_query
from birchbark.retrieve.rm3 import RM3
from birchbark.retrieve.vector_match import CandidateScores, VectorMatch
from birchbark.score.load_scorer import load_scorer
from birchbark.segment.sentences import sentences
from birchbark.text.words import words
from conftest import WordScorer

TEXTS = {
    "plain": ("", "The steam engine drives the iron bridge.", "pdf", "2024-04-30"),
    "hyphen": ("", "A steam-engine of stone.", "pdf", "2024-05-01"),
    "line": ("", "All steam\n  engine parts, by the river.", "html", "2024-05-31"),
    "fields": ("Steam", "Engine and river.", "html", "2024-06-01"),
    "apart": ("", "The engine makes steam; engines do.", "text", "2023-12-31"),
    "reverse": ("", "An engine. Steam is by the river.", "text", ""),
    "soft": ("", "STEAM eng\u00adine", "text", "2025-01-01"),
    "bees": ("Bees", "Bees dance by the river. To be or not to be.", "text", "2024-05-15"),
}
DOCUMENTS = [
    Document(name, {"title": title, "text": text, "type": kind, "modified": modified})
    for name, (title, text, kind, modified) in TEXTS.items()
]
SCHEMA = Schema(keywords=("type", "modified"))
WITH_PHRASE = {"plain", "hyphen", "line", "fields", "soft"}


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    """DOCUMENTS in several parts, and one that was deleted."""
    folder = tmp_path_factory.mktemp("operators") / "i"
    documents = [*DOCUMENTS, Document("gone", {"text": "steam engine"})]
    build_index(documents, folder, SCHEMA, part_tokens=20)
    with IndexWriter(folder) as writer:
        writer.delete("gone")
    return Index(folder)


@pytest.fixture
def searcher(index: Index) -> Searcher:
    return Searcher(index, Ranker(WordScorer()))


def found(searcher: Searcher, query: str, **choices: object) -> set[str]:
    answer = searcher.search(query, 10, **choices)  # type: ignore[arg-type]
    return {hit.document.doc_id for hit in answer.hits}


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ('"steam engine"', WITH_PHRASE),
        ("“Steam Engine” river", WITH_PHRASE),
        ('"engine steam"', {"reverse"}),
        ('"engines"', {"apart"}),
        ('"to be or not to be"', {"bees"}),
        ('river -"steam engine"', {"reverse", "bees"}),
        ('river -"to be"', {"line", "fields", "reverse"}),
        ("river -steam", {"bees"}),
        ("river -steams -dance", set()),
        ("steam -the", {"hyphen", "fields", "soft"}),
        ("steam -by -iron", {"hyphen", "fields", "apart", "soft"}),
        ("steam type:pdf", {"plain", "hyphen"}),
        ("steam type:pdf type:html -type:html", {"plain", "hyphen"}),
        ("steam -type:text", {"plain", "hyphen", "line", "fields"}),
        ("steam before:2024-05", {"plain", "apart"}),
        ("steam after:2024-05 before:2024-06", {"hyphen", "line"}),
        ("steam after:2024-06-01", {"fields", "soft"}),
        ('"steam engine" river type:html -parts', {"fields"}),
    ],
)
def test_hits_are_those_that_the_operators_allow(
    searcher: Searcher, query: str, expected: set[str]
) -> None:
    """Every hit has the phrases, across fields, hyphens and line ends, and nothing excluded."""
    assert found(searcher, query) == expected
    assert found(searcher, query, rankers=()) == expected


@pytest.mark.parametrize("scores", CandidateScores)
@pytest.mark.parametrize("count", [None, 2])
def test_vectors_find_only_what_is_allowed(
    tmp_path: Path, bert: Callable[..., Path], scores: CandidateScores, count: int | None
) -> None:
    """Documents that only vectors find, or none of whose words match, meet the operators, too."""
    build_index(DOCUMENTS, tmp_path / "i", SCHEMA)
    model = load_scorer(bert())
    with IndexWriter(tmp_path / "i") as writer:
        precompute_vectors(model, sentences, str(bert())).attach(writer)
    match = VectorMatch(count, FirstStage().match, scores)
    stage = FirstStage(expansion=RM3())
    searcher = Searcher(tmp_path / "i", (), stage, match)
    assert found(searcher, "flower")  # which is in no document
    assert found(searcher, "flower -steam") == {"bees"}
    assert found(searcher, "flower -steam", candidates="nearest") == {"bees"}
    for query, wanted in (
        ('flower "steam engine"', WITH_PHRASE),
        ('flower -"steam engine" -type:pdf', {"apart", "reverse", "bees"}),
    ):
        ids = found(searcher, query)
        assert ids and ids <= wanted


WORDS = st.sampled_from("steam engine river bridge flower the of stone".split())


def allowed_ids(index: Index, query: str, late: bool = False) -> tuple[set[str], bool]:
    """Return the documents that a query allows, and whether all could be read."""
    masks, exact = allowed_documents(index, parse_query(query), lambda: late)
    ids = (p.doc_ids.take(np.flatnonzero(masks[p.name])) for p in index.parts)
    return {doc_id for of_part in ids for doc_id in of_part}, exact


@given(
    st.lists(WORDS, min_size=1, max_size=3),
    st.lists(WORDS),
    st.lists(WORDS, min_size=2) | st.none(),
)
def test_laws(
    index: Index, phrase: list[str], excluded: list[str], excluded_phrase: list[str] | None
) -> None:
    """Exactly the documents are allowed whose texts have the phrase, and nothing excluded."""
    query = " ".join(['"' + " ".join(phrase) + '"', *(f"-{word}" for word in excluded)])
    if excluded_phrase:
        query += ' -"' + " ".join(excluded_phrase) + '"'
    wanted = set()
    for document in DOCUMENTS:
        in_order = words(document.contents.lower())
        text, terms = f" {' '.join(in_order)} ", {*index.analyzer.terms(document.contents)}
        stems = {word: {*index.analyzer.terms(word)} for word in excluded}
        bad = any(stem <= terms if stem else w in in_order for w, stem in stems.items())
        bad |= bool(excluded_phrase) and f" {' '.join(excluded_phrase or ())} " in text
        if f" {' '.join(phrase)} " in text and not bad:
            wanted.add(document.doc_id)
    assert allowed_ids(index, query) == (wanted, True)


QUERIES = ("steam engine", "The river?", 'a "b', "bees - dance", "http://river.org", "it's steam")


@pytest.mark.parametrize("query", QUERIES)
def test_without_operators_nothing_changes(index: Index, searcher: Searcher, query: str) -> None:
    """A query without operators has the same hits with the same scores as plain text."""
    literal = searcher.parse(query, literal=True)
    assert searcher.search(query) == searcher.search(literal)
    scores = [(h.document.doc_id, h.score) for h in searcher.search(query, rankers=()).hits]
    assert scores == list(rank_query(index, query, FirstStage(), 10))


def test_scores_are_those_of_the_words(index: Index, searcher: Searcher) -> None:
    """The scores of a query with operators are those of its words, and models read only these."""
    read = []

    class Listening(WordScorer):
        def score(self, query, token_ids):  # type: ignore[no-untyped-def]
            read.append(query)
            return super().score(query, token_ids)

    query = '"steam engine" river -parts type:html'
    assert found(Searcher(index, Ranker(Listening())), query) == {"fields"}
    assert {*read} == {"steam engine river"}
    (hit,) = searcher.search(query, rankers=()).hits
    assert hit.score == dict(rank_query(index, "steam engine river"))["fields"]


def test_literal_queries(tmp_path: Path) -> None:
    """C++ needs nothing, and -Wall is found when the query is taken literally."""
    documents = [
        Document("flags", {"text": "Use -Wall to see all warnings."}),
        Document("cpp", {"text": "C++ has classes."}),
    ]
    build_index(documents, tmp_path / "i")
    searcher = Searcher(tmp_path / "i", ())
    assert found(searcher, "C++") == {"cpp"}
    assert found(searcher, "warnings -Wall") == set()
    assert found(searcher, searcher.parse("-Wall", literal=True)) == {"flags"}  # type: ignore[arg-type]


def test_nothing_to_search_for(searcher: Searcher) -> None:
    """A query of nothing but exclusions and filters is an error that says what to do."""
    for query in ("-steam", "type:pdf", '-"steam engine" before:2024'):
        with pytest.raises(InputError, match="nothing to search for") as error:
            searcher.search(query)
        assert "literal" in str(error.value)
    with pytest.raises(InputError, match="not a filter"):
        searcher.search("steam type:a||b")


def test_beside_other_filters(searcher: Searcher) -> None:
    """Filters of the query add to those of the search, also on the same field."""
    assert found(searcher, "steam type:pdf", filters={"type": "pdf|html"}) == {"plain", "hyphen"}
    assert found(searcher, "steam type:pdf", filters={"type": "html"}) == set()
    (facet, _) = searcher.facets("steam -type:html", {"modified": "2023*|2024*|2025*"})
    assert facet.values == (("pdf", 2), ("text", 2))


def test_late_phrases(index: Index) -> None:
    """Documents that were not read for a phrase in time are left out until a search reads them."""
    assert allowed_ids(index, 'steam -"the engine"', late=True) == ({"bees"}, False)
    assert allowed_ids(index, "x -steam", late=True) == ({"bees"}, True)
    known, times = KnownPhrases(), chain([False], repeat(True))
    query = parse_query('"steam engine"')
    first = allowed_documents(index, query, lambda: next(times), known)
    assert not first.exact
    assert sum(int(mask.sum()) for mask in first.masks.values()) in range(1, len(WITH_PHRASE))
    again = chain([False] * (len(index) - 1 + len(index.parts)), repeat(True))
    assert allowed_documents(index, query, lambda: next(again), known).exact
    answer = Searcher(index, Ranker(WordScorer())).search('"steam engine"', 10, NO_TIME)
    assert {hit.document.doc_id for hit in answer.hits} == WITH_PHRASE


def test_phrases_are_known_when_only_rows_are_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A service commits vectors every few seconds; documents are not read again after each."""
    build_index(DOCUMENTS, tmp_path / "i", SCHEMA)
    searcher = Searcher(tmp_path / "i")
    assert found(searcher, '"steam engine"') == WITH_PHRASE
    schema = AttachmentSchema({}, {"x": RowForm("u1")})
    with IndexWriter(tmp_path / "i") as writer:
        writer.attach("rows", schema, lambda new: [{"x": np.zeros(1, np.uint8)} for _ in new])
    monkeypatch.setattr(Phrase, "state_in", pytest.fail)
    assert found(searcher, '"steam engine"') == WITH_PHRASE
    assert "rows" in searcher.index.attachments


def test_values_of_a_filter_are_read_as_far_as_needed(tmp_path: Path) -> None:
    """Values of deleted documents are not named; there may be none, or more than are named."""
    kinds = [Document(f"d{n:02}", {"text": "bee", "type": f"type{n:02}"}) for n in range(15)]
    build_index(kinds, tmp_path / "i", SCHEMA, part_tokens=4)
    with IndexWriter(tmp_path / "i") as writer:
        writer.delete("d01")
    searcher = Searcher(tmp_path / "i")
    (note,) = searcher.notes("bee type:t", searcher.search("bee type:t"))
    named = [f"type{n:02}" for n in range(15) if n != 1][:MAX_VALUES]
    listed = f"there are: {', '.join(named)}, …"
    assert note == f"no document has type=t; {listed}; for all that begin with it: type=t*"
    (note,) = searcher.notes("bee modified:2024", searcher.search("bee modified:2024"))
    assert note == "no document has a value of modified"


def test_notes_and_spelling(searcher: Searcher) -> None:
    """Notes name the phrases and values that nothing has, and corrections keep the operators."""
    for query, message in (
        ('"river engine" -bees', 'no document matches with "river engine" and without "bees"'),
        ("steam type:docx", "no document has type=docx; there are: html, pdf, text"),
        ("steam -by", None),
    ):
        answer = searcher.search(query)
        assert searcher.notes(query, answer) == ([message] if message else [])
    late = replace(searcher.search('"river engine"'), hits=())
    late = replace(late, stats=replace(late.stats, exact=False))
    assert searcher.notes('"river engine"', late) == [
        "nothing found yet: not all documents were searched"
    ]
    correct = searcher.correct
    assert correct('"steam enginne" -bridgge type:pdff') == '"steam engine" -bridgge type:pdff'
    assert correct('river "steam engine" -brige') is None


def test_evidence_reads_the_words(searcher: Searcher) -> None:
    """The evidence of an opened document is that for the words of the query."""
    plain = searcher.evidence("plain", "steam engine river")
    assert searcher.evidence("plain", '"steam engine" river -bees') == plain


WITH_PATHS = {"contents": ("title", "text", "path"), "names": ("path",)}
OF_PARTS = {"body": ("abstract", "conclusion")}


@pytest.mark.parametrize(
    ("schema", "fields", "query"),
    [
        (Schema(fields=WITH_PATHS), {"path": "Annual report 2020.pdf"}, '"annual report"'),
        (Schema(fields=OF_PARTS), {"conclusion": "An annual report."}, '"annual report"'),
        (Schema(analyzer="turkish"), {"text": "İzmir'de IŞIK var"}, '"ışık var"'),
        (Schema(analyzer="plain"), {"text": "Die Messe, İzmir Fuarı"}, '"izmir fuarı"'),
    ],
)
def test_phrases_of_each_searched_field(
    schema: Schema, fields: dict[str, str], query: str, tmp_path: Path
) -> None:
    """They are found, and left out, wherever the terms are, with the capitals of the language."""
    built = build_index(
        [Document("d", fields), Document("e", {"text": "x"})], tmp_path / "i", schema
    )
    for text, expected in ((query, {"d"}), (f"-{query}", {"e"})):
        masks = allowed_documents(built, parse_query(text)).masks
        allowed = {
            part.doc_ids[number]
            for part in built.parts
            for number in np.flatnonzero(masks[part.name])
        }
        assert allowed == expected
