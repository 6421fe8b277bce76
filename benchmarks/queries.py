"""Which queries are timed: words drawn from the collection, without and with RM3 expansion?

Run as `python -m benchmarks.queries INDEX TEXT DOCUMENTS COUNT SEED OUTPUT`, where INDEX is
birchbark's index. Words are written as they occur in documents, so that each engine can analyze
them itself.
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

from birchbark.index.index import Index
from birchbark.retrieve.first_stage import FirstStage, expanded_query, rank_query
from birchbark.retrieve.rm3 import RM3

FIELD = "contents"
TERMS, EXPANDED = 5, 26
LEAST_DF = 2
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


def main() -> None:
    """Write the queries, with the document frequencies of their terms, as JSON."""
    directory, text, documents, count, seed, output = sys.argv[1:]
    index, rng = Index(directory), random.Random(int(seed))
    queries = []
    for source in _sources(Path(text), int(documents), int(count), rng):
        query = make_query(index, source, rng)
        if query:
            queries.append(query)
    Path(output).write_text(json.dumps(queries, indent=1, ensure_ascii=False))


def _sources(text: Path, documents: int, count: int, rng: random.Random) -> list[str]:
    """Draw the texts of `count` documents, in random order."""
    wanted = set(rng.sample(range(documents), min(count, documents)))
    with text.open(encoding="utf-8") as lines:
        texts = [json.loads(line)["text"] for n, line in enumerate(lines) if n in wanted]
    rng.shuffle(texts)
    return texts


def make_query(index: Index, source: str, rng: random.Random) -> dict[str, Any] | None:
    """Draw five words of `source` by tf · idf; add the 26 heaviest terms of their expansion.

    Drawn terms occur in at least two documents. `df` in the result is the share of documents that
    contain each term. Returns None if `source` has too few terms.
    """
    words = surfaces(index, [source])
    counts = Counter(index.analyzer.terms(source))
    frequency = index.document_frequencies(tuple(words), FIELD)
    tf_idf = {
        term: counts[term] * math.log(len(index) / frequency[term])
        for term in words
        if LEAST_DF <= frequency.get(term, 0) < len(index)
    }
    if len(tf_idf) < TERMS:
        return None
    drawn = sorted(tf_idf, key=lambda t: rng.random() ** (1 / tf_idf[t]), reverse=True)[:TERMS]
    expanded = _expand(index, drawn, words)
    added = [term for word in expanded for term in index.analyzer.terms(word)]
    expanded_df = index.document_frequencies(tuple(added), FIELD)
    return {
        "five": {words[term]: 1.0 for term in drawn},
        "weighted": expanded,
        "df": [frequency[term] / len(index) for term in drawn],
        "weighted_df": [expanded_df.get(term, 0) / len(index) for term in added],
    }


def _expand(index: Index, terms: list[str], words: dict[str, str]) -> dict[str, float]:
    """Return word → weight for the heaviest terms of the expanded query."""
    plain = dict.fromkeys(terms, 1.0)
    model = RM3(documents=10, terms=EXPANDED)
    expanded = expanded_query(index, plain, FirstStage(expansion=model))
    best = sorted(expanded.items(), key=lambda item: (-item[1], item[0]))[:EXPANDED]
    feedback = rank_query(index, plain, FirstStage(), model.documents)
    known = surfaces(index, [d.contents for d in index.documents(feedback.doc_ids)]) | words
    return {known[term]: weight for term, weight in best if term in known}


def surfaces(index: Index, texts: Iterable[str]) -> dict[str, str]:
    """Return term → a word of `texts` with this term, of ASCII letters and digits only."""
    words: dict[str, str] = {}
    for text in texts:
        for token in index.analyzer.tokens(text):
            terms = index.analyzer.normalise(token)
            if len(terms) == 1 and len(token) > 1 and token.isascii() and token.isalnum():
                words.setdefault(terms[0], token)
    return words


if __name__ == "__main__":
    main()
