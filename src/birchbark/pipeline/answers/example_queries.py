"""Which queries could a newcomer begin with? Titles of a few documents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np

from birchbark.index.index import Index

LOOKED_AT = 300  # documents, evenly spaced over the index
SHORTEST, LONGEST = 3, 9  # words of a title that reads like a query
LETTERS = 0.8  # of its words consist of letters


def example_queries(
    index: Index, count: int = 3, on_step: Callable[[], object] = lambda: None
) -> list[str]:
    """Return up to `count` titles that read like queries.

    A title that several documents share says little about any of them. on_step: called before each
    document is read.
    """
    titles = Counter[str]()
    for doc_id in spread_ids(index, LOOKED_AT):  # one at a time, since they may be long
        on_step()
        titles.update(" ".join(document.title.split()) for document in index.documents([doc_id]))
    examples = [title for title, n in titles.items() if n == 1 and reads_like_a_query(title)]
    step = max(1, len(examples) // count)
    return examples[::step][:count]


def reads_like_a_query(text: str) -> bool:
    """Whether a text has three to nine words, mostly of letters."""
    return SHORTEST <= len(text.split()) <= LONGEST and is_prose(text)


def is_prose(text: str) -> bool:
    """Whether most words of a text consist of letters."""
    words = text.split()
    return sum(word.strip(".,:;!?()'\"").isalpha() for word in words) >= LETTERS * len(words)


def spread_ids(index: Index, count: int) -> list[str]:
    """Return the ids of up to `count` documents from all over the index."""
    chosen = np.linspace(0, len(index) - 1, min(count, len(index))).astype(int)
    doc_ids: list[str] = []
    first = 0  # document of a part
    for part in index.parts:
        live = part.live_numbers()
        of_part = chosen[(chosen >= first) & (chosen < first + len(live))] - first
        doc_ids += part.doc_ids.take(live[of_part])
        first += len(live)
    return doc_ids
