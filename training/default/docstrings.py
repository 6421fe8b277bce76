"""Pairs of Python packages' documentation, as JSON lines: what a name does, and what is said of it.

Each documented name asks with the first sentence of its docstring; its title and first sentences
answer. Standard error says how much was left out. late-pool.sh runs it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from birchbark.collection.intake import Intake
from birchbark.collection.pydocs import read_pydocs
from birchbark.segment.sentences import sentences

MOST = 10  # sentences of one docstring: tables of parameters are long, and much alike


def pairs(package: str) -> Iterator[dict[str, str | int]]:
    """All relevant: label 1."""
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        raise SystemExit(f"{package} is not installed")
    bare = beyond = 0
    for _, document in read_pydocs(Path(spec.origin).parent, Intake()):
        name = f"{package}.{document.doc_id}"
        texts = [" ".join(one.text.split()) for one in sentences(document)]
        beyond += max(0, len(texts) - MOST - 1)
        if len(texts) < 2:  # the title is the first
            bare += 1
            continue
        for text in texts[: MOST + 1]:
            yield {"qid": name, "query": texts[1], "docid": name, "text": text, "label": 1}
    left = f"{beyond:,} sentences after each one's first {MOST}, {bare:,} names without a sentence"
    sys.stderr.write(f"{package}: left out {left}\n")


if __name__ == "__main__":
    for package in sys.argv[1:]:
        for pair in pairs(package):
            sys.stdout.write(json.dumps(pair, ensure_ascii=False) + "\n")
