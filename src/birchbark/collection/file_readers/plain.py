"""How are title and text told apart in plain text, Markdown, reStructuredText and HTML?"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from html import unescape

from birchbark.collection.file_readers.detect_encoding import decoded, detect_encoding
from birchbark.collection.file_readers.file import Fields, File
from birchbark.collection.file_readers.front_matter import split_front_matter
from birchbark.collection.file_readers.text_encoding import BYTE_ORDER_MARKS, as_utf8
from birchbark.collection.parsing.intake import Intake
from birchbark.collection.parsing.markup import page_text, plain_text
from birchbark.errors import InputError
from birchbark.records import stated_sections
from birchbark.text.headings import MarkdownHeading, fence_after, markdown_headings

MOST_PER_LINE, SHORT = 300, 10_000
SEARCHED = 4096  # bytes of a file, and the rest of their last line, that tell whether it is text
# Fields that are text as well.
ABOUT = ("subtitle", "description", "summary", "abstract", "tags", "keywords", "aliases")
_DATA = re.compile("[A-Za-z0-9+/=]{200,}")
_ENTITY = re.compile(r"&(?:[A-Za-z][A-Za-z0-9]{1,30}|#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6});")
_IMAGE = re.compile(r"!\[([^\[\]]*)\](?:\([^()]*\)|\[[^\[\]]*\]|(?=\]))")  # the last: in a link
_LINK = re.compile(r"\[([^\[\]]*)\]\([^()]*\)|\[\]\[[^\[\]]*\]")  # the last: of a picture
# Tags, comments, tables of contents, and addresses of links: [name]: address "title", which are
# comments as well: [//]: # (comment)
_HIDDEN = re.compile(
    r"</?[a-z][^<>]*>|<!--(?:(?!<!--|-->).)*+-->|^ {0,3}(?:\[toc\]|\[\[_toc_\]\]"
    r"|\[[^\[\]\n^][^\[\]\n]*\]:[ \t]*+\S++[ \t]*+"
    r"""(?:"[^"\n]*"|'[^'\n]*'|\([^()\n]*\))?)[ \t]*+$""",
    re.DOTALL | re.IGNORECASE | re.MULTILINE,
)
_H1, _H1_END, MOST_LINES = re.compile(r" {0,3}<h1[\s>]", re.I), "</h1>", 20
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

    The title is that of the front matter, if it has one, else the heading that `_by_heading` finds,
    without the targets of links, and without pictures unless there is nothing else. The text begins
    with what the front matter says about it.
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
    """Return a heading of Markdown as the title, and the rest as the text.

    It is the first one if no text precedes it, else the only one of the highest level.
    """
    headings = [*_leading_h1(lines), *markdown_headings(lines)]
    highest = [heading for heading in headings if heading.level == 1]
    if headings and not _has_words(lines[: headings[0].start]):
        title = headings[0]
    elif len(highest) == 1:
        title = highest[0]
    else:
        return {"title": "", "text": "\n".join(lines)}
    return _without(lines, title.start, title.end, title.text)


def _has_words(lines: list[str]) -> bool:
    """Whether lines have more than pictures, tags, comments and the addresses of links."""
    text = _HIDDEN.sub("", "\n".join(lines))
    return bool(_LINK.sub(r"\1", _IMAGE.sub("", text)).strip())


def _leading_h1(lines: list[str]) -> Iterator[MarkdownHeading]:
    """Yield the <h1> before any words of a text; none if it is empty, or anything follows it."""
    start = next((n for n, line in enumerate(lines) if _H1.match(line)), len(lines))
    if _has_words(lines[:start]):
        return
    part = lines[start : start + MOST_LINES]
    end = next((n for n, line in enumerate(part, 1) if _H1_END in line.lower()), 0)
    text = plain_text("\n".join(part[:end]))[1]
    if text and part[end - 1].rstrip().lower().endswith(_H1_END):
        yield MarkdownHeading(start, start + end, 1, " ".join(text.split()))


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
    """Return whether the beginning of a file looks like text: no control characters.

    For files whose name does not tell. The beginning ends with a line, so that no character is cut.
    It is in the encoding of its byte order mark, or as `decode_text` finds without one.
    """
    start = raw[: raw.find(b"\n", SEARCHED) + 1 or None]
    mark = next((name for mark, name in BYTE_ORDER_MARKS.items() if start.startswith(mark)), None)
    if mark:
        try:
            return not _CONTROL.search(codecs.getincrementaldecoder(mark)().decode(start))
        except UnicodeError:
            return False
    if b"\0" in start:
        return False
    text = as_utf8(start, Intake())
    text = decoded(start, detect_encoding(start)) if text is None else text
    return text is not None and not _CONTROL.search(text)
