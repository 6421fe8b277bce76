"""Are equal documents one hit that says where the others are?"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from itertools import chain, repeat
from pathlib import Path

import pytest
from click.testing import CliRunner

from birchbark.cli import group
from birchbark.deadline import Deadline
from birchbark.index.build_index import build_index
from birchbark.pipeline.answers.answer import Hit
from birchbark.pipeline.answers.copies import without_copies
from birchbark.pipeline.open_engine import open_engine
from birchbark.pipeline.reading.document_reader import RankerReaders
from birchbark.pipeline.search import search_with_readers
from birchbark.pipeline.settings.ranker import Ranker
from birchbark.records import Document
from birchbark.score.load_scorer import load_scorer
from birchbark.segment.whole import whole


def hit(doc_id: str, **fields: str) -> Hit:
    return Hit(Document(doc_id, fields), 1.0, 1.0, 0.0, ())


def of_file(name: str, **fields: str) -> Hit:
    return hit(name, path=name, folder=".", **({"size": "1"} | fields))


def test_records_differ_in_all_fields() -> None:
    """Only files have fields that tell where they are."""
    hits = without_copies([hit(size, text="A shirt.", size=size) for size in "SM"])
    assert [h.copies for h in hits] == [(), ()]


def test_copies_differ_in_their_place_alone() -> None:
    """Another title, text or year is another document; one without text is never a copy."""
    hits = without_copies(
        [
            of_file("a", title="T", text="birch", modified="2026-01-01", size="5"),
            of_file("b", title="T", text="bark"),
            of_file("c", title="T", text="birch", modified="2026-01-02", size="6"),
            of_file("d", title="U", text="birch"),
            of_file("e", title="T", text="birch", year="2020"),
            of_file("f", text=" "),
            of_file("g", text=" "),
            of_file("h", title="T", text="birch"),
        ]
    )
    assert [(h.document.doc_id, h.copies) for h in hits] == [
        ("a", ("c", "h")),
        *((doc_id, ()) for doc_id in "bdefg"),
    ]


@pytest.mark.parametrize("only", [[], ["--model", "none"]])
def test_the_shell_shows_where_copies_are(tmp_path: Path, only: list[str]) -> None:
    """JSON and the table show it, with and without BERT."""
    for name in ("one/guide.txt", "two/guide.txt"):
        (tmp_path / "docs" / name).parent.mkdir(parents=True)
        (tmp_path / "docs" / name).write_text("Birch bark is light. Canoes are made of it.")
    (tmp_path / "docs" / "other.txt").write_text("Bark protects a tree.")
    index = str(tmp_path / "index")
    built = CliRunner().invoke(group, ["index", "build", str(tmp_path / "docs"), "--to", index])
    assert built.exit_code == 0
    arguments = ["search", index, "birch bark", *only]
    result = CliRunner().invoke(group, [*arguments, "--json"], catch_exceptions=False)
    hits = [json.loads(line) for line in result.stdout.splitlines()]
    assert [len(h["copies"]) for h in hits] == [1, 0]
    assert {hits[0]["doc_id"], *hits[0]["copies"]} == {"one/guide.txt", "two/guide.txt"}
    table = CliRunner().invoke(group, arguments, catch_exceptions=False).stdout
    assert f"also in {hits[0]['copies'][0]}" in table


@pytest.mark.parametrize("only", [[], ["--model", "none"]])
def test_other_hits_take_the_places_of_copies(tmp_path: Path, only: list[str]) -> None:
    """As many hits as are asked for, if there are so many documents that are no copies."""
    (tmp_path / "docs").mkdir()
    for number in range(12):
        (tmp_path / "docs" / f"copy{number}.txt").write_text("Invoice due: birch bark.")
    for name in ("plumber", "years"):
        (tmp_path / "docs" / f"{name}.txt").write_text(f"The invoice of the {name} is overdue.")
    index = str(tmp_path / "index")
    built = CliRunner().invoke(group, ["index", "build", str(tmp_path / "docs"), "--to", index])
    assert built.exit_code == 0
    for top, copies in ((1, 0), (2, 11), (3, 11), (10, 11)):
        arguments = ["search", index, "invoice due", *only, "--top", str(top), "--json"]
        lines = CliRunner().invoke(group, arguments, catch_exceptions=False).stdout.splitlines()
        hits = [json.loads(line) for line in lines]
        assert len(hits) == min(top, 3)
        assert len(hits[0]["copies"]) == copies
        assert all(hit["snippet"] or hit["evidence"] for hit in hits)


def test_more_time_never_shows_fewer_scores(tmp_path: Path, bert: Callable[..., Path]) -> None:
    """If time does not suffice to look for more hits, they are what was found in time."""
    texts = ["birch bark " * 9] * 90 + [f"birch {n} " * 9 for n in range(90)]
    records = [{"id": str(n), "text": text} for n, text in enumerate(texts)]
    engine = open_engine(build_index(records, tmp_path / "index"))
    ranker, scored = Ranker(load_scorer(bert(labels=1, positions=64)), whole), list[int]()
    for steps in range(80, 200, 5):
        ticks = chain([0.0] * (1 + steps), repeat(9.0))
        readers = [RankerReaders(engine, ranker)]
        deadline = Deadline(1.0, partial(next, ticks))
        answer = search_with_readers(engine, "birch", readers, 20, deadline)
        scored.append(sum(hit.scored for hit in answer.hits))
    assert scored == sorted(scored)
    assert scored[0] == 0
    assert scored[-1] == 11  # one of them for all copies
    assert not answer.stats.exact
    answer = search_with_readers(engine, "birch", readers, 20, Deadline(None))
    assert (len(answer.hits), answer.stats.exact) == (20, True)
