"""Does `birchbark study reformulate` write queries that `birchbark retrieve` reads?"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from command_line import birchbark
from conftest import DOCUMENTS, write_bert


def test_reformulated_queries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Weighted terms are written for retrieve, and the variants are reported."""
    monkeypatch.chdir(tmp_path)
    lines = [json.dumps({"id": d.doc_id, **d.fields}) for d in DOCUMENTS]
    Path("docs.jsonl").write_text("\n".join(lines))
    Path("q.tsv").write_text("1\tbirch river\n2\tiron engine\n3\tzeppelin\n")
    birchbark("index", "docs.jsonl", "--to", "i")
    model = write_bert(tmp_path / "masked", masked=True)
    command = ("study", "reformulate", "i", "--model", str(model), "--queries")
    report = ("--report", "variants.tsv")
    stderr = birchbark(*command, "q.tsv", "--variants", "2", "--output", "w.tsv", *report)[1]
    assert re.match(r"\d+ variants of 3 queries", stderr)
    rows = [line.split("\t") for line in Path("variants.tsv").read_text().splitlines()]
    assert all(0 <= float(weight) <= 1 for _, weight, _ in rows)
    birchbark("retrieve", "i", "--queries", "w.tsv", "--weighted", "--output", "w.run")
    assert {line.split()[0] for line in Path("w.run").read_text().splitlines()} >= {"1", "2"}
    Path("stop.tsv").write_text("1\tthe\n2\tbirch\n")
    stderr = birchbark(*command, "stop.tsv", "--output", "s.tsv")[1]
    assert "queries without a term, skipped: 1 (1)" in stderr
    assert Path("s.tsv").read_text().startswith("2\tbirch^")
