"""What does a query ask for besides its words? Phrases, excluded words, values of fields, dates.

"exact phrase"      the words follow each other; typographic quotation marks do as well
-word  -"a phrase"  documents with it are left out
field:value         a filter (see filters.py) of a keyword field of the index; field:"two words" for
                    exactly this value, field:"two words"* for all that begin with it; -field:value
                    for all others; modified:2024-05 for any day of May 2024
before:2024-05      documents modified before May 2024; after:2024-05-01 on this day or later

An operator begins the query or follows white space. Everything else is text: quotation marks
without their end, a minus before anything but a letter, a digit or a quotation mark, and names of
other fields, as in http://example.com.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import Enum

from birchbark.retrieve.filters import filter_of, period
from birchbark.text.words import words

BEFORE, AFTER, MODIFIED = "before", "after", "modified"  # the operators on a field, and the field

_MARKS = '"“”„‟«»＂'  # any of them opens or closes a phrase
_TOKEN = re.compile(
    rf"(?<!\S)(?P<minus>-)?(?:(?P<field>[^\s:{_MARKS}]++):)?"
    rf"(?:[{_MARKS}](?P<quoted>[^{_MARKS}]*+)[{_MARKS}](?P<more>\*)?(?!\w)|(?P<value>[^\s{_MARKS}]\S*+))"
)


class PartKind(Enum):
    """What a part of a query is."""

    TEXT = "text"
    PHRASE = "phrase"
    EXCLUDED = "excluded"
    FILTER = "filter"


@dataclass(frozen=True, slots=True)
class QueryPart:
    """A part of a query.

    source: the part as it was written. value: the text, or what the operator asks for, without
    quotation marks; of a filter, its text (see filters.py). field: the field of a filter.
    """

    source: str
    kind: PartKind
    value: str
    field: str = ""


@dataclass(frozen=True, slots=True)
class ParsedQuery:
    """A query as its parts, in order; their sources are the query itself.

    Attributes:
        parts: The parts. A query without operators is a single text.
    """

    parts: tuple[QueryPart, ...]

    def __str__(self) -> str:
        """Return the query as it was written."""
        return "".join(part.source for part in self.parts)

    @property
    def restricted(self) -> bool:
        """Whether the query has operators."""
        return any(part.kind is not PartKind.TEXT for part in self.parts)

    @property
    def words(self) -> str:
        """The text that is ranked by: without operators, but with the words of its phrases.

        A query without operators is its own text, unchanged.
        """
        if not self.restricted:
            return str(self)
        read = (PartKind.TEXT, PartKind.PHRASE)
        return " ".join("".join(p.value if p.kind in read else " " for p in self.parts).split())

    @property
    def phrases(self) -> tuple[str, ...]:
        """The phrases that a document must contain."""
        return self._values(PartKind.PHRASE)

    @property
    def excluded(self) -> tuple[str, ...]:
        """The words and phrases that a document must not contain."""
        return self._values(PartKind.EXCLUDED)

    @property
    def filters(self) -> tuple[tuple[str, str], ...]:
        """Field and filter (see filters.py), all of which a document must meet.

        Values of one field are alternatives, and so are values that are left out; ranges with one
        end are filters of their own.
        """
        joined: dict[tuple[str, str], str] = {}  # field and what distinguishes its filters
        for part in self.parts:
            if part.kind is PartKind.FILTER:
                negated = part.value.startswith("!")
                is_open = part.value.startswith("..") or part.value.endswith("..")
                key = part.field, part.value if is_open else "!" if negated else ""
                value = part.value[1:] if negated and key in joined else part.value
                joined[key] = f"{joined[key]}|{value}" if key in joined else value
        return tuple(dict.fromkeys((field, text) for (field, _), text in joined.items()))

    def _values(self, kind: PartKind) -> tuple[str, ...]:
        return tuple(dict.fromkeys(part.value for part in self.parts if part.kind is kind))


def literal_query(text: str) -> ParsedQuery:
    """Return a query in which nothing is an operator."""
    return ParsedQuery((QueryPart(text, PartKind.TEXT, text),))


def parse_query(text: str, keywords: Collection[str] = ()) -> ParsedQuery:
    """Parse a query; every text is one.

    keywords: the keyword fields of the index. Their names, and those of the operators on dates, can
    be written in capitals as well.
    """
    fields = {name.lower(): name for name in keywords} | {name: name for name in keywords}
    parts, done = list[QueryPart](), 0

    def add_text(end: int) -> None:
        if done < end:
            parts.append(QueryPart(text[done:end], PartKind.TEXT, text[done:end]))

    for token in _TOKEN.finditer(text):
        if operator := _filter(token, fields) or _phrase_or_excluded(token):
            add_text(token.start())
            parts.append(operator)
            done = token.end()
    add_text(len(text))
    return ParsedQuery(tuple(parts)) if parts else literal_query(text)


def _filter(token: re.Match[str], fields: Mapping[str, str]) -> QueryPart | None:
    """Return the filter that a token of a query is, if it is one."""
    name, quoted, negated = token["field"], token["quoted"], token["minus"]
    if not name or not (quoted or token["value"]):
        return None
    if field := fields.get(name) or fields.get(name.lower()):
        value = token["value"] if quoted is None else filter_of(quoted, exact_date=True)
        if token["more"]:
            value = f"{value}*"
        if negated:
            value = value.removeprefix("!") if value.startswith("!") else f"!{value}"
        return QueryPart(token[0], PartKind.FILTER, value, field)
    if name.lower() in (BEFORE, AFTER) and MODIFIED in fields and not negated:
        limits = period(quoted or token["value"])
        if limits:
            range_ = f"..{limits[0]}" if name.lower() == BEFORE else f"{limits[1]}.."
            return QueryPart(token[0], PartKind.FILTER, range_, MODIFIED)
    return None


def _phrase_or_excluded(token: re.Match[str]) -> QueryPart | None:
    """Return the phrase, or the excluded word or phrase, that a token of a query is, if any."""
    negated, whole_quoted = token["minus"], token["quoted"] is not None and not token["field"]
    value = token["quoted"] if whole_quoted else token[0][1:]
    if not (whole_quoted or (negated and value[0].isalnum())) or not words(value):
        return None
    return QueryPart(token[0], PartKind.EXCLUDED if negated else PartKind.PHRASE, value)
