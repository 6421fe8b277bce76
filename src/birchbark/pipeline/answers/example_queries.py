"""Which queries could a newcomer begin with? Titles of a few documents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np

from birchbark.index.index import Index

LOOKED_AT = 300  # documents, evenly spaced over the index
SHORTEST, LONGEST = 3, 9  # words of a title that reads like a query


def example_queries(
    index: Index, count: int = 3, on_step: Callable[[], object] = lambda: None
) -> list[str]:
    """Return up to `count` titles of three to nine words, mostly of letters.

    A title that several documents share says little about any of them. on_step: called before each
    document is read.
    """
    titles = Counter[str]()
    for doc_id in _spread(index):  # one at a time, since they may be long
        on_step()
        titles.update(" ".join(document.title.split()) for document in index.documents([doc_id]))
    examples = []
    for title, documents in titles.items():
        words = title.split()
        readable = sum(word.strip(".,:;!?()'\"").isalpha() for word in words) >= 0.8 * len(words)
        if documents == 1 and SHORTEST <= len(words) <= LONGEST and readable:
            examples.append(title)
    step = max(1, len(examples) // count)
    return examples[::step][:count]


def _spread(index: Index) -> list[str]:
    """Return the ids of documents from all over the index."""
    doc_ids: list[str] = []
    for part in index.parts:
        live = part.live_numbers()
        share = max(1, round(LOOKED_AT * len(live) / max(1, len(index))))
        chosen = np.linspace(0, len(live) - 1, min(share, len(live))).astype(int)
        doc_ids += part.doc_ids.take(live[chosen])
    return doc_ids[:LOOKED_AT]
