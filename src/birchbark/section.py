"""How are the tables of a TOML file read, so that each error names the file and the key?"""

from __future__ import annotations

import copy
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import UnionType
from typing import Any, Final

from birchbark.errors import InputError

REQUIRED: Final = object()
TYPE_NAMES = {
    str: "a string",
    int: "an integer",
    list: "a list",
    dict: "a table",
    bool: "true or false",
}


class Section:
    """One table of a TOML file.

    Each method reads one key, checks its type, and returns `default` if the key is missing.
    Methods raise InputError if a value is invalid, or if a key without a default is missing.
    Call `reject_unknown_keys` after reading all known keys.
    """

    def __init__(self, values: Mapping[str, Any], file: str, key: str = "") -> None:
        """Wrap `values`, a table read by tomllib.

        file, key: the file that contains the table, and its dotted key, for error messages.
        """
        self._table, self._file, self._key = dict(values), file, key
        self._read: list[str] = []

    @classmethod
    def read(cls, path: Path) -> Section:
        """Read the file at `path`. Raises InputError if it is missing or not TOML."""
        return cls(cls.table(path), str(path))

    @staticmethod
    def table(path: Path) -> dict[str, Any]:
        """Return the contents of the file at `path` as dicts. Raises what `read` raises."""
        try:
            return tomllib.loads(path.read_text("utf-8"))
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            raise InputError("no such file", where=str(path), wanted="a TOML file") from None
        except RecursionError:
            raise InputError("not a TOML file: too deeply nested", where=str(path)) from None
        except ValueError as broken:  # also of an integer with thousands of digits
            raise InputError(f"not a TOML file: {broken}", where=str(path)) from None

    def where(self, key: str = "") -> str:
        """Return the file and the dotted key of `key`, for error messages."""
        dotted = ".".join(part for part in (self._key, key) if part)
        return f"{self._file}: {dotted}" if dotted else self._file

    def text(self, key: str, default: Any = REQUIRED) -> str:
        """Return a non-empty string."""
        value: str = self._take(key, str, default)
        if not value and value is not default:
            raise InputError("is empty", where=self.where(key), wanted="a string")
        return value

    def one_of(self, key: str, choices: Sequence[str], default: Any = REQUIRED) -> str:
        """Return one of the strings `choices`."""
        value = self.text(key, default)
        if value not in choices:
            raise InputError(
                f"unknown {key} {value!r}",
                where=self.where(key),
                wanted=f"one of {', '.join(choices)}",
            )
        return value

    def integer(self, key: str, default: Any = REQUIRED, *, minimum: int = 0) -> int:
        """Return an integer of `minimum` or more."""
        value: int = self._take(key, int, default)
        if value is not default and value < minimum:
            raise InputError(
                "out of range",
                where=self.where(key),
                wanted=f"{minimum} or more",
                found=str(value),
            )
        return value

    def count(self, key: str, default: Any = REQUIRED) -> str:
        """Return an integer of 1 or more as a string, or a non-empty string, such as `all`."""
        if isinstance(self._table.get(key), str):
            return self.text(key, default)
        value = self.integer(key, default, minimum=1)
        return value if value is default else str(value)

    def integers(self, key: str, default: tuple[int, ...], *, minimum: int = 0) -> tuple[int, ...]:
        """Return one integer or a strictly ascending list of integers, as a tuple.

        minimum: smallest valid integer.
        """
        value = self._take(key, int | list, default)
        numbers = (value,) if isinstance(value, int) else tuple(value)
        if any(isinstance(n, bool) or not isinstance(n, int) or n < minimum for n in numbers):
            raise self._wrong(key, f"integers of {minimum} or more", value)
        if sorted(set(numbers)) != list(numbers) or (not numbers and key in self._table):
            raise self._not_ascending(key, value)
        return numbers

    def number(self, key: str, default: Any = REQUIRED) -> float:
        """Return a finite integer or float as a float."""
        value = self._take(key, int | float, default)
        if value is not default and not _is_finite(value):
            raise self._wrong(key, "a finite number", value)
        return value if value is default else float(value)

    def numbers(self, key: str, default: tuple[float, ...]) -> tuple[float, ...]:
        """Return one finite number or a strictly ascending list of them, as a tuple of floats."""
        value = self._take(key, int | float | list, default)
        numbers = tuple(value) if isinstance(value, list | tuple) else (value,)
        if any(isinstance(n, bool) or not isinstance(n, int | float) for n in numbers):
            raise self._wrong(key, "numbers", value)
        finite = all(map(_is_finite, numbers))
        if not finite or sorted(set(numbers)) != list(numbers) or not numbers:
            raise self._not_ascending(key, value)
        return tuple(map(float, numbers))

    def boolean(self, key: str, default: Any = REQUIRED) -> bool:
        """Return true or false."""
        value: bool = self._take(key, bool, default)
        return value

    def text_or_texts(self, key: str, default: Any = REQUIRED) -> tuple[str, ...]:
        """Return one string or a list of distinct strings, as a non-empty tuple."""
        single = isinstance(self._table.get(key), str)
        return (self.text(key),) if single else self.texts(key, default)

    def texts(self, key: str, default: Any = REQUIRED) -> tuple[str, ...]:
        """Return a non-empty list of distinct, non-empty strings as a tuple."""
        values = tuple(self._take(key, list, default))
        if key not in self._table:
            return values
        for value in values:
            if not isinstance(value, str) or not value:
                raise self._wrong(key, "strings", value)
        if not values or len(set(values)) < len(values):
            raise InputError(
                "is empty or repeats a string", where=self.where(key), wanted="different strings"
            )
        return values

    def rows(self, key: str) -> tuple[tuple[str | int | float, ...], ...]:
        """Return a list of rows, each a list of strings and numbers."""
        values = self._take(key, list, REQUIRED)
        for row in values:
            cells = row if isinstance(row, list) else [None]
            for cell in cells:
                if isinstance(cell, bool) or not isinstance(cell, str | int | float):
                    raise self._wrong(key, "lists of strings and numbers", cell)
        return tuple(tuple(row) for row in values)

    def has_table(self, key: str) -> bool:
        """Return whether there is a table `key`, which is a known key from now on."""
        self._take(key, dict, {})
        return key in self._table

    def values(self, key: str, default: Any = REQUIRED) -> dict[str, Any]:
        """Return a table as a dict, with any contents."""
        values: dict[str, Any] = self._take(key, dict, default)
        return values

    @property
    def path(self) -> Path:
        """The path of the file."""
        return Path(self._file)

    def section(self, key: str, default: Any = REQUIRED) -> Section:
        """Return a subtable as a Section."""
        return Section(self._take(key, dict, default), self._file, self._inner(key))

    def sections(self, key: str, default: Any = REQUIRED) -> Iterator[Section]:
        """Yield each table of an array of tables, written [[key]]."""
        for number, values in enumerate(self._take(key, list, default), 1):
            if not isinstance(values, dict):
                raise self._wrong(key, "tables", values)
            yield Section(values, self._file, f"{self._inner(key)}[{number}]")

    def table_or_tables(self, key: str) -> Iterator[Section]:
        """Yield one table, or each table of an array; yield nothing if the key is missing."""
        self._read.append(key)
        if isinstance(self._table.get(key), list):
            yield from self.sections(key)
        elif key in self._table:
            yield self.section(key)

    @property
    def keys(self) -> tuple[str, ...]:
        """The table's keys, in file order."""
        return tuple(self._table)

    def reject_unknown_keys(self) -> None:
        """Raise InputError for a key that no method has read; the message lists the known keys."""
        if unknown := [key for key in self._table if key not in self._read]:
            raise InputError(
                "unknown key",
                where=self.where(unknown[0]),
                wanted=f"one of {', '.join(self._read)}",
            )

    def _take(self, key: str, kind: type | UnionType, default: Any) -> Any:
        self._read.append(key)
        if key not in self._table:
            if default is REQUIRED:
                raise InputError("key is missing", where=self.where(key))
            return default
        value = self._table[key]
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise self._wrong(key, TYPE_NAMES.get(kind, "a number"), value)  # type: ignore[arg-type]
        return value

    def _not_ascending(self, key: str, found: object) -> InputError:
        where = self.where(key)
        return InputError("wrong list", where=where, wanted="ascending numbers", found=str(found))

    def _wrong(self, key: str, wanted: str, found: object) -> InputError:
        return InputError("wrong type", where=self.where(key), wanted=wanted, found=repr(found))

    def _inner(self, key: str) -> str:
        return f"{self._key}.{key}" if self._key else key


