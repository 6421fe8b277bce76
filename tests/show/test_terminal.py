"""How are hits printed in a terminal and in a file?"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from birchbark.cli.compare_runs import compare_to_first
from birchbark.evaluate.measures import measure
from birchbark.pipeline.answers.answer import Evidence, Hit, Snippet
from birchbark.records import Document, Qrels, Ranking, Run, Segment
from birchbark.show import terminal
from birchbark.show.terminal import _passage, show_hits

DOCUMENT = Document("canoe", {"title": "Birch canoe", "text": "It rides\n the   river."})
SEGMENT = Segment("canoe", 12, 34, "It rides\n the   river.")
MARKS = ((16, 21),)
READ = Hit(DOCUMENT, 0.9, 0.2, 0.4, (Evidence(SEGMENT, 1.0, 0.4, MARKS),), 0.3, stage=1)
UNREAD = Hit(DOCUMENT, 0.5, 0.2, 0.0, (), 0.3, scored=False, snippet=Snippet(SEGMENT, MARKS))


def test_hits_show_evidence_or_snippet(capsys: pytest.CaptureFixture[str]) -> None:
    """White space is one blank, the components of the score add up, and a file has no styles."""
    show_hits([READ, UNREAD], ["cross-encoder"])
    assert capsys.readouterr().out.splitlines() == [
        " 1. canoe  0.900 = 0.200 first stage + 0.300 embedding + 0.400 cross-encoder",
        "    Birch canoe",
        "    1.000 × 0.40  It rides the river.",
        " 2. canoe  0.500 = 0.200 first stage + 0.300 embedding; not read",
        "    Birch canoe",
        "    It rides the river.",
    ]


def test_hits_of_several_stages_name_theirs(capsys: pytest.CaptureFixture[str]) -> None:
    """The share of each model has its name, and what a stage got from the one before it, too."""
    hits = [replace(READ, stage=2), READ, replace(UNREAD, stage=0)]
    show_hits(hits, ["cosine", "cross-encoder"])
    headings = [line for line in capsys.readouterr().out.splitlines() if " canoe  " in line]
    assert headings == [
        " 1. canoe  0.900 = 0.200 stage 1 + 0.300 embedding + 0.400 cross-encoder; stage 2 of 2",
        " 2. canoe  0.900 = 0.200 first stage + 0.300 embedding + 0.400 cosine; stage 1 of 2",
        " 3. canoe  0.500 = 0.200 first stage + 0.300 embedding; not read",
    ]


def test_terms_are_bold_in_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the terms of the query are; the id is a link to its file if it has one."""

    def colourful(min_width: int = 0) -> Any:
        return terminal.Console(width=80, force_terminal=True, color_system="standard")

    monkeypatch.setattr(terminal, "console", colourful)
    show_hits([UNREAD])
    assert "the \x1b[1mriver\x1b[0m." in capsys.readouterr().out
    show_hits([UNREAD], files={"canoe": Path("/my notes/canoe;.txt")})
    assert ";file:///my%20notes/canoe%3B.txt\x1b\\" in capsys.readouterr().out


@given(
    words=st.lists(st.sampled_from(["moss", "stone", "fern\n", "a  b"]), max_size=60),
    width=st.integers(40, 120),
)
def test_a_passage_shows_the_first_term(words: list[str], width: int) -> None:
    """However long the text before it, the line is wide enough for the first term."""
    text = " ".join([*words, "river", "end"])
    start = text.index("river")
    line = _passage(text, ((start, start + 5),), width)
    assert "river" in line.plain[:width]
    assert len(line) <= width
    assert set(line.plain.split()) <= {"moss", "stone", "fern", "a", "b", "river", "end", "…"}
    bold = [line.plain[span.start : span.end] for span in line.spans if span.style == "bold"]
    assert "river" in bold


def test_a_term_longer_than_the_line_is_shown() -> None:
    """A passage may begin with an address that is a term of the query."""
    address = "http://example.org/" + "moss" * 20
    shown = _passage(f"{address} and some stone", ((0, len(address)),), 60)
    assert shown.plain.startswith(address)
    short, text = address[:55], f"It is about {address[:55]} and stone"
    shown = _passage(text, ((12, 12 + len(short)),), 60)
    assert shown.plain == f"… {short} …"


def test_impossible_differences_are_not_detectable(capsys: pytest.CaptureFixture[str]) -> None:
    """Two queries could show only a difference larger than the measure's range."""
    qrels = Qrels({"1": {"a": 1}, "2": {"b": 1}})
    first, second = Ranking.of(["a", "b"], [2, 1]), Ranking.of(["b", "a"], [2, 1])
    runs = [Run({"1": first, "2": ranking}) for ranking in (first, second)]
    results = [measure(qrels, run, ["AP"]) for run in runs]
    terminal.show_results(results, compare_to_first(results, 0))
    shown = " ".join(capsys.readouterr().out.split())
    assert "power of 80 % (median over runs): AP none." in shown
