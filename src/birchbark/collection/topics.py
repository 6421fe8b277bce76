"""How are the topics of TREC, CLEF, NTCIR, FIRE and INEX read from SGML or XML?

A topic is an element `top`, `topic`, `inex_topic` or, as in Indri's parameter files, `query`. Its
parts are the elements in it. Tags may be in upper or lower case. In SGML the tags of known parts
need not be closed: such a part ends at the next tag. What fits neither form is an error, so that
no topic and no part of one is lost.
"""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from birchbark.collection.parsing.elements import attribute
from birchbark.collection.parsing.markup import plain_text
from birchbark.errors import InputError, first_line

RECORDS = ("top", "topic", "inex_topic", "query")
NUMBERS = ("number", "num", "id", "identifier", "topic_id", "topicid", "query_id", "qid", "q")
TITLES = ("title", "query", "text", "question")  # the first of these is the title
NAMES = {"desc": "description", "narr": "narrative"}
LABELS = {  # tag of TREC's ad hoc topics → label at the beginning of its text
    "num": "number|topic",
    "number": "number|topic",
    "title": "topic",
    "desc": "description",
    "description": "description",
    "narr": "narrative",
    "narrative": "narrative",
    "dom": "domain",
    "smry": "summary",
    "con": r"concepts?(?:\(s\))?",
    "fac": r"factors?(?:\(s\))?",
    "nat": "nationality",
    "def": r"definitions?(?:\(s\))?",
    "time": "time",
}
# Tags that TREC's topics leave open.
OPEN = frozenset([*LABELS, *"query head orig an audio rel querytime querytweettime url".split()])
# Tags within a text.
INLINE = frozenset("a b big br cite code em font i p small span strong sub sup tt u".split())
SPECIAL = {"<!--": "-->", "<![CDATA[": "]]>", "<?": "?>", "<!": ">"}
INDRI = "parameters"  # whose other elements, such as index, are settings

