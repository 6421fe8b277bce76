"""Are titles and texts paired as was asked, and changed as often?"""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest
from click.testing import CliRunner

from birchbark.cli import group
from birchbark.collection.intake import Intake
from birchbark.collection.judged import judged_pairs, with_negatives
from birchbark.collection.pairs import read_pairs
from birchbark.errors import InputError
from birchbark.pairs.anywhere import from_collection
from birchbark.pairs.title_text import Changes, TitleTexts, both, others
from birchbark.records import Document, Pair

NOTHING = {one.name: 0.0 for one in fields(Changes)}
SOME = 200
DOCUMENTS = [
    Document(
        f"d{n}",
        {
            "title": f"The effects of drug number{n} for mice",
            "text": " ".join(f"word{n}x{place}" for place in range(30)),
        },
    )
    for n in range(SOME)
]


def made(seed: int = 0, **chances: float) -> TitleTexts:
    """Queries of all documents, with these changes alone."""
    found = TitleTexts(Changes(**NOTHING | chances), seed)
    found.add(DOCUMENTS)
    return found


def texts(found: TitleTexts) -> list[str]:
    """What each is paired with of its own document."""
    return [found.texts(d.doc_id, d)[0] for d in DOCUMENTS]


def test_without_changes() -> None:
    """The titles ask, whole, for whole texts."""
    found = made()
    assert [q.text for q in found.queries.values()] == [d.title for d in DOCUMENTS]
    assert texts(found) == [d.text for d in DOCUMENTS]
    assert not found.done


def test_stop_words_always_dropped() -> None:
    """The others stay, in their order."""
    asked = [query.text for query in made(stop_words=1).queries.values()]
    assert asked == [f"effects drug number{n} mice" for n in range(SOME)]


def test_titles_always_shortened() -> None:
    """A part in a row, never all, a quarter or more."""
    found = made(short_title=1)
    for document in DOCUMENTS:
        part, whole = found.queries[document.doc_id].text, document.title
        assert f" {part} " in f" {whole} "
        assert len(whole.split()) / 4 - 1 < len(part.split()) < len(whole.split())
    assert found.done == {"shortened titles": SOME}


def test_titles_always_shuffled() -> None:
    """The same words, in another order."""
    found = made(shuffle=1)
    for document in DOCUMENTS:
        asked = found.queries[document.doc_id].text
        assert asked != document.title
        assert sorted(asked.split()) == sorted(document.title.split())


def test_texts_always_shortened() -> None:
    """A part in a row; another of the same text for another query."""
    found = made(short_text=1)
    parts = texts(found)
    assert all(
        f" {p} " in f" {d.text} " and p != d.text for p, d in zip(parts, DOCUMENTS, strict=True)
    )
    assert found.texts("d0", DOCUMENTS[0]) != found.texts("d1", DOCUMENTS[0])


@pytest.mark.parametrize(("name", "asked"), [("title_title", "title"), ("swap", "text")])
def test_what_is_paired_with_titles(name: str, asked: str) -> None:
    """Titles, or texts."""
    found = made(**{name: 1})
    assert [query.text for query in found.queries.values()] == [d.fields[asked] for d in DOCUMENTS]
    assert texts(found) == [d.title for d in DOCUMENTS]


def test_changes_are_as_likely_as_was_asked() -> None:
    """Within four standard errors; the seed decides, and a document's chance is its own."""
    found = made(stop_words=0.4)
    assert 52 <= found.done["titles without stop words"] <= 108
    assert made(seed=1, stop_words=0.4).queries != found.queries
    alone = TitleTexts(Changes(**NOTHING | {"stop_words": 0.4}), 0)
    alone.add(DOCUMENTS[7:9])
    assert alone.queries == {d: found.queries[d] for d in ("d7", "d8")}


@pytest.mark.parametrize("share", [0.0, 0.3, 0.5, 0.65, 0.9])
def test_share_of_false_pairs(share: float) -> None:
    """About as asked; each query has its own text, and no text twice."""
    found = made()
    qrels, pairs = found.own(), list[Pair]()
    if share:
        drawn = from_collection(qrels, (d.doc_id for d in DOCUMENTS), 9, 0)
        qrels = with_negatives(qrels, found.strangers(drawn, share))
    pairs += judged_pairs(found.queries.values(), qrels, DOCUMENTS, Intake(), found.texts)
    false = sum(pair.relevance == 0 for pair in pairs)
    assert len(pairs) - false == SOME
    assert all((pair.query_id == pair.doc_id) == bool(pair.relevance) for pair in pairs)
    assert abs(false / SOME - others(share)) < 0.15


def test_titles_of_stop_words_alone_stay() -> None:
    """A query cannot be empty, nor can one word have another order or a part."""
    found = TitleTexts(Changes(stop_words=1, short_title=1, shuffle=1, short_text=1, swap=0), 0)
    found.add([Document("a", {"title": "What Is It?", "text": "x"})])
    assert set(found.queries["a"].text.split()) < {"What", "Is", "It?"}
    found.add([Document("b", {"title": "Bees", "text": "x"})])
    assert found.queries["b"].text == "Bees"


def test_faults() -> None:
    """Chances that are none, and a collection of one field."""
    with pytest.raises(InputError, match="shuffle is out of range"):
        Changes(shuffle=1.5)
    with pytest.raises(InputError, match="exclude each other"):
        Changes(swap=0.6, title_title=0.6)
    with pytest.raises(InputError, match="share of false pairs"):
        others(1.0)
    found = TitleTexts(Changes(), 0)
    with pytest.raises(InputError, match="no document has a title and a text: found 2 documents"):
        found.add([Document("a", {"title": "t"}), Document("b", {"text": "x"})])


def test_command(tmp_path: Path) -> None:
    """Any two fields; documents without one of them are counted; the same bytes for one seed."""
    rows = [f'{{"id": "{d.doc_id}", "name": "{d.title}", "text": "{d.text}"}}' for d in DOCUMENTS]
    path, output = tmp_path / "c.jsonl", tmp_path / "pairs.tsv"
    path.write_text("\n".join([*rows, '{"id": "bare", "text": "no name"}']))
    command = ["pairs", "title-abstract", str(path), "--title-field", "name", "--output"]
    told = CliRunner().invoke(group, [*command, str(output)], catch_exceptions=False).output
    assert "1 documents lack a title or a text, and have no pair" in told
    pairs = list(read_pairs(output, Intake()))
    assert {pair.query_id for pair in pairs} == {d.doc_id for d in DOCUMENTS}
    assert 0.6 < sum(pair.relevance == 0 for pair in pairs) / len(pairs) < 0.7
    again = tmp_path / "again.tsv"
    CliRunner().invoke(group, [*command, str(again)], catch_exceptions=False)
    assert again.read_bytes() == output.read_bytes()


def test_white_space_of_fields() -> None:
    """Is one space, as in files of pairs."""
    [document] = both([Document("a", {"t": " a\n b", "x": "c\td"})], "t", "x")
    assert document.fields == {"title": "a b", "text": "c d"}
