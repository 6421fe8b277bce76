"""Which paths does a pattern match, as in .gitignore files?

Patterns come from strangers. They become regular expressions in which each `*` takes as little as
it can and is never tried again (atomic groups), so that the time grows with the product of the
lengths of pattern and path, whatever is in them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import PurePath
from typing import NamedTuple, Self

LONGEST = 4_096  # characters of a pattern; no path is longer
STAR, ANY, FOLDER = "*", "[^/]", "(?:[^/]++/)"
POSIX_CLASSES = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "blank": r" \t",
    "cntrl": r"\x00-\x1f\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": r"!-/:-@\[-`{-~",
    "space": r" \t-\r",
    "upper": "A-Z",
    "xdigit": "0-9A-Fa-f",
}
_POSIX_CLASS = re.compile(r"\[:([a-z]{0,10}):\]")


class _Pattern(NamedTuple):
    """A pattern. negated: whether it brings back what the ones before leave out."""

    regex: re.Pattern[str]
    negated: bool
    folders_only: bool

    def matches(self, path: str, is_folder: bool) -> bool:
        fits = is_folder or not self.folders_only
        return fits and self.regex.fullmatch(path) is not None


class IgnorePatterns:
    """Patterns, of which the last one that matches decides."""

    def __init__(self, patterns: Sequence[_Pattern]) -> None:
        self._patterns = patterns

    @classmethod
    def of_file(cls, text: str) -> Self:
        """Return the patterns of a .gitignore file, without those that match nothing."""
        lines = text.removeprefix("\ufeff").split("\n")
        patterns = (_parsed(line.removesuffix("\r")) for line in lines)
        return cls([pattern for pattern in patterns if pattern])

    @classmethod
    def of_lines(cls, lines: Sequence[str]) -> Self:
        """Return the patterns; ValueError with the first line that is none."""
        patterns = []
        for line in lines:
            pattern = _parsed(line)
            if pattern is None:
                raise ValueError(line)
            patterns.append(pattern)
        return cls(patterns)

    def __len__(self) -> int:
        return len(self._patterns)

    def decide(self, path: PurePath, *, is_folder: bool) -> bool | None:
        """Return whether the last pattern that matches `path` selects it; None if none does."""
        text = path.as_posix()
        for pattern in reversed(self._patterns):
            if pattern.matches(text, is_folder):
                return not pattern.negated
        return None

    def select(self, file: PurePath) -> bool:
        """Return whether the last pattern that matches a file or a folder above it selects it."""
        folders = [folder.as_posix() for folder in file.parents][:-1]
        for pattern in reversed(self._patterns):
            above = any(pattern.matches(folder, True) for folder in folders)
            if above or pattern.matches(file.as_posix(), False):
                return not pattern.negated
        return False


def _parsed(line: str) -> _Pattern | None:
    """Return the pattern of a line; None for a comment, and for what matches nothing."""
    text = _without_last_spaces(line)
    comment, negated = text.startswith("#"), text.startswith("!")
    text = text[negated:]
    folders_only = text.endswith("/")
    text = text.removesuffix("/")
    if comment or not text or len(text) > LONGEST:
        return None
    segments = [list[str]()]
    for token in _tokens(text):
        if not token:
            return None
        if token == "/":
            segments.append([])
        else:
            segments[-1].append(token)
    if len(segments) == 1:  # in any folder
        segments.insert(0, [STAR, STAR])
    elif not segments[0]:
        del segments[0]
    return _Pattern(re.compile(_path_regex(segments), re.DOTALL), negated, folders_only)


def _without_last_spaces(line: str) -> str:
    """Return the line without spaces at its end, but with one that a backslash precedes."""
    text = line.rstrip(" ")
    backslashes = len(text) - len(text.rstrip("\\"))
    return line[: len(text) + backslashes % 2]


def _tokens(text: str) -> Iterator[str]:
    """Yield `/`, `*` and, for each other character to match, a regular expression.

    An empty token says that the pattern matches nothing.
    """
    at = 0
    while at < len(text):
        character, at = text[at], at + 1
        if character == "[":
            token, at = _set_regex(text, at)
            yield token
        elif character == "\\":
            yield re.escape(text[at : at + 1])
            at += 1
        elif character == "?":
            yield ANY
        else:
            yield character if character in "*/" else re.escape(character)


def _set_regex(text: str, at: int) -> tuple[str, int]:
    """Return the regular expression of a set such as [a-z], and where it ends.

    at: where its first member is. The expression is empty if the set has no end.
    """
    negated = text[at : at + 1] in ("!", "^")
    begin = at = at + negated
    members, previous = [], ""
    while at == begin or text[at : at + 1] != "]":
        if named := _POSIX_CLASS.match(text, at):
            if named[1] not in POSIX_CLASSES:
                return "", at
            members.append(POSIX_CLASSES[named[1]])
            previous, at = "", named.end()
            continue
        is_range = bool(text[at : at + 1] == "-" and previous and text[at + 1 : at + 2] != "]")
        at += is_range
        at += text[at : at + 1] == "\\"
        if at >= len(text):
            return "", at
        low = previous if is_range else text[at]
        if low <= text[at]:
            members.append(f"{re.escape(low)}-{re.escape(text[at])}")
        previous, at = "" if is_range else text[at], at + 1
    inside = "".join(members)
    if not inside:
        return ANY if negated else "(?!)", at + 1
    return f"(?!/)[{'^' * negated}{inside}]", at + 1


def _path_regex(segments: Sequence[Sequence[str]]) -> str:
    """Return the regular expression of a pattern, of which each segment is a list of tokens.

    Between two `**`, the first folders that match are as good as any others.
    """
    runs = [list[str]()]
    for tokens in segments:
        if len(tokens) > 1 and set(tokens) == {STAR}:
            runs.append([])
        else:
            runs[-1].append(_segment_regex(tokens))
    *before, last = runs
    if not before:
        return "/".join(last)
    folders = ["".join(f"{segment}/" for segment in run) for run in before]
    middle = "".join(f"(?>{FOLDER}*?{run})" for run in folders[1:] if run)
    return f"{folders[0]}{middle}" + (f"{FOLDER}*{'/'.join(last)}" if last else ".+")


def _segment_regex(tokens: Sequence[str]) -> str:
    """Return the regular expression of a segment.

    Between two `*`, the first characters that match are as good as any others.
    """
    chunks = [list[str]()]
    for token in tokens:
        if token == STAR:
            chunks.append([])
        else:
            chunks[-1].append(token)
    first, *others = map("".join, chunks)
    if not others:
        return first
    middle = "".join(f"(?>{ANY}*?{chunk})" for chunk in others[:-1] if chunk)
    return f"(?>{first}{middle}{ANY}*{others[-1]})"
