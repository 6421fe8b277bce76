"""How is a folder of .txt, .md and .html files read as Documents, one per file?"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from birchbark.collection.intake import Intake
from birchbark.collection.markup import plain_text
from birchbark.collection.text_file import read_text
from birchbark.errors import InputError
from birchbark.records import Document

MARKUP = {".html", ".htm", ".xhtml"}
SUFFIXES = {".txt", ".md", ".markdown", ".rst"} | MARKUP
_HEADING = re.compile(r" {0,3}#{1,6}[ \t]+(.+?)(?:[ \t]+#+)?[ \t]*")


def read_folder(path: Path, intake: Intake) -> Iterator[tuple[str, Document]]:
    """Yield location and Document of each text file below `path`, in order of path.

    Files may be gzipped. For their encoding see `read_text`. The doc_id is the path below the
    folder, with white space replaced by %20, since the columns of runs and qrels are separated by
    white space. The title of an HTML file is its <title>, that of a Markdown file its first
    heading; plain text has no title. Hidden files and files of other types are noted but not read.
    """
    if not path.is_dir():
        raise InputError("is a file", where=str(path), wanted="a folder")
    for file in sorted(path.rglob("*")):
        relative = file.relative_to(path)
        if not file.is_file():
            if file.is_symlink() or not file.is_dir():
                intake.note("link to a folder, broken link or special file not read")
            continue
        suffix = Path(file.stem).suffix if file.suffix == ".gz" else file.suffix
        if any(part.startswith(".") for part in relative.parts):
            intake.note("hidden file not read")
        elif suffix.lower() not in SUFFIXES:
            intake.note(f"file of another type not read: {file.suffix or 'no suffix'}")
        else:
            try:
                text = read_text(file, intake.encoding, markup=suffix.lower() in MARKUP)
            except InputError as error:
                intake.bad(error)
                continue
            doc_id = re.sub(r"\s", "%20", relative.as_posix())
            yield str(file), Document(doc_id, _fields(suffix.lower(), text))


def _fields(suffix: str, text: str) -> dict[str, str]:
    if suffix in MARKUP:
        title, text = plain_text(text)
        return {"title": title, "text": text}
    if suffix in {".md", ".markdown"}:
        return _markdown(text)
    return {"title": "", "text": text}


def _markdown(text: str) -> dict[str, str]:
    """Return the first heading outside fenced code as the title, and the rest as the text."""
    lines = text.split("\n")
    fenced = False
    for number, line in enumerate(lines):
        fenced ^= line.lstrip().startswith(("```", "~~~"))
        heading = _HEADING.fullmatch(line)
        if heading and not fenced:
            rest = lines[:number] + lines[number + 1 :]
            return {"title": heading[1], "text": "\n".join(rest).lstrip("\n")}
    return {"title": "", "text": text}
