"""Is the memory of re-ranking independent of the number of long documents?"""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from birchbark.collection.runs import write_run
from birchbark.index.build_index import build_index
from birchbark.records import Document, Ranking, Run
from conftest import WORDS

MEASURED = """
import resource, sys
from birchbark.cli import group
group.main(sys.argv[1:], standalone_mode=False)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


@pytest.mark.slow
def test_memory_does_not_grow_with_depth(bert: Callable[..., Path]) -> None:
    """1,000 documents of 5,000 words take under 1 GB, and hardly more than 250 of them."""
    model = bert(labels=1, positions=64, layers=1)
    folder, chance = model.parent, random.Random(5)
    words = [word for word in WORDS if word.isalpha()]

    def sentence() -> str:
        return " ".join(chance.choices(words, k=20)).capitalize() + "."

    names = [f"d{i:04}" for i in range(1000)]
    documents = (
        Document(name, {"text": " ".join(sentence() for _ in range(250))}) for name in names
    )
    build_index(documents, folder / "long.index")
    write_run(Run({"1": Ranking.of(names, range(1000, 0, -1))}), folder / "first.run")
    (folder / "q.tsv").write_text("1\tbirch canoe\n")
    peak_megabytes = {}
    for depth in (250, 1000):
        command = [
            sys.executable, "-c", MEASURED, "rerank", "long.index", "--run", "first.run",
            "--queries", "q.tsv", "--model", str(model), "--set", f"depth={depth}",
            "--output", "o.run",
        ]  # fmt: skip
        done = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
        peak_megabytes[depth] = int(done.stdout) / 1000
        assert f"re-ranked {depth:,} documents" in done.stderr
    assert peak_megabytes[1000] < 1000, peak_megabytes
    cache = 80  # of split documents, which 250 fill by a quarter (document_reader.py)
    assert peak_megabytes[1000] < peak_megabytes[250] + cache, peak_megabytes
