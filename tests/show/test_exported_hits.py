"""Are hits for spreadsheets and notes complete, harmless and on one line each?"""

from __future__ import annotations

import csv
import io
from typing import Any

from birchbark.show.exported_hits import COLUMNS, hits_as_csv, hits_as_markdown


def hit(**fields: Any) -> dict[str, Any]:
    """A hit with one segment, whose sentence is shown."""
    segment = {"text": "Birch. It\n rides | on.", "sentence": (7, 22), "page": None, "line": 3}
    given = {
        "doc_id": "a.txt",
        "path": None,
        "title": "",
        "score": 0.9,
        "probability": None,
        "snippet": None,
    }
    return {**given, "segments": [segment], **fields}


def test_csv() -> None:
    """Each hit is a row with its best evidence; what looks like a formula is a text."""
    bare = {"text": "a", "page": 2, "line": None}
    hits = [hit(), hit(doc_id="=1+1", title="@b", probability=0.25, segments=[], snippet=bare)]
    rows = list(csv.reader(io.StringIO(hits_as_csv([*hits, hit(segments=[])]))))
    assert rows == [
        list(COLUMNS),
        ["1", "a.txt", "", "", "0.9000", "", "", "3", "It rides | on."],
        ["2", "'=1+1", "", "'@b", "0.9000", "0.2500", "2", "", "a"],
        ["3", "a.txt", "", "", "0.9000", "", "", "", ""],
    ]


def test_markdown() -> None:
    """Nothing in a document is markup, and a hit without a text has no quote."""
    text = hits_as_markdown("*birch*", [hit(title="[a](b)"), hit(segments=[])], unanswered=True)
    assert text.splitlines() == [
        r"## \*birch\*",
        "",
        "Probably none of these documents answers this.",
        "",
        r"1. **a.txt**: \[a\](b)",
        r"   > It rides \| on. (line 3)",
        "2. **a.txt**",
    ]


def test_markdown_of_many_hits() -> None:
    """Quotes belong to their hits, also to the tenth, and do not begin with marks of lists."""
    texts = ["+ a", "- a", "1. a", "12) a", "&lt;b"]
    hits = [hit(path="b c.txt", segments=[{"text": t, "page": None, "line": None}]) for t in texts]
    lines = hits_as_markdown("q", [*hits, *hits]).splitlines()[2:]
    quotes = [r"\+ a", r"\- a", r"1\. a", r"12\) a", r"\&lt;b"]
    assert lines[1::2] == [f"   > {q}" for q in quotes] + [
        *(f"   > {q}" for q in quotes[:4]),
        rf"    > {quotes[4]}",
    ]
    assert lines[-2] == "10. **b c.txt**"
