"""Of which words is a joined word made: parse_http_header, config.yaml, camelCase, covid19?"""

from __future__ import annotations

import re

_LOWER, _UPPER = "a-z\xdf-\xf6\xf8-\xff", "A-Z\xc0-\xd6\xd8-\xde"
_JOINED = re.compile("_+|(?<![0-9])[.:]+|[.:]+(?![0-9])")  # but not within 3.14
_INSIDE = re.compile(
    f"(?<=[{_LOWER}0-9])(?=[{_UPPER}])"  # camel Case
    f"|(?<=[{_UPPER}])(?=[{_UPPER}][{_LOWER}]{{2}})"  # HTTP Server; but not within RNAs
    f"|(?<=[{_LOWER}{_UPPER}])(?=[0-9])|(?<=[0-9])(?=[{_LOWER}])"  # covid 19, 20 mg
)


def parts(word: str) -> list[str]:
    """Return the parts of a joined word that have at least two characters.

    Of capitals and small letters inside a word, those of Latin-1 count. Returns an empty list for a
    word that is not joined.
    """
    rest = word[1:]
    if word[0] != "_" and rest.isalpha() and rest.islower():  # most words, told quickly
        return []
    found = [part for piece in _JOINED.split(word) for part in _INSIDE.split(piece)]
    return [part for part in found if len(part) > 1] if len(found) > 1 else []