_SPECIAL = re.compile(r"<!--|<!\[CDATA\[|<\?|<!")
_TAG = re.compile(r"<(/?)([A-Za-z][\w.:-]*)((?:\s[^<>]*?)?)(/?)>")
_MICROBLOG = re.compile(r"^MB0*(?=\d)")
_LABELLED = re.compile(r"<num>\s*number:", re.IGNORECASE)
_OPERATOR = re.compile(r"#(?:combine|weight|wsum|and|or|band|max|syn|wsyn|uw?\d+|ow?\d+|\d+)\s*\(")


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic.

    Attributes:
        number: Its id, such as `301`; empty if it has none.
        parts: Part → its text. The name of a part is its tag in lower case; `desc` and `narr` are
            called `description` and `narrative`. A part with a language has that in front, such as
            `en-title`. There is a `title` unless nothing can be one.
        repeated: The names of parts of which there are several.
    """

    number: str
    parts: dict[str, str] = field(default_factory=dict)
    repeated: frozenset[str] = frozenset()

    def text(self, names: Sequence[str]) -> str:
        """Return the texts of the parts `names`, joined by a space.

        Raises InputError if the topic has no number, lacks a part, or has several of a name.
        """
        wanted = [_full_name(name) for name in names]
        missing = [name for name in wanted if not self.parts.get(name)]
        if missing or not self.number:
            raise InputError(
                f"topic has no {' and no '.join(missing or ['number'])}",
                found=", ".join(name for name, text in self.parts.items() if text) or "nothing",
                remedy="name other parts as topic fields" if missing else "",
            )
        if several := [name for name in wanted if name in self.repeated]:
            raise InputError(f"topic has several parts called {several[0]}", wanted="one")
        text = " ".join(self.parts[name] for name in wanted)
        if operator := _OPERATOR.search(text):
            raise InputError(
                "topic is a query in Indri's query language",
                wanted="plain text",
                found=operator[0],
            )
        return text


def read_topics(text: str) -> Iterator[Topic]:
    """Yield the topics in the text of a file, in its order; none if there is no such element.

    Raises InputError for a topic that cannot be read, and for text or elements outside the topics.
    """
    text = _without_special(text)
    tags = [_Tag.of(found) for found in _TAG.finditer(text)]
    names = {tag.name for tag in tags}
    record = next((name for name in RECORDS if name in names), None)
    if record is None:
        return
    position, outside = 0, []
    bodies: list[tuple[_Tag, str, list[_Tag]]] = []
    edges = [i for i, tag in enumerate(tags) if tag.name == record]
    for i, following in zip(edges, [*edges[1:], len(tags)], strict=True):
        start = tags[i]
        if start.closes:  # of a topic that has ended: what follows is outside
            continue
        outside.append(text[position : start.start])
        end = tags[following].start if following < len(tags) else len(text)
        closed = following < len(tags) and tags[following].closes
        bodies.append((start, text[start.end : end], tags[i + 1 : following]))
        position = tags[following].end if closed else end
    _check_outside("\n".join([*outside, text[position:]]))
    for start, body, inner in bodies:
        yield _topic(start, body, inner)


@dataclass(frozen=True, slots=True)
class _Tag:
    """A start or end tag: its place in the text, its name in lower case, and its attributes."""

    start: int
    end: int
    name: str
    attributes: str
    closes: bool
    empty: bool

    @classmethod
    def of(cls, found: re.Match[str]) -> _Tag:
        slash, name, attributes, empty = found.groups()
        return cls(*found.span(), name.lower(), attributes, bool(slash), bool(empty))


def _without_special(text: str) -> str:
    """Return the text without comments, declarations and instructions, with CDATA as text."""
    pieces, position = list[str](), 0
    while start := _SPECIAL.search(text, position):
        end = text.find(SPECIAL[start[0]], start.end())
        if end < 0:
            raise InputError(f"{start[0]} is not closed", wanted=SPECIAL[start[0]])
        pieces.append(text[position : start.start()])
        if start[0] == "<![CDATA[":
            pieces.append(html.escape(text[start.end() : end]))
        position = end + len(SPECIAL[start[0]])
    return "".join([*pieces, text[position:]])


def _check_outside(text: str) -> None:
    """Raise InputError for text, or elements with text, outside all topics."""
    first = _TAG.search(text)
    if first and first[2].lower() == INDRI:
        return
    if stray := first_line(ValueError(_TAG.sub(" ", text).strip())):
        raise InputError("text outside any topic", found=repr(stray[:60]))


def _topic(record: _Tag, body: str, tags: list[_Tag]) -> Topic:
    """Return the topic in the element `record`, whose contents are `body` with these tags."""
    structure = [tag for tag in tags if tag.name not in INLINE]
    nested: dict[str, str] = {}
    found = [("title", _clean("title", body))]
    if structure:
        found = list(_parts(body, structure, record.end, nested))
    parts, counts = dict(found), Counter(name for name, _ in set(found))
    repeated = {name for name, count in counts.items() if count > 1}
    parts |= {name: text for name, text in nested.items() if name not in parts}
    if several := [name for name in NUMBERS if name in repeated]:
        raise InputError(f"a topic has several parts called {several[0]}", wanted="one number")
    own = {name: attribute(record.attributes, name) for name in NUMBERS}
    number = next((x for name in NUMBERS if (x := own[name] or parts.get(name))), "").strip()
    if record.name == "top":
        number = _MICROBLOG.sub("", number, count=1)
        if number.isdecimal() and _LABELLED.search(body):
            number = number.lstrip("0") or "0"  # judgments of TREC 1 and 2 have 51, topics 051
    parts = {name: text for name, text in parts.items() if name not in NUMBERS}
    source = _title_source(parts)
    if source in repeated:
        repeated.add("title")
    if source:
        parts = {"title": parts[source], **parts}
    return Topic(number, parts, frozenset(repeated))


def _title_source(parts: Mapping[str, str]) -> str | None:
    """Return the name of the part that is the title, if none is called so."""
    titles = [name for name in TITLES if parts.get(name)]
    in_language = [name for name in parts if name.endswith("-title")]
    if not titles and len(in_language) == 1:
        return in_language[0]
    return titles[0] if titles and titles[0] != "title" else None


def _parts(
    body: str, tags: list[_Tag], shift: int, nested: dict[str, str]
) -> Iterator[tuple[str, str]]:
    """Yield name and text of each part of a topic.

    shift: the position of `body` in the text that the positions of `tags` refer to. nested: parts
    within parts, such as the background of an NTCIR narrative, are added to it.
    """
    ends = _end_tags(tags)
    position, i, part = shift, 0, ""  # part: the name of one that is not closed
    while i <= len(tags):
        stop = tags[i].start if i < len(tags) else shift + len(body)
        between = body[position - shift : stop - shift]
        if part:
            yield part, _clean(part, between)
        elif between.strip():
            found = repr(" ".join(between.split())[:60])
            raise InputError("text of a topic outside its parts", found=found)
        if i == len(tags):
            return
        tag, part, last = tags[i], "", ends.get(i, i)
        if last > i:
            yield _name(tag), _clean(tag.name, body[tag.end - shift : tags[last].start - shift])
            for start, end in pairwise(tags[i + 1 : last]):
                if end.closes and start.name == end.name and not start.closes:
                    text = body[start.end - shift : end.start - shift]
                    nested.setdefault(_name(start), _clean(start.name, text))
        elif not (tag.closes or tag.empty):
            if tag.name not in OPEN:
                raise InputError(f"<{tag.name}> is not closed", wanted=f"</{tag.name}>")
            part = _name(tag)
        position, i = tags[last].end, last + 1


def _end_tags(tags: Sequence[_Tag]) -> dict[int, int]:
    """Return position of a start tag → position of the next end tag of its name, if any."""
    following: dict[str, int] = {}
    ends = {}
    for i, tag in reversed(list(enumerate(tags))):
        if tag.closes:
            following[tag.name] = i
        elif tag.name in following:
            ends[i] = following[tag.name]
    return ends


def _name(tag: _Tag) -> str:
    """Return the name of the part that begins with a tag, with its language in front."""
    language = attribute(tag.attributes, "lang") or attribute(tag.attributes, "xml:lang")
    return _full_name(f"{language}-{tag.name}" if language else tag.name)


def _full_name(name: str) -> str:
    """Return the name of a part in lower case, with the full word for `desc` and `narr`."""
    language, dash, part = name.lower().rpartition("-")
    return f"{language}{dash}{NAMES.get(part, part)}"


def _clean(tag: str, body: str) -> str:
    """Return the text of a part without markup and without the label of its tag."""
    text = " ".join(plain_text(body)[1].split())
    label = LABELS.get(tag.rpartition("-")[2])
    return re.sub(rf"^(?:{label})\s*:\s*", "", text, flags=re.IGNORECASE) if label else text
