"""Which fields does the front matter of a Markdown file state, in YAML or TOML?

Of YAML, this reads what front matter consists of: a line `key: value` for each field, with values
in quotation marks, over several lines (folded, literal, or indented) and lists. Texts such as
`title: Rust: a tour`, which YAML forbids, are read as they are meant. Nested mappings stay as text.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from json import loads

from birchbark.records import DOC_ID_NAMES, TEXT_NAMES

Fields = dict[str, str]
YAML, TOML = "---", "+++"
YAML_END = (YAML, "...")
MOST_LINES, MOST_CHARACTERS = 1_000, 100_000
MOST_TOML = 10_000  # characters; tomllib needs time in the square of a key's length
# Fields that a document has from elsewhere; the front matter's get a prefix.
TAKEN = frozenset("path folder type language modified size from to cc date".split())
TAKEN |= frozenset((*DOC_ID_NAMES, *TEXT_NAMES))
PREFIX = "front_"
# A colon within a key has something other than a blank after it, as in og:title.
_KEY = re.compile(r"""(["']?)([\w@$](?:[\w .@$-]|:(?=\S)){0,99})\1:(?:[ \t]+(.*))?""")
_MORE = re.compile(r"""-(?: |\Z)|[ \t#"'\[\]{}]|\Z""")  # how lines begin that go on with a value
_BLOCK = re.compile(r"([>|])[-+0-9]{0,2}(?:[ \t]+#.*)?")
_COMMENT = re.compile(r"(?:^|[ \t])#.*")
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*+"?')
_ITEM = re.compile(r"""\s*(?:"(?:[^"\\]|\\.)*+"|'[^']*+')(?=\s*(?:,|\Z))|[^,]+""")


def split_front_matter(lines: list[str]) -> tuple[Fields, list[str]]:
    """Return the fields of the front matter, and the lines after it.

    No fields, and all lines, for a file without front matter, or one that is not understood. A
    blank line after the first mark makes that a horizontal rule, as for pandoc.
    """
    mark = lines[0].rstrip() if lines else ""
    ends = {YAML: YAML_END, TOML: (TOML,)}.get(mark, ())
    head = lines[1:MOST_LINES]
    end = next((n for n, line in enumerate(head) if line.rstrip() in ends), None)
    is_rule = mark == YAML and not "".join(head[:1]).strip()
    if is_rule or end is None or sum(map(len, head[:end])) > MOST_CHARACTERS:
        return {}, lines
    fields = _of_toml(head[:end]) if mark == TOML else _of_yaml(head[:end])
    if fields is None:
        return {}, lines
    named = {f"{PREFIX}{n}" if n in TAKEN else n: text for n, text in fields.items() if text}
    return named, lines[end + 2 :]


def _of_yaml(lines: list[str]) -> Fields | None:
    """Return the fields; None if this is a text.

    Then there are no fields, a line precedes the first one, one occurs twice, or there are fewer
    fields than lines that look like a text, which otherwise go on with the field before them.
    """
    values: dict[str, list[str]] = {}
    name = ""
    others = 0
    for line in lines:
        found = _KEY.fullmatch(line.rstrip())
        if found:
            name = found[2].strip()
            if name in values:
                return None
            values[name] = [found[3] or ""]
        else:
            others += not _MORE.match(line)
            values.setdefault(name, []).append("" if line.startswith("#") else line.rstrip())
    if any(values.pop("", [])) or len(values) <= others:
        return None
    return {name: _value(value[0].strip(), value[1:]) for name, value in values.items()}


def _value(first: str, more: list[str]) -> str:
    """Return a value. first: what stands beside its key; more: the lines after it."""
    if block := _BLOCK.fullmatch(first):
        return _block(more, folded=block[1] == ">")
    text = " ".join(filter(None, (line.strip() for line in (first, *more))))
    if text[:1] in ('"', "'"):
        return _unquoted(text)
    if text.startswith("[") and text.endswith("]"):
        return ", ".join(filter(None, map(_unquoted, _ITEM.findall(text[1:-1]))))
    items = [line.strip() for line in more if line.strip()]
    if not first and items and all(item.startswith("-") for item in items):
        return ", ".join(filter(None, (_unquoted(item[1:]) for item in items)))
    return _unquoted(text)


def _block(lines: list[str], *, folded: bool) -> str:
    """Return a text over several lines without its indentation; folded: as paragraphs."""
    text = "\n".join(line.strip() for line in lines).strip("\n")
    return re.sub(r"(?<!\n)\n(?!\n)", " ", text) if folded else text


def _unquoted(text: str) -> str:
    """Return a text without the quotation marks around it, and without a comment."""
    text = text.strip()
    if (quoted := _QUOTED.match(text)) and _ends(text, quoted.end()):
        try:
            unquoted = str(loads(quoted[0]))
            return unquoted.encode(errors="replace").decode()  # \ud800 alone is no character
        except ValueError:  # an escape that JSON does not have
            return text.strip('"')
    end = text.rfind("'")
    if text.startswith("'") and end and _ends(text, end + 1):
        return text[1:end].replace("''", "'")
    text = _COMMENT.sub("", text).strip()
    return "" if text in ("~", "null") else text


def _ends(text: str, at: int) -> bool:
    """Whether a value ends at this character: at most a comment follows."""
    return not _COMMENT.sub("", text[at:]).strip()


def _of_toml(lines: list[str]) -> Fields | None:
    """Return the fields, those of tables as `table.key`; None if the lines are not TOML."""
    if sum(map(len, lines)) > MOST_TOML:
        return None
    try:
        return dict(_flat(tomllib.loads("\n".join(lines)), ""))
    except (ValueError, RecursionError):  # ValueError for numbers of thousands of digits, too
        return None


def _flat(values: Mapping[str, object], prefix: str) -> Iterator[tuple[str, str]]:
    for name, value in values.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{name}.")
        elif isinstance(value, list):
            yield f"{prefix}{name}", ", ".join(map(str, value))
        else:
            yield f"{prefix}{name}", str(value).lower() if isinstance(value, bool) else str(value)
