"""How are title and text told apart in plain text, Markdown, reStructuredText and HTML?"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape

from birchbark.collection.file_readers.file import Fields, File
from birchbark.collection.file_readers.front_matter import split_front_matter
from birchbark.collection.parsing.markup import page_text
from birchbark.errors import InputError
from birchbark.records import stated_sections
from birchbark.text.headings import fence_after

MOST_PER_LINE, SHORT = 300, 10_000
# Fields that are text as well.
ABOUT = ("subtitle", "description", "summary", "abstract", "tags", "keywords", "aliases")
_DATA = re.compile("[A-Za-z0-9+/=]{200,}")
_ENTITY = re.compile(r"&(?:[A-Za-z][A-Za-z0-9]{1,30}|#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6});")
_IMAGE = re.compile(r"!\[([^\[\]]*)\]\([^()]*\)")
_LINK = re.compile(r"\[([^\[\]]*)\]\([^()]*\)")
_HEADING = re.compile(r" {0,3}#{1,6}[ \t]++(.+)")
_SETEXT = re.compile(r" {0,3}(?:={2,}|-{3,})[ \t]*")
_SETEXT_TITLE = re.compile(r" {0,3}(?![-+*>#|=]|\d+[.)]|```|~~~)\S")
# Other than white space and the escape character, with which programs colour their output.
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f-\x84\x86-\x9f]")
_UNDERLINE = re.compile(r"([!-/:-@\[-`{-~])\1*")


def read_text(file: File) -> Fields:
    """Return the text; it has no title."""
    return {"title": "", "text": file.decode()}


def read_code(file: File) -> Fields:
    """Return source code; InputError for code that a program made shorter or generated.

    Such are files of more than SHORT characters with lines of more than MOST_PER_LINE on average,
    not counting data that the code contains, in base 64.
    """
    text = file.decode()
    written = len(_DATA.sub("", text)) if len(text) > SHORT else 0
    if written > max(SHORT, MOST_PER_LINE * (text.count("\n") + 1)):
        raise InputError(
            "the lines are too long for source code that people read",
            wanted=f"{MOST_PER_LINE} characters a line or fewer, on average",
        )
    return {"title": "", "text": text}


def read_html(file: File) -> Fields:
    """Return the <title> and the text, without navigation; headings begin sections."""
    title, text, headings = page_text(file.decode(markup=True))
    return {"title": title, "text": text, **stated_sections(headings)}


def read_markdown(file: File) -> Fields:
    """Return the title, the rest as the text, and the fields of the front matter.

    The title is that of the front matter, if it has one, else the first heading outside fenced
    code, without the targets of links, and without pictures unless there is nothing else. The text
    begins with what the front matter says about it.
    """
    fields, lines = split_front_matter(file.decode().split("\n"))
    lines = list(_without_entities(lines))
    about = [text for name in ABOUT if (text := fields.get(name, ""))]
    if not fields.get("title", "").strip():
        fields |= _by_heading(lines)
        title = fields["title"]
        fields["title"] = _without_targets(_IMAGE.sub("", title)) or _without_targets(title)
    else:
        fields["text"] = "\n".join(lines).lstrip("\n")
    return {**fields, "text": "\n\n".join([*about, fields["text"]])}


def _without_targets(title: str) -> str:
    """Return a title with the descriptions of pictures and the texts of links alone."""
    return " ".join(_LINK.sub(r"\1", _IMAGE.sub(r"\1", title)).split())


def _without_entities(lines: list[str]) -> Iterator[str]:
    """Yield the lines with &eacute; and the like as characters, outside fenced code."""
    for line, fenced in zip(lines, _in_code(lines), strict=True):
        plain = fenced or "&" not in line
        yield line if plain else _ENTITY.sub(lambda found: unescape(found[0]), line)


def _in_code(lines: list[str]) -> Iterator[bool]:
    """Yield for each line whether it is in fenced code, or begins it."""
    fence = ""
    for line in lines:
        fence = fence_after(fence, line)
        yield bool(fence)


def _by_heading(lines: list[str]) -> Fields:
    """Return the first heading of Markdown as the title, and the rest as the text."""
    for number, (line, fenced) in enumerate(zip(lines, _in_code(lines), strict=True)):
        if fenced:
            continue
        if heading := _HEADING.fullmatch(line):
            title = heading[1].rstrip()
            text = title.rstrip("#")
            closed = len(text) < len(title) and text[-1:] in ("", " ", "\t")
            return _without(lines, number, number + 1, text if closed else title)
        underlined = number + 1 < len(lines) and _SETEXT.fullmatch(lines[number + 1])
        follows_text = number and lines[number - 1].strip()
        if underlined and not follows_text and _SETEXT_TITLE.match(line):
            return _without(lines, number, number + 2, line)
    return {"title": "", "text": "\n".join(lines)}


def read_restructured_text(file: File) -> Fields:
    """Return the first underlined line as the title, and the rest as the text."""
    lines = file.decode().split("\n")
    for number in range(len(lines) - 1):
        title, line = lines[number].rstrip(), lines[number + 1].rstrip()
        is_title = title and not title[0].isspace() and not _UNDERLINE.fullmatch(title)
        if is_title and _UNDERLINE.fullmatch(line) and len(line) >= max(len(title), 2):
            overlined = number and lines[number - 1].rstrip() == line
            return _without(lines, number - bool(overlined), number + 2, title)
    return {"title": "", "text": "\n".join(lines)}


def _without(lines: list[str], start: int, end: int, title: str) -> Fields:
    """Return the `title` and the text of `lines` without those from `start` to `end`."""
    return {"title": title.strip(), "text": "\n".join(lines[:start] + lines[end:]).lstrip("\n")}


def is_text(raw: bytes) -> bool:
    """Return whether the beginning of a file looks like text: UTF-8 without control characters.

    For files whose name does not tell. A few bytes may be of another encoding, or of a character
    that is cut at the end.
    """
    text = raw[:4096].decode(errors="surrogateescape")
    others = sum("\udc80" <= character <= "\udcff" for character in text)
    return not _CONTROL.search(text) and others <= max(3, len(text) // 4)
