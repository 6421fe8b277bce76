"""Where do the sections of a file's document begin? At headings, or functions and classes.

Headings of types that are read as markup are stated by their readers.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import accumulate
from pathlib import Path

from birchbark.collection.file_readers.functions import function_starts, has_grammar
from birchbark.collection.parsing.intake import Intake
from birchbark.collection.parsing.lines import uncompressed_name
from birchbark.process_limits import result_of_child
from birchbark.records import Document, stated_sections
from birchbark.text.headings import heading_starts, markdown_headings
from birchbark.text.line_breaks import with_line_feeds

MARKDOWN, RESTRUCTURED_TEXT = "markdown", "restructuredtext"
MOST_SECONDS = 3  # of processor time, to find the functions of a file


def with_section_starts(document: Document, intake: Intake) -> Document:
    """Return a document of a file with `stated_sections`, if it has sections.

    Source code whose functions cannot be found is noted, and has none. Only for a process with a
    single thread, since hostile code is parsed in a copy of it.
    """
    kind, text = document.fields.get("type"), document.fields.get("text", "")
    starts: list[int] = []
    if kind in (MARKDOWN, RESTRUCTURED_TEXT):
        starts = list(_headings(text, kind))
    elif kind == "code" and has_grammar(suffix := _suffix(document.doc_id)):
        found = result_of_child(
            lambda: json.dumps(function_starts(text, suffix)).encode(), MOST_SECONDS
        )
        if found is None:
            intake.note("source code split by lines, since its functions cannot be found")
        starts = json.loads(found or b"[]")
    if not starts:
        return document
    return replace(document, fields={**document.fields, **stated_sections(starts)})


def _headings(text: str, kind: str) -> Iterator[int]:
    """Yield where headings begin; in reStructuredText, some have a line above, too."""
    unix = with_line_feeds(text)
    if kind == MARKDOWN:
        lines = unix.split("\n")
        offsets = [0, *accumulate(len(line) + 1 for line in lines)]
        yield from (offsets[heading.start] for heading in markdown_headings(lines))
        return
    for start in heading_starts(unix, markdown=False):
        above = unix.rfind("\n", 0, max(0, start - 1)) + 1
        underline = unix.find("\n", start) + 1
        line = unix[above:start].strip()
        yield above if line and unix.startswith(line, underline) else start


def _suffix(doc_id: str) -> str:
    """Return the suffix of a file, of a compressed one that before it."""
    return Path(uncompressed_name(Path(doc_id))).suffix.lower()
