"""In which language is a text written?"""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec

SAMPLE = 2000  # characters from which the language is recognised
FEWEST_LETTERS = 60  # in these; fewer say too little


def language_of(text: str) -> str:
    """Return the language of a text as a code such as `en` (ISO 639).

    Returns an empty string for a text with fewer than 60 letters at its beginning, and if the extra
    `files` is not installed.
    """
    sample = text[:SAMPLE]
    if sum(map(str.isalpha, sample)) < FEWEST_LETTERS or not _installed():
        return ""
    import py3langid

    language: str = py3langid.classify(sample)[0]
    return language


@cache
def _installed() -> bool:
    return find_spec("py3langid") is not None