def _is_finite(number: float) -> bool:
    """Return whether a number, such as an integer of 400 digits, is finite as a float."""
    return abs(number) <= sys.float_info.max


def with_settings(
    values: Mapping[str, Any], settings: Mapping[str, Any], path: Path
) -> dict[str, Any]:
    """Return `values` with some settings changed.

    values: contents of the TOML file at `path`. settings: dotted key → new value; in an array of
    tables, a key selects a table by its `name`: "data.mb.weight" sets the weight of the [[data]]
    named mb. None removes the key. path: the file, for error messages. Missing tables are created.
    Raises InputError for a key that does not lead to a table.
    """
    tables = copy.deepcopy(dict(values))
    for key, value in settings.items():
        _put(tables, key.split("."), value, f"{path}: {key}")
    return tables


def _put(values: dict[str, Any], keys: Sequence[str], value: Any, where: str) -> None:
    *outer, last = keys
    table: Any = values
    for key in outer:
        if isinstance(table, list):
            items = (item for item in table if isinstance(item, dict) and item.get("name") == key)
            table = next(items, None)
        else:
            table = table.get(key, {}) if value is None else table.setdefault(key, {})
        if not isinstance(table, dict | list):
            raise InputError(
                f"{key} is not a table",
                where=where,
                remedy="select a table by its key, and a table of an array by its name",
            )
    if not isinstance(table, dict):
        raise InputError(f"{last} is not a setting", where=where)
    if value is None:
        table.pop(last, None)
    else:
        table[last] = value
