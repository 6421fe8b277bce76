"""Which settings of an Org file make pandoc leave out sections, drawers and code?

Those of exports. They are changed so that all of the file is read, except its comments.
"""

from __future__ import annotations

import re

FIRST = b"#+OPTIONS: arch:t d:t\n#+EXCLUDE_TAGS:\n"  # instead of pandoc's defaults
_FLAGS = re.IGNORECASE | re.MULTILINE
_OPTIONS = re.compile(rb"^([ \t]*#\+OPTIONS:[^\r\n]*)", _FLAGS)
_TAGS = re.compile(rb"^[ \t]*#\+(?:EXCLUDE|SELECT)_TAGS:", _FLAGS)
_EXPORTS = re.compile(rb"^([ \t]*#\+.*:exports[ \t]+)\w+", _FLAGS)


def all_exported(raw: bytes) -> bytes:
    """Return the file with settings that export all sections, drawers and code.

    raw: without a byte order mark.
    """
    raw = _OPTIONS.sub(rb"\1 arch:t d:t", raw)  # of two such options, the last one counts
    raw = _TAGS.sub(b"# ", raw)  # a comment
    return FIRST + _EXPORTS.sub(rb"\1both", raw)
