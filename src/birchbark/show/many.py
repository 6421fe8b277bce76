"""How is a number of things said: 1 document, 2 documents, 1,000 queries?"""

from __future__ import annotations


def many(count: int, noun: str) -> str:
    """Return the count with the noun, in the plural unless the count is 1."""
    plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{count:,} {noun if count == 1 else plural}"
