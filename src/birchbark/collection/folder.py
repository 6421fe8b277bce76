"""How does a folder of .txt, .md and .html files become Documents, one a file?"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from birchbark.collection.intake import Intake
from birchbark.collection.lines import decoded_lines
from birchbark.collection.markup import plain_text
from birchbark.errors import InputError
from birchbark.records import Document

SUFFIXES = {".txt", ".md", ".markdown", ".rst", ".html", ".htm", ".xhtml"}
_HEADING = re.compile(r" {0,3}#{1,6}[ \t]+(.+?)(?:[ \t]+#+)?[ \t]*")


def read_folder(path: Path, intake: Intake) -> Iterator[tuple[str, Document]]:
    """One Document for each text file below `path` (`.gz` as well), in the order of the names.

    The doc_id is the path below the folder, with white space written as %20 (runs and qrels are
    separated by white space). The title of HTML is its <title>, of Markdown its first heading;
    plain text has none. Files of other kinds and hidden files are noted, not read.
    """
    if not path.is_dir():
        raise InputError("is a file", where=str(path), wanted="a folder")
    for file in sorted(path.rglob("*")):
        relative = file.relative_to(path)
        if not file.is_file():
            if file.is_symlink() or not file.is_dir():
                intake.note("link to a folder or to nothing, or special file, not read")
            continue
        suffix = Path(file.stem).suffix if file.suffix == ".gz" else file.suffix
        if any(part.startswith(".") for part in relative.parts):
            intake.note("hidden file not read")
        elif suffix.lower() not in SUFFIXES:
            intake.note(f"file of another kind not read: {file.suffix or 'no suffix'}")
        else:
            try:
                text = "\n".join(decoded_lines(file, intake.encoding))
            except InputError as error:
                intake.bad(error)
                continue
            doc_id = re.sub(r"\s", "%20", relative.as_posix())
            yield str(file), Document(doc_id, _fields(suffix.lower(), text))


def _fields(suffix: str, text: str) -> dict[str, str]:
    if suffix in {".html", ".htm", ".xhtml"}:
        title, text = plain_text(text)
        return {"title": title, "text": text}
    if suffix in {".md", ".markdown"}:
        return _markdown(text)
    return {"title": "", "text": text}


def _markdown(text: str) -> dict[str, str]:
    """The first heading outside of fenced code as title, everything else as text."""
    lines = text.split("\n")
    fenced = False
    for number, line in enumerate(lines):
        fenced ^= line.lstrip().startswith(("```", "~~~"))
        heading = _HEADING.fullmatch(line)
        if heading and not fenced:
            rest = lines[:number] + lines[number + 1 :]
            return {"title": heading[1], "text": "\n".join(rest).lstrip("\n")}
    return {"title": "", "text": text}
