"""How are articles of the New York Times Annotated Corpus (NITF, one XML file each) Documents?"""

from __future__ import annotations

import re
import tarfile
import zlib
from collections.abc import Iterator
from pathlib import Path

from birchbark.artifact import files_in
from birchbark.collection.intake import Intake
from birchbark.collection.lines import decode, opened
from birchbark.collection.markup import plain_text
from birchbark.errors import InputError
from birchbark.records import Document

ARCHIVES = (".tgz", ".tar.gz", ".tar")

_ID = re.compile(r"<doc-id\b[^>]*\bid-string\s*=\s*[\"']([^\"']*)[\"']")
_HEADLINE = re.compile(r"<hl1\b[^>]*>(.*?)</hl1\s*>", re.S)
_ABSTRACT = re.compile(r"<abstract\b[^>]*>(.*?)</abstract\s*>", re.S)
_BODY = re.compile(r"<block\b[^>]*\bclass\s*=\s*[\"']full_text[\"'][^>]*>(.*?)</block\s*>", re.S)


def read_nyt(path: Path, intake: Intake) -> Iterator[tuple[str, Document]]:
    """Documents of an XML file, of an archive of them (.tgz, .tar), or of all below a folder.

    The order is that of the names, within an archive its own. The title is the headline; the text
    is the abstract, where there is one, and the full text. Other files are noted, not read.
    """
    for file in files_in(path):
        try:
            for place, raw in _articles(file, intake):
                try:
                    yield place, parse_article(decode(raw, intake.encoding))
                except InputError as error:
                    intake.bad(error.at(place))
        except InputError as error:
            if not intake.skip_bad:
                raise error.at(str(file)) from None
            intake.bad(error.at(str(file)))


def _articles(file: Path, intake: Intake) -> Iterator[tuple[str, bytes]]:
    """Place and bytes of each article in `file`."""
    name = file.name.lower()
    if name.endswith(ARCHIVES):
        yield from _members(file, intake)
    elif name.endswith(".xml"):
        with opened(file) as stream:
            yield str(file), stream.read()
    else:
        intake.note(f"file of another kind not read: {file.suffix or 'no suffix'}")


def _members(path: Path, intake: Intake) -> Iterator[tuple[str, bytes]]:
    """The XML files in an archive, read from its beginning to its end."""
    try:
        with tarfile.open(path, "r|*") as archive:
            for member in archive:
                stream = archive.extractfile(member) if member.isfile() else None
                if stream and member.name.lower().endswith(".xml"):
                    yield f"{path}: {member.name}", stream.read()
                elif not member.isdir():
                    intake.note("file of another kind, or link, in an archive not read")
    except (tarfile.TarError, EOFError, zlib.error, OSError) as broken:
        raise InputError(f"broken archive: {broken}", where=str(path)) from None


def parse_article(nitf: str) -> Document:
    """The Document in one article."""
    number = _ID.search(nitf)
    if number is None or not number[1]:
        raise InputError("article has no number", wanted='<doc-id id-string="…"/>')
    headline, abstract = _HEADLINE.search(nitf), _ABSTRACT.search(nitf)
    parts = [match[1] for match in (abstract, *_BODY.finditer(nitf)) if match]
    title = " ".join(plain_text(headline[1])[1].split()) if headline else ""
    text = "\n\n".join(filter(None, (plain_text(part)[1] for part in parts)))
    return Document(number[1], {"title": title, "text": text})
