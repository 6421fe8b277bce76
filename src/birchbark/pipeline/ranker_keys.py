"""How does a dataclass describe a table of a ranker's file: each key, its type and its meaning?"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any, Self

from birchbark.errors import InputError
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


@dataclass(frozen=True, slots=True)
class Options(ABC):
    """Options as users write them, each a `key` of a table."""

    def updated(self, section: Section) -> Self:
        """Return these options, overridden by a TOML section.

        Raises InputError, which names the key, for an unknown key or value.
        """
        values = {
            each.name: each.metadata["read"](section, each.name, default=getattr(self, each.name))
            for each in fields(self)
        }
        section.reject_unknown_keys()
        options = replace(self, **values)
        try:
            options.check(section.keys)
        except InputError as error:
            raise error.at(section.where()) from None
        return options

    @abstractmethod
    def check(self, given: Collection[str]) -> None:
        """Raise InputError if an option in `given`, which the user has set, has no effect."""
