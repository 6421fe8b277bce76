"""How are the slides of PowerPoint and OpenDocument presentations read, with their notes?

Pandoc reads no .odp, and of .pptx neither grouped shapes nor charts and diagrams.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterator, Mapping

from birchbark.collection.file_readers.file import Fields, File, stated_title
from birchbark.collection.file_readers.slide_text import PageText, attributes_of, text_of
from birchbark.collection.file_readers.xml_parts import xml_parts
from birchbark.collection.parsing.intake import Intake
from birchbark.errors import InputError
from birchbark.records import PAGE_BREAK

PRESENTATION = "ppt/presentation.xml"
RELATION, NO_RELATIONS = "Relationship", b"<none/>"
RELATED_TEXT = (
    "/diagramData",
    "/chart",
    "/notesSlide",
)  # relations of a slide to what has its text
MOST_SLIDES = 2_000

Parts = Mapping[str, bytes]


def read_pptx(file: File) -> Fields:
    """Return the title and the text of slides, separated by form feeds, each with its notes.

    Grouped shapes, tables, the words of charts and diagrams, and hidden slides are read; comments
    are not. Raises InputError for a damaged file, and for one that is too large.
    """

    def slides(parts: Parts) -> list[str]:
        return list(_powerpoint_slides(parts, file.intake))

    return _presentation(file, "docProps/core.xml", slides)


def read_odp(file: File) -> Fields:
    """Return the same for an OpenDocument presentation."""

    def slides(parts: Parts) -> list[str]:
        return PageText.read_pages(_part(parts, "content.xml"))

    return _presentation(file, "meta.xml", slides)


def _presentation(file: File, about: str, read_slides: Callable[[Parts], list[str]]) -> Fields:
    """Return title and text. about: the part that has the title, if there is one.

    Without a title there, the first line of the first slide is taken out of the text.
    """
    parts = xml_parts(file.raw)
    slides = read_slides(parts)
    if len(slides) > MOST_SLIDES:
        file.intake.note(f"presentation not read after {MOST_SLIDES:,} slides")
        del slides[MOST_SLIDES:]
    title = stated_title(text_of(parts[about], "title")) if about in parts else ""
    if not title:
        first = next((number for number, slide in enumerate(slides) if slide), None)
        if first is not None:
            title, _, slides[first] = slides[first].partition("\n")
    text = f"\n{PAGE_BREAK}".join(slide.strip() for slide in slides)
    return {"title": title, "text": text.rstrip()}


def _part(parts: Parts, name: str) -> bytes:
    """Return a part of a presentation; InputError if it is missing."""
    if name not in parts:
        raise InputError("the presentation lacks a part", wanted=name)
    return parts[name]


def _powerpoint_slides(parts: Parts, intake: Intake) -> Iterator[str]:
    """Yield the text of the first slides, one more than MOST_SLIDES, in the order of the show."""
    targets = _relations(parts, PRESENTATION)
    # Of the attributes, the one without a namespace is the id of the slide, the other that of its
    # relation, which the entries of a list of sections lack.
    shown = [
        value
        for attributes in attributes_of(_part(parts, PRESENTATION), "sldId")
        for name, value in attributes.items()
        if name.endswith("relationships id")
    ]
    for relation in shown[: MOST_SLIDES + 1]:
        if relation not in targets:
            raise InputError("the presentation lacks a slide that it lists", found=relation)
        slide = targets[relation][1]
        related = _relations(parts, slide).values()
        others = sorted(target for kind, target in related if kind in RELATED_TEXT)
        for _ in {*others}.difference(parts):
            intake.note("notes or chart of a slide missing")
        read = [_part(parts, slide), *(parts[name] for name in others if name in parts)]
        yield "\n\n".join(filter(None, map(PageText.read_page, read)))


def _relations(parts: Parts, part: str) -> dict[str, tuple[str, str]]:
    """Return the id of each relation of a part to another → its kind, and the other's name."""
    folder, name = posixpath.split(part)
    found = {}
    for relation in attributes_of(parts.get(f"{folder}/_rels/{name}.rels", NO_RELATIONS), RELATION):
        kind = "/" + relation.get("Type", "").rpartition("/")[2]
        target = posixpath.join("/", folder, relation.get("Target", ""))
        found[relation.get("Id", "")] = kind, posixpath.normpath(target).lstrip("/")
    return found
