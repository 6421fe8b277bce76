"""Is a joined word found by its parts as well?"""

from __future__ import annotations

from pathlib import Path

import pytest

from birchbark.index.build_index import Schema, build_index
from birchbark.index.index import Index
from birchbark.records import Document
from birchbark.retrieve.first_stage import FirstStage, rank_queries
from birchbark.text.analyzer import OF_WORDS, PARTS, analyzer
from birchbark.text.parts import parts


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("parse_http_header", ["parse", "http", "header"]),
        ("left.Then", ["left", "Then"]),
        ("Ratio:high", ["Ratio", "high"]),
        ("config.yaml", ["config", "yaml"]),
        ("jane.roe", ["jane", "roe"]),
        ("camelCase", ["camel", "Case"]),
        ("HTTPServer", ["HTTP", "Server"]),
        ("_private", ["private"]),
        ("tax_return_2023", ["tax", "return", "2023"]),
        ("TaxReturn2023", ["Tax", "Return", "2023"]),
        ("parseJSON2CSV", ["parse", "JSON", "CSV"]),
        ("covid19", ["covid", "19"]),
        ("20mg", ["20", "mg"]),
        ("10:30", []),
        ("B2B", []),
        ("RNAs", []),
        ("u.s", []),
        ("3.14", []),
        ("birch", []),
    ],
)
def test_parts_of_joined_words(word: str, expected: list[str]) -> None:
    """Parts of one character are left out; a number with a point or a time is one."""
    assert parts(word) == expected


@pytest.mark.parametrize("name", OF_WORDS)
def test_with_parts_the_whole_is_found_as_well(name: str) -> None:
    """The terms of a joined word are its own and those of its parts; others stay as they are."""
    plain, joined = analyzer(name), analyzer(name + PARTS)
    expected = [
        term for word in ("config.yaml", "config", "yaml", "rain") for term in plain.terms(word)
    ]
    assert joined.terms("config.yaml rain") == expected


def test_an_index_with_parts_finds_the_part_and_the_whole(tmp_path: Path) -> None:
    """The document with the whole word is first for the whole word."""
    texts = {"joined": "see config.yaml now", "part": "a yaml file", "none": "a birch canoe here"}
    documents = [Document(doc_id, {"text": text}) for doc_id, text in texts.items()]
    index = build_index(documents, tmp_path / "i", Schema("english+parts"))
    assert ranked(index, "yaml") == {"joined", "part"}
    assert ranked(index, "config.yaml") == {"joined", "part"}
    assert ranked(index, "config") == {"joined"}


def ranked(index: Index, query: str) -> set[str]:
    """Return the ids of the documents that the first stage finds."""
    from birchbark.records import Query

    run = rank_queries(index, [Query("q", query)], FirstStage())
    return set(run.rankings["q"].doc_ids)
