"""Are titles and texts paired and changed with the configured probabilities?"""

from __future__ import annotations

from collections import Counter
from dataclasses import fields
from pathlib import Path

import pytest
from click.testing import CliRunner

from birchbark.cli import group
from birchbark.collection.parsing.intake import Intake
from birchbark.errors import InputError
from birchbark.pairs.judged import add_negatives, judged_pairs
from birchbark.pairs.random_negatives import random_negatives
from birchbark.pairs.read import read_pairs
from birchbark.records import Document, Pair, Qrels
from birchbark_studies.title_pairs import (
    TitleChanges,
    TitlePairs,
    drawn,
    negatives_per_positive,
    with_title_and_text,
)

NOTHING = {change.name: 0.0 for change in fields(TitleChanges)}
COUNT = 200
DOCUMENTS = [
    Document(
        f"d{n}",
        {
            "title": f"The effects of drug number{n} for mice",
            "text": " ".join(f"word{n}x{place}" for place in range(30)),
        },
    )
    for n in range(COUNT)
]


def with_changes(seed: int = 0, **chances: float) -> TitlePairs:
    """Return queries of all documents with these changes alone."""
    title_pairs = TitlePairs(TitleChanges(**NOTHING | chances), seed)
    title_pairs.add(DOCUMENTS)
    return title_pairs


def texts(title_pairs: TitlePairs) -> list[str]:
    """Return the text of its own document that each query is paired with."""
    return [title_pairs.texts(d.doc_id, d)[0] for d in DOCUMENTS]


def test_without_changes() -> None:
    """Whole titles are paired with whole texts."""
    title_pairs = with_changes()
    assert [q.text for q in title_pairs.queries.values()] == [d.title for d in DOCUMENTS]
    assert texts(title_pairs) == [d.text for d in DOCUMENTS]
    assert not title_pairs.change_counts


def test_stop_words_are_removed() -> None:
    """The other words stay in order."""
    queries = with_changes(stop_words=1).queries.values()
    assert [query.text for query in queries] == [
        f"effects drug number{n} mice" for n in range(COUNT)
    ]


def test_titles_are_shortened() -> None:
    """A quarter of their consecutive words or more is left, but never all."""
    title_pairs = with_changes(short_title=1)
    for document in DOCUMENTS:
        part, whole = title_pairs.queries[document.doc_id].text, document.title
        assert f" {part} " in f" {whole} "
        assert len(whole.split()) / 4 - 1 < len(part.split()) < len(whole.split())
    lengths = {len(query.text.split()) for query in title_pairs.queries.values()}
    assert lengths == {1, 2, 3, 4, 5, 6}  # of seven words
    assert title_pairs.change_counts == {"shortened titles": COUNT}


def test_a_shortened_title_is_from_any_place() -> None:
    """Every part of the seven words but all of them occurs: the first words, and the last."""
    parts = Counter[tuple[int, int]]()
    for seed in range(5):
        queries = with_changes(seed, short_title=1).queries
        for document in DOCUMENTS:
            words, part = document.title.split(), queries[document.doc_id].text.split()
            parts[words.index(part[0]), len(part)] += 1
    assert sorted(parts) == [
        (start, size) for start in range(7) for size in range(1, 8 - start) if size < 7
    ]


def test_titles_are_shuffled() -> None:
    """They have the same words in another order."""
    title_pairs = with_changes(shuffle=1)
    for document in DOCUMENTS:
        query = title_pairs.queries[document.doc_id].text
        assert query != document.title
        assert sorted(query.split()) == sorted(document.title.split())


def test_texts_are_shortened() -> None:
    """Consecutive words are left, which differ between queries."""
    title_pairs = with_changes(short_text=1)
    parts = texts(title_pairs)
    assert all(
        f" {p} " in f" {d.text} " and p != d.text for p, d in zip(parts, DOCUMENTS, strict=True)
    )
    assert title_pairs.texts("d0", DOCUMENTS[0]) != title_pairs.texts("d1", DOCUMENTS[0])


def test_a_quarter_of_a_long_text_is_left_at_least() -> None:
    """Of 30 words at least 7 are, and at most 29; all lengths between occur."""
    lengths = {len(text.split()) for text in texts(with_changes(short_text=1))}
    assert lengths == set(range(7, 30))


