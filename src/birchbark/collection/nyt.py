"""How is the New York Times Annotated Corpus (NITF, one XML file per article) read as Documents?

`ir_datasets:nyt` reads the same corpus, but this reader produces different texts:
- It puts the abstract before the full text; ir_datasets leaves the abstract out.
- It reads all blocks of full text; ir_datasets reads only the first.
- It separates paragraphs by a blank line. ir_datasets preserves the white space of the XML, so
  words are joined where there is none.
Ids and titles are the same. This reader also accepts single archives, folders and XML files;
ir_datasets needs the original archive of the complete corpus.
"""

from __future__ import annotations

import re
import tarfile
import zlib
from collections.abc import Iterator
from pathlib import Path

from birchbark.collection.files.walk import chosen_files
from birchbark.collection.parsing.elements import attribute, elements, first_element
from birchbark.collection.parsing.intake import Intake
from birchbark.collection.parsing.lines import (
    OpenFile,
    decode,
    parse_records,
    read_decompressed,
    read_limited,
)
from birchbark.collection.parsing.markup import plain_text
from birchbark.errors import InputError
from birchbark.records import Document

ARCHIVES = (".tgz", ".tar.gz", ".tar")
_ID = re.compile(r"<doc-id(\s[^<>]*)>")


def read_nyt(path: Path, intake: Intake) -> Iterator[tuple[str, Document]]:
    """Yield location and Document of each article.

    The title is the headline; the text is the abstract, if there is one, and the full text. Files
    of other types are noted but not read.

    path: an XML file, an archive of XML files (.tgz, .tar.gz, .tar), or a folder. The files of a
    folder are read in order of path, except hidden ones and those that the intake excludes; the
    files of an archive in archive order.
    """
    for file, open_file in chosen_files(path, intake):
        try:
            yield from parse_records(
                _articles(file, open_file, intake),
                lambda raw: parse_article(decode(raw, intake.encoding)),
                intake,
            )
        except InputError as error:
            intake.bad(error.at(str(file)))


def _articles(file: Path, open_file: OpenFile, intake: Intake) -> Iterator[tuple[str, bytes]]:
    """Yield the location and the bytes of each article in `file`."""
    name = file.name.lower()
    if name.endswith(ARCHIVES):
        yield from _members(file, open_file, intake)
    elif name.endswith(".xml"):
        yield str(file), read_decompressed(file, open_file)
    else:
        intake.note(f"file of another type not read: {file.suffix or 'no suffix'}")


def _members(path: Path, open_file: OpenFile, intake: Intake) -> Iterator[tuple[str, bytes]]:
    """Yield the location and the bytes of each XML file in an archive, in one pass."""
    try:
        with open_file(path) as file, tarfile.open(fileobj=file, mode="r|*") as archive:
            for member in archive:
                stream = archive.extractfile(member) if member.isfile() else None
                if stream and member.name.lower().endswith(".xml"):
                    try:
                        raw = read_limited(stream, path / member.name)
                    except InputError as error:
                        intake.bad(error)
                        continue
                    yield f"{path}: {member.name}", raw
                elif not member.isdir():
                    intake.note("file of another type, or link, in an archive not read")
    except (tarfile.TarError, EOFError, zlib.error, OSError) as error:
        raise InputError(f"broken archive: {error}", where=str(path)) from None


def parse_article(nitf: str) -> Document:
    """Return the Document in the NITF of one article."""
    number = _ID.search(nitf)
    doc_id = attribute(number[1], "id-string") if number else None
    if not doc_id:
        raise InputError("article has no id", wanted='<doc-id id-string="…"/>')
    headline, abstract = first_element(nitf, "hl1"), first_element(nitf, "abstract")
    blocks = elements(nitf, "block")
    full = (block for block in blocks if attribute(block.attributes, "class") == "full_text")
    parts = [part.inner for part in (abstract, *full) if part]
    title = " ".join(plain_text(headline.inner)[1].split()) if headline else ""
    text = "\n\n".join(filter(None, (plain_text(part)[1] for part in parts)))
    return Document(doc_id, {"title": title, "text": text})
