"""How are the slides of PowerPoint and OpenDocument presentations read, with their notes?

Pandoc reads no .odp, and of .pptx neither grouped shapes nor charts and diagrams.
"""

from __future__ import annotations

import io
import posixpath
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator

from birchbark.collection.files.file import Fields, File
from birchbark.collection.files.pdf import PAGE_BREAK
from birchbark.collection.files.slide_text import PageText, attributes_of, text_of
from birchbark.errors import InputError, first_line

MOST_BYTES = 100_000_000  # of XML in one file, unpacked
PRESENTATION = "ppt/presentation.xml"
SHOWN_WITH = ("/diagramData", "/chart", "/notesSlide")  # relations of a slide to what has its text
NO_TITLES = ("powerpoint presentation", "untitled")  # that programs write for lack of a title
DAMAGE = (  # what zipfile raises
    zipfile.BadZipFile,
    zlib.error,
    KeyError,
    NotImplementedError,
    RuntimeError,
    EOFError,
    OSError,
    ValueError,
)

ReadPart = Callable[[str], bytes]


def read_pptx(file: File) -> Fields:
    """Return the title and the text of slides, separated by form feeds, each with its notes.

    Grouped shapes, tables, the words of charts and diagrams, and hidden slides are read; comments
    are not. Raises InputError for a damaged file, and for one that is too large.
    """
    return _presentation(file, "docProps/core.xml", _powerpoint_slides)


def read_odp(file: File) -> Fields:
    """Return the same for an OpenDocument presentation."""
    return _presentation(file, "meta.xml", lambda read: PageText.read_pages(read("content.xml")))


def _presentation(
    file: File, about: str, read_slides: Callable[[ReadPart], Iterator[str] | list[str]]
) -> Fields:
    """Return title and text. about: the part that has the title, if there is one.

    Without a title there, the first line of the first slide is taken out of the text.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(file.raw)) as archive:
            read = _limited(archive)
            slides = list(read_slides(read))
            title = text_of(read(about), "title") if about in archive.namelist() else ""
    except DAMAGE as error:
        raise InputError(f"the presentation cannot be read: {first_line(error)}") from None
    if not title or title.lower() in NO_TITLES:
        first = next((number for number, slide in enumerate(slides) if slide), None)
        if first is not None:
            title, _, slides[first] = slides[first].partition("\n")
    text = f"\n{PAGE_BREAK}".join(slide.strip() for slide in slides)
    return {"title": title, "text": text.rstrip()}


def _limited(archive: zipfile.ZipFile) -> ReadPart:
    """Return a function that reads parts of an archive, up to MOST_BYTES in all."""
    left = MOST_BYTES

    def read(name: str) -> bytes:
        nonlocal left
        with archive.open(name) as stream:
            raw = stream.read(left + 1)
        left -= len(raw)
        if left < 0:
            wanted = f"at most {MOST_BYTES:,} bytes, unpacked"
            raise InputError("the presentation is too large for one document", wanted=wanted)
        return raw

    return read


def _powerpoint_slides(read: ReadPart) -> Iterator[str]:
    """Yield the text of each slide, in the order in which they are shown."""
    targets = _relations(read, PRESENTATION)
    for shown in attributes_of(read(PRESENTATION), "sldId"):
        # the attribute without a namespace is the id of the slide, the other that of its relation
        relation = next((v for name, v in shown.items() if name.endswith("relationships id")), "")
        if relation not in targets:
            raise InputError("the presentation lacks a slide that it lists", found=relation)
        slide = targets[relation][1]
        others = [target for kind, target in _relations(read, slide).values() if kind in SHOWN_WITH]
        texts = [PageText.read_page(read(part)) for part in (slide, *sorted(others))]
        yield "\n\n".join(filter(None, texts))


def _relations(read: ReadPart, part: str) -> dict[str, tuple[str, str]]:
    """Return the id of each relation of a part to another → its kind, and the other's name."""
    folder, name = posixpath.split(part)
    try:
        raw = read(f"{folder}/_rels/{name}.rels")
    except KeyError:  # a part without relations
        return {}
    found = {}
    for relation in attributes_of(raw, "Relationship"):
        kind = re.sub(r".*/", "/", relation.get("Type", ""))
        target = posixpath.join("/", folder, relation.get("Target", ""))
        found[relation.get("Id", "")] = kind, posixpath.normpath(target).lstrip("/")
    return found