@pytest.mark.parametrize(("name", "field"), [("title_title", "title"), ("swap", "text")])
def test_queries_paired_with_titles(name: str, field: str) -> None:
    """The query is a title or a text."""
    title_pairs = with_changes(**{name: 1})
    assert [query.text for query in title_pairs.queries.values()] == [
        d.fields[field] for d in DOCUMENTS
    ]
    assert texts(title_pairs) == [d.title for d in DOCUMENTS]


def test_pairs_with_titles_have_their_probabilities() -> None:
    """Titles with titles and texts with titles exclude each other; no text is paired with one."""
    title_pairs = with_changes(swap=0.3, title_title=0.3)
    kinds = Counter(
        ("text" if title_pairs.queries[d.doc_id].text == d.fields["text"] else "title", paired)
        for d, paired in zip(DOCUMENTS, title_pairs.paired_field.values(), strict=True)
    )
    assert kinds.keys() == {("text", "title"), ("title", "title"), ("title", "text")}
    assert abs(kinds["text", "title"] - 0.3 * COUNT) <= 26  # four standard errors
    assert abs(kinds["title", "title"] - 0.3 * COUNT) <= 26
    assert title_pairs.change_counts == {
        "texts as queries for titles": kinds["text", "title"],
        "titles as queries for titles": kinds["title", "title"],
    }


def test_changes_have_their_probability() -> None:
    """They do within four standard errors.

    A document's draws depend on the seed and its id alone.
    """
    title_pairs = with_changes(stop_words=0.4)
    assert 52 <= title_pairs.change_counts["titles without stop words"] <= 108
    assert with_changes(seed=1, stop_words=0.4).queries != title_pairs.queries
    alone = TitlePairs(TitleChanges(**NOTHING | {"stop_words": 0.4}), 0)
    alone.add(DOCUMENTS[7:9])
    assert alone.queries == {d: title_pairs.queries[d] for d in ("d7", "d8")}


@pytest.mark.parametrize("share", [0.0, 0.3, 0.5, 0.65, 0.9])
def test_share_of_negative_pairs(share: float) -> None:
    """It is about as configured; each query has its own text, and no text occurs twice."""
    title_pairs = with_changes()
    qrels, pairs = title_pairs.qrels(), list[Pair]()
    if share:
        sample = random_negatives(qrels, (d.doc_id for d in DOCUMENTS), 9, 0)
        qrels = add_negatives(qrels, title_pairs.negatives(sample, share))
    pairs += judged_pairs(
        title_pairs.queries.values(), qrels, DOCUMENTS, Intake(), title_pairs.texts
    )
    negatives = sum(pair.relevance == 0 for pair in pairs)
    assert len(pairs) - negatives == COUNT
    assert all((pair.query_id == pair.doc_id) == bool(pair.relevance) for pair in pairs)
    assert abs(negatives / COUNT - negatives_per_positive(share)) < 0.15


def test_impossible_changes_are_not_made() -> None:
    """No query becomes empty, and a single word is neither shuffled nor shortened."""
    title_pairs = TitlePairs(
        TitleChanges(stop_words=1, short_title=1, shuffle=1, short_text=1, swap=0), 0
    )
    title_pairs.add([Document("a", {"title": "What Is It?", "text": "x"})])
    assert set(title_pairs.queries["a"].text.split()) < {"What", "Is", "It?"}
    title_pairs.add([Document("b", {"title": "Bees", "text": "x"})])
    assert title_pairs.queries["b"].text == "Bees"


def test_errors() -> None:
    """Probabilities out of range, and documents without a title or text."""
    with pytest.raises(InputError, match="shuffle is out of range"):
        TitleChanges(shuffle=1.5)
    with pytest.raises(InputError, match="exclude each other"):
        TitleChanges(swap=0.6, title_title=0.6)
    with pytest.raises(InputError, match="share of negative pairs"):
        negatives_per_positive(1.0)
    title_pairs = TitlePairs(TitleChanges(), 0)
    with pytest.raises(InputError, match="no document has a title and a text: found 2 documents"):
        title_pairs.add([Document("a", {"title": "t"}), Document("b", {"text": "x"})])


