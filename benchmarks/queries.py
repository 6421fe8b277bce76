"""Which queries are asked? Words of the collection itself, once as they are, once after RM3.

Run as `python -m benchmarks.queries INDEX TEXT DOCUMENTS COUNT SEED OUTPUT`, INDEX being
birchbark's. The words are kept as they stand in documents, so that each engine can put them through
its own analysis.
"""

from __future__ import annotations

import json
import math
import random
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from birchbark.index.reader import Index
from birchbark.retrieve.first_stage import FirstStage, expanded_query, rank_query
from birchbark.retrieve.rm3 import RM3

FIELD = "contents"
TERMS, EXPANDED = 5, 26
LEAST_DF = 2
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


def main() -> None:
    """Write the queries, and how frequent their terms are, as JSON."""
    directory, text, documents, count, seed, output = sys.argv[1:]
    index, chance = Index(directory), random.Random(int(seed))
    asked = []
    for source in _sources(Path(text), int(documents), int(count), chance):
        query = make_query(index, source, chance)
        if query:
            asked.append(query)
    Path(output).write_text(json.dumps(asked, indent=1, ensure_ascii=False))


def _sources(text: Path, documents: int, count: int, chance: random.Random) -> list[str]:
    """Texts of `count` documents drawn from the collection, in random order."""
    wanted = set(chance.sample(range(documents), min(count, documents)))
    with text.open(encoding="utf-8") as lines:
        found = [json.loads(line)["text"] for n, line in enumerate(lines) if n in wanted]
    chance.shuffle(found)
    return found


def make_query(index: Index, source: str, chance: random.Random) -> dict[str, Any] | None:
    """Five words of `source` drawn by tf · idf, and the 26 heaviest terms of their expansion.

    None where `source` has too few terms. A drawn term is in two documents at least, as a user
    knows the word from elsewhere. `df`: share of documents with each of the terms.
    """
    words = surfaces(index, [source])
    counts = Counter(index.analyzer.terms(source))
    frequency = index.document_frequencies(tuple(words), FIELD)
    likely = {
        term: counts[term] * math.log(len(index) / frequency[term])
        for term in words
        if LEAST_DF <= frequency.get(term, 0) < len(index)
    }
    if len(likely) < TERMS:
        return None
    drawn = sorted(likely, key=lambda t: chance.random() ** (1 / likely[t]), reverse=True)[:TERMS]
    expanded = _expand(index, drawn, words)
    added = [term for word in expanded for term in index.analyzer.terms(word)]
    held = index.document_frequencies(tuple(added), FIELD)
    return {
        "five": {words[term]: 1.0 for term in drawn},
        "weighted": expanded,
        "df": [frequency[term] / len(index) for term in drawn],
        "weighted_df": [held.get(term, 0) / len(index) for term in added],
    }


def _expand(index: Index, terms: list[str], words: dict[str, str]) -> dict[str, float]:
    """Word → weight of the expanded query's heaviest terms."""
    plain = dict.fromkeys(terms, 1.0)
    model = RM3(documents=10, terms=EXPANDED)
    expanded = expanded_query(index, plain, FirstStage(expansion=model))
    best = sorted(expanded.items(), key=lambda item: (-item[1], item[0]))[:EXPANDED]
    feedback = rank_query(index, plain, FirstStage(), model.documents)
    known = surfaces(index, [d.contents for d in index.documents(feedback.doc_ids)]) | words
    return {known[term]: weight for term, weight in best if term in known}


def surfaces(index: Index, texts: Iterable[str]) -> dict[str, str]:
    """Term → a word of `texts` that it stands for, of letters or digits alone."""
    found: dict[str, str] = {}
    for text in texts:
        for token in index.analyzer.tokens(text):
            terms = index.analyzer.normalise(token)
            if len(terms) == 1 and len(token) > 1 and token.isascii() and token.isalnum():
                found.setdefault(terms[0], token)
    return found


if __name__ == "__main__":
    main()
