"""Of which words is a joined word made, such as parse_http_header, config.yaml or camelCase?"""

from __future__ import annotations

import re

_LOWER, _UPPER = "a-z0-9\xdf-\xf6\xf8-\xff", "A-Z\xc0-\xd6\xd8-\xde"
_JOINED = re.compile("[_.:]+")
# before Case in camelCase, and before Server in HTTPServer; but not within RNAs
_CAPITAL = re.compile(f"(?<=[{_LOWER}])(?=[{_UPPER}])|(?<=[{_UPPER}])(?=[{_UPPER}][{_LOWER}]{{2}})")


def parts(word: str) -> list[str]:
    """Return the parts of a joined word that have at least two characters and are no numbers.

    Returns an empty list for a word that is not joined.
    """
    rest = word[1:]
    if rest.isalnum() and rest.islower():  # most words, told quickly
        return []
    found = [part for piece in _JOINED.split(word) for part in _CAPITAL.split(piece)]
    return [p for p in found if len(p) > 1 and not p.isdecimal()] if len(found) > 1 else []