def test_command(tmp_path: Path) -> None:
    """It reads any two fields and counts incomplete documents; equal seeds give equal bytes."""
    rows = [f'{{"id": "{d.doc_id}", "name": "{d.title}", "text": "{d.text}"}}' for d in DOCUMENTS]
    path, output = tmp_path / "c.jsonl", tmp_path / "pairs.tsv"
    path.write_text("\n".join([*rows, '{"id": "bare", "text": "no name"}']))
    command = ["study", "title-pairs", str(path), "--title-field", "name", "--output"]
    output_text = CliRunner().invoke(group, [*command, str(output)], catch_exceptions=False).output
    assert "documents without a title or a text, left out: 1" in output_text
    pairs = list(read_pairs(output, Intake()))
    assert {pair.query_id for pair in pairs} == {d.doc_id for d in DOCUMENTS}
    assert 0.6 < sum(pair.relevance == 0 for pair in pairs) / len(pairs) < 0.7
    again = tmp_path / "again.tsv"
    CliRunner().invoke(group, [*command, str(again)], catch_exceptions=False)
    assert again.read_bytes() == output.read_bytes()


def test_white_space_of_fields() -> None:
    """Each run becomes one space, as in files of pairs."""
    [document] = with_title_and_text([Document("a", {"t": " a\n b", "x": "c\td"})], "t", "x")
    assert document.fields == {"title": "a b", "text": "c d"}


def test_a_limit_draws_pairs_of_all_documents() -> None:
    """The same pairs for the same seed, others for another one, and all if there are no more."""
    qrels = Qrels({f"q{n}": {f"d{n}": 1, f"d{n + 1}": 0} for n in range(50)})
    first, again, other = (drawn(qrels, 30, seed).grades for seed in (0, 0, 1))
    assert first == again != other
    assert sum(map(len, first.values())) == 30
    assert max(int(query_id[1:]) for query_id in first) > 30
    assert all(
        grade == qrels.grades[q][d] for q, docs in first.items() for d, grade in docs.items()
    )
    assert drawn(qrels, 100, 0) == qrels


def test_numbers_of_negatives() -> None:
    """A share of three in four is three for each relevant pair; they are the first sampled."""
    assert [negatives_per_positive(share) for share in (0, 0.5, 0.75)] == [0, 1, 3]
    sampled = {d.doc_id: ["x", "y", "z", "w"] for d in DOCUMENTS}
    title_pairs = with_changes()
    assert title_pairs.negatives(sampled, 0.75) == {d: ["x", "y", "z"] for d in sampled}
    counts = Counter(map(len, title_pairs.negatives(sampled, 0.6).values()))  # 1.5 on average
    assert counts.keys() == {1, 2}
    assert abs(counts[2] - COUNT / 2) <= 28  # four standard errors
    for share in (-0.1, 1.0):
        with pytest.raises(InputError, match="at least 0 and below 1"):
            title_pairs.negatives(sampled, share)


def test_punctuation_goes_with_the_stop_words() -> None:
    """A title of stop words alone stays as it is."""
    titles = {"a": "The bees, & (their) honey", "b": "What is it?", "c": "Bees dance"}
    title_pairs = TitlePairs(TitleChanges(**NOTHING | {"stop_words": 1}), 0)
    title_pairs.add(Document(d, {"title": title, "text": "x"}) for d, title in titles.items())
    found = {doc_id: query.text for doc_id, query in title_pairs.queries.items()}
    assert found == {"a": "bees, honey", "b": "What is it?", "c": "Bees dance"}
    assert title_pairs.change_counts == {"titles without stop words": 1}


def test_documents_without_a_title_or_a_text_are_in_no_pair() -> None:
    """They make no query, and are no document of another query's pair."""
    title_pairs = with_changes()
    title_pairs.add(
        [Document("bare", {"text": "x"}), Document("blank", {"title": "t", "text": " "})]
    )
    assert title_pairs.incomplete == 2
    assert title_pairs.queries.keys() == {d.doc_id for d in DOCUMENTS}
    assert title_pairs.texts("d0", Document("blank", {"title": "t", "text": " "})) == []
    assert title_pairs.texts("d0", DOCUMENTS[1]) == [DOCUMENTS[1].text]
    assert title_pairs.qrels().grades == {d.doc_id: {d.doc_id: 1} for d in DOCUMENTS}


def test_chances_may_add_up_to_1() -> None:
    """Each pair is then one with titles."""
    title_pairs = with_changes(swap=0.5, title_title=0.5)
    assert set(title_pairs.paired_field.values()) == {"title"}
    assert len(set(title_pairs.change_counts)) == 2
