"""How does a dataclass describe a table of a ranker's file: each key, its type and its meaning?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field, fields
from functools import partial
from typing import Any

from birchbark.section import Section

Read = Callable[..., Any]  # of a method of Section: (section, key, default) → value

positive = partial(Section.integer, minimum=1)


def one_of(*choices: str) -> Read:
    """Read one of `choices`."""
    return partial(Section.one_of, choices=choices)


def key(read: Read, default: Any, meaning: str) -> Any:
    """Return a dataclass field that is a key of a table.

    read: how its value is read from a Section. default: its value if it is missing; a function
    makes it, such as dict. meaning: one or more sentences for `birchbark ranker`.
    """
    metadata = {"read": read, "meaning": meaning}
    if callable(default):
        return field(default_factory=default, metadata=metadata)
    return field(default=default, metadata=metadata)


def read_table(section: Section, usual: Any) -> dict[str, Any]:
    """Return key → value of the table `section`; InputError, which names the key, if one is wrong.

    usual: an instance of the dataclass, whose values are those of missing keys.
    """
    values = {
        each.name: each.metadata["read"](section, each.name, default=getattr(usual, each.name))
        for each in fields(usual)
    }
    section.reject_unknown_keys()
    return values
