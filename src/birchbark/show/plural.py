"""How is a number of things said: 1 document, 2 documents, 1,000 queries?"""

from __future__ import annotations


def plural(count: int, noun: str) -> str:
    """Return the count with the noun, in the plural unless the count is 1."""
    several = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{count:,} {noun if count == 1 else several}"
