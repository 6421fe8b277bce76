"""How are queries, texts and lists checked that Python programs pass to public functions?

Texts come as lists, generators, or the columns of frames, and some cells have no value. What would
otherwise be read as something else (a string as a list of its characters, a frame as a list of its
columns) is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar

import birchbark
from birchbark.errors import InputError

T = TypeVar("T")
E = TypeVar("E", bound=Enum)
MAX_SHOWN = 60  # characters of a value in a message
# What columns of frames are called by PyTerrier, ir-measures, ranx and BEIR.
QUERY_COLUMNS = ("query_id", "qid", "q_id", "query-id")
DOCUMENT_COLUMNS = ("doc_id", "docno", "docid", "corpus-id")


def iterated(values: Iterable[T], name: str) -> Iterator[T]:
    """Return an iterator over a list, generator, array or column (Series).

    Args:
        values: The items.
        name: What they are, in the plural, as messages call them.

    Raises:
        InputError: `values` is a single string or mapping, a frame, or a set, which has no order.
    """
    remedy = ""
    if hasattr(values, "columns"):
        remedy = "pass what is asked for: one of its columns, or its rows as a list"
    elif isinstance(values, str | bytes):
        remedy = "put it into a list"
    elif not isinstance(values, Mapping | set | frozenset):
        try:
            iterator = iter(values)
        except TypeError:
            pass
        else:
            return iterator
    raise InputError(
        f"the {name} are not a list",
        wanted="a list, another sequence, or a generator",
        found=shown(values),
        remedy=remedy,
    )


def listed(values: Iterable[T], name: str) -> list[T]:
    """Return the items as a list; see `iterated`."""
    return list(iterated(values, name))


def text_of(value: object, name: str) -> str:
    """Return a text that a program has passed; InputError if it is not a string.

    name: what it is, as the message calls it.
    """
    if not isinstance(value, str):
        raise InputError(f"{name} is not a text", wanted="a string", found=shown(value))
    return value if type(value) is str else str(value)


def path_of(value: object, name: str) -> Path:
    """Return a path that a program has passed; InputError if it is none.

    name: what it is, as the message calls it.
    """
    if not isinstance(value, str | PathLike):
        raise InputError(f"{name} is not a path", wanted="a string or a Path", found=shown(value))
    return Path(value)


def texts_of(values: Iterable[object], name: str) -> list[str]:
    """Return texts as a list of strings; see `listed` and `text_of`.

    name: what they are, in the singular; messages add the position, from 0.
    """
    items = listed(values, f"{name}s")
    return [text_of(item, f"{name} {position}") for position, item in enumerate(items)]


def names_of(values: Iterable[object], name: str) -> tuple[str, ...]:
    """Return names, such as those of fields, as a tuple of strings; a single string is refused."""
    return tuple(texts_of(values, name))


def is_count(text: str) -> bool:
    """Return whether a text is a whole number below a billion, in digits of ASCII.

    Python reads those of other scripts as well, and raises ValueError beyond 4,300 of them.
    """
    return text.isascii() and text.isdecimal() and len(text) < 10


def mapping_of(value: object, name: str) -> Mapping[Any, Any]:
    """Return a mapping that a program has passed; InputError if it is none."""
    if not isinstance(value, Mapping):
        raise InputError(f"{name} is not a mapping", wanted="a dict", found=shown(value))
    return value


def instances_of(values: Iterable[T], kind: type[T], name: str) -> list[T]:
    """Return items as a list; InputError unless all are instances of `kind`.

    name: what they are, in the plural; the message adds the position, from 0.
    """
    if isinstance(values, kind):
        raise InputError(f"the {name} are not a list", found=f"one {kind.__name__}")
    items = listed(values, name)
    for position, item in enumerate(items):
        check_instance(item, kind, f"item {position} of the {name}")
    return items


def choice_of(kind: type[E], value: object, name: str) -> E:
    """Return the choice with this value; InputError if there is none."""
    try:
        return kind(value)
    except ValueError:
        wanted = " or ".join(str(choice.value) for choice in kind)
        raise InputError(f"unknown {name}", wanted=wanted, found=shown(value)) from None


def check_instance(value: object, kind: type, name: str) -> None:
    """Raise InputError unless a value is an instance of `kind`, which the message shows."""
    if not isinstance(value, kind):
        module = "birchbark" if kind.__name__ in birchbark.__all__ else kind.__module__
        raise InputError(
            f"{name} has the wrong type",
            wanted=f"{module}.{kind.__name__}",
            found=shown(value),
        )


def shown(value: object) -> str:
    """Return the type and the beginning of a value, for a message."""
    text = " ".join(repr(value).split())
    cut = text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…"
    return cut if value is None else f"{type(value).__name__} {cut}"


def values_by_query(values: Any, names: Sequence[str], noun: str) -> dict[Any, Mapping[Any, Any]]:
    """Return query_id → doc_id → value, from such a mapping or from rows with one value each.

    Args:
        values: The mapping; an object whose method `to_dict` returns one, as of ranx; a frame of
            pandas or polars; or a list of rows, each a mapping.
        names: What the column of values may be called.
        noun: What the values make, for messages.

    Raises:
        InputError: It is none of these, lacks a column, or has a document twice for one query.
    """
    columns = getattr(values, "columns", None)
    if columns is None and hasattr(values, "to_dict"):
        values = values.to_dict()
    if isinstance(values, Mapping):
        return {q: mapping_of(of_query, f"{noun}: query {q}") for q, of_query in values.items()}
    if columns is None:
        rows = [mapping_of(row, f"{noun}: a row") for row in iterated(values, f"rows of {noun}")]
        found = list(rows[0]) if rows else [QUERY_COLUMNS[0], DOCUMENT_COLUMNS[0], names[0]]
    elif not all(isinstance(name, str) for name in columns) or not hasattr(values, "__getitem__"):
        raise InputError(
            f"{noun} cannot be made of this",
            wanted="a frame of pandas or polars whose columns have names, a dict or rows",
            found=shown(values),
        )
    else:
        found = list(columns)
    chosen = []
    for wanted in (QUERY_COLUMNS, DOCUMENT_COLUMNS, names):
        name = next((name for name in wanted if found.count(name) == 1), None)
        if name is None:
            raise InputError(
                f"{noun}: no such column",
                wanted=" or ".join(wanted),
                found=", ".join(map(str, found)),
            )
        chosen.append([row.get(name) for row in rows] if columns is None else values[name])
    by_query: dict[Any, Any] = {}
    for query_id, doc_id, value in zip(*chosen, strict=True):
        of_query = by_query.setdefault(query_id, {})
        if doc_id in of_query:
            raise InputError(f"{noun}: document {doc_id} occurs twice for query {query_id}")
        of_query[doc_id] = value
    return by_query
