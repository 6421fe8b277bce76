"""Does the synthetic text resemble a real collection in vocabulary, frequencies and lengths?

    python -m benchmarks.shape bench-work/text-1000000.jsonl articles.jsonl …

Each file is truncated to the number of documents in the shortest.
"""

from __future__ import annotations

import json
from collections import Counter
from functools import cache
from itertools import islice, pairwise
from pathlib import Path

import click

from birchbark.text.analyzer import analyzer

BANDS = (0, 0.0005, 0.002, 0.01, 0.05, 0.2, 1.01)


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True))
@click.option("--documents", type=int, help="Documents per file.  [default: as in the shortest]")
def main(files: tuple[Path, ...], documents: int | None) -> None:
    """Compare collections."""
    limit = documents or min(map(_lines, files))
    bands = " | ".join(f"{100 * low:g}–{100 * min(1, high):g} %" for low, high in _bands())
    click.echo(f"First {limit:,} documents. The bands are the share of all postings that belong to")
    click.echo("terms with a document frequency in that range.\n")
    click.echo(f"| text | tokens a document | distinct terms | once | most frequent | {bands} |")
    click.echo("| --- " + "| ---: " * (len(BANDS) + 3) + "|")
    for path in files:
        click.echo(f"| {path.parent.name}/{path.name} | {' | '.join(shape(path, limit))} |")


def shape(path: Path, documents: int) -> list[str]:
    """Return the cells of one row of the table."""
    frequency: Counter[str] = Counter()
    english, tokens = analyzer("english"), 0
    normalise = cache(english.normalise)
    with path.open(encoding="utf-8") as lines:
        for line in islice(lines, documents):
            values = json.loads(line)
            text = f"{values.get('title') or ''}\n{values['text']}"
            terms = [term for token in english.tokens(text) for term in normalise(token)]
            frequency.update(set(terms))
            tokens += len(terms)
    frequencies = list(frequency.values())
    postings = sum(frequencies)
    shares = [
        sum(df for df in frequencies if low <= df / documents < high) / postings
        for low, high in _bands()
    ]
    return [
        f"{tokens / documents:.0f}",
        f"{len(frequencies):,}",
        f"{100 * sum(df == 1 for df in frequencies) / len(frequencies):.0f} %",
        f"{100 * max(frequencies) / documents:.0f} %",
        *(f"{100 * share:.0f} %" for share in shares),
    ]


def _bands() -> list[tuple[float, float]]:
    return list(pairwise(BANDS))


def _lines(path: Path) -> int:
    with path.open("rb") as lines:
        return sum(1 for _ in lines)


if __name__ == "__main__":
    main()
