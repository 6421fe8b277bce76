"""How does the documentation of Python packages become training pairs?

The query is the first sentence of a docstring. The title and each of the first sentences are
relevant texts. Pairs are written to standard output as JSON lines; standard error reports what was
left out. late-pool.sh runs this script.
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

MAX_SENTENCES = 10  # per docstring; the parameter lists that follow are long and repetitive


def pairs(package: str) -> Iterator[dict[str, str | int]]:
    """Yield the pairs of a package, all with label 1."""
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        raise SystemExit(f"{package} is not installed")
    undescribed = omitted = 0
    for _, document in read_pydocs(Path(spec.origin).parent, Intake()):
        name = f"{package}.{document.doc_id}"
        texts = [" ".join(segment.text.split()) for segment in sentences(document)]
        omitted += max(0, len(texts) - MAX_SENTENCES - 1)
        if len(texts) < 2:  # the first text is the title
            undescribed += 1
            continue
        for text in texts[: MAX_SENTENCES + 1]:
            yield {"qid": name, "query": texts[1], "docid": name, "text": text, "label": 1}
    sys.stderr.write(
        f"{package}: left out {omitted:,} sentences after the first {MAX_SENTENCES} of each, "
        f"and {undescribed:,} names without a description\n"
    )


if __name__ == "__main__":
    for package in sys.argv[1:]:
        for pair in pairs(package):
            sys.stdout.write(json.dumps(pair, ensure_ascii=False) + "\n")
