"""How is a table of a TOML file taken apart, so that each fault names its file and key?"""

from __future__ import annotations

import copy
import math
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import UnionType
from typing import Any, Final

from birchbark.errors import InputError

REQUIRED: Final = object()
WORDS = {
    str: "a string",
    int: "a whole number",
    list: "a list",
    dict: "a table",
    bool: "true or false",
}


class Section:
    """One table of a TOML file; every key must be taken, and `end` refuses what is left over."""

    def __init__(self, values: Mapping[str, Any], file: str, key: str = "") -> None:
        """values: as tomllib gives them. file, key: where the table stands, for errors."""
        self._table, self._file, self._key = dict(values), file, key
        self._taken: list[str] = []

    @classmethod
    def read(cls, path: Path) -> Section:
        """The whole file at `path`; InputError if it is not there or is no TOML."""
        return cls(cls.table(path), str(path))

    @staticmethod
    def table(path: Path) -> dict[str, Any]:
        """What the file at `path` holds, as tomllib gives it; InputError as `read`."""
        try:
            return tomllib.loads(path.read_text("utf-8"))
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            raise InputError("no such file", where=str(path), wanted="a TOML file") from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as broken:
            raise InputError(f"not a TOML file: {broken}", where=str(path)) from None

    def where(self, key: str = "") -> str:
        """File and dotted key, as errors name them."""
        dotted = ".".join(part for part in (self._key, key) if part)
        return f"{self._file}: {dotted}" if dotted else self._file

    def text(self, key: str, default: Any = REQUIRED) -> str:
        """A string that is not empty."""
        value: str = self._take(key, str, default)
        if not value and value is not default:
            raise InputError("is empty", where=self.where(key), wanted="a string")
        return value

    def one_of(self, key: str, known: Sequence[str], default: Any = REQUIRED) -> str:
        """One of some words."""
        value = self.text(key, default)
        if value not in known:
            raise InputError(
                f"unknown {key} {value!r}",
                where=self.where(key),
                remedy=f"one of {', '.join(known)}",
            )
        return value

    def whole(self, key: str, default: Any = REQUIRED, *, least: int = 0) -> int:
        """A whole number of `least` or more."""
        value: int = self._take(key, int, default)
        if value is not default and value < least:
            raise InputError(
                "out of range", where=self.where(key), wanted=f"{least} or more", found=str(value)
            )
        return value

    def wholes(self, key: str, default: tuple[int, ...], *, least: int = 0) -> tuple[int, ...]:
        """A whole number of `least` or more, or a list of different ones, which rise."""
        value = self._take(key, int | list, default)
        found = (value,) if isinstance(value, int) else tuple(value)
        if any(isinstance(one, bool) or not isinstance(one, int) or one < least for one in found):
            raise self._wrong(key, f"whole numbers of {least} or more", value)
        if sorted(set(found)) != list(found) or (not found and key in self._table):
            raise InputError(
                "wrong list", where=self.where(key), wanted="numbers that rise", found=str(value)
            )
        return found

    def number(self, key: str, default: Any = REQUIRED) -> float:
        """A number, whole or not; TOML's inf and nan are none."""
        value = self._take(key, int | float, default)
        if value is not default and not math.isfinite(value):
            raise self._wrong(key, "a finite number", value)
        return value if value is default else float(value)

    def numbers(self, key: str, default: tuple[float, ...]) -> tuple[float, ...]:
        """A number, or a list of different ones, which rise."""
        value = self._take(key, int | float | list, default)
        found = tuple(value) if isinstance(value, list | tuple) else (value,)
        if any(isinstance(one, bool) or not isinstance(one, int | float) for one in found):
            raise self._wrong(key, "numbers", value)
        if not all(map(math.isfinite, found)) or sorted(set(found)) != list(found) or not found:
            raise InputError(
                "wrong list", where=self.where(key), wanted="numbers that rise", found=str(value)
            )
        return tuple(map(float, found))

    def truth(self, key: str, default: Any = REQUIRED) -> bool:
        """True or false."""
        value: bool = self._take(key, bool, default)
        return value

    def text_or_texts(self, key: str, default: Any = REQUIRED) -> tuple[str, ...]:
        """A string, or a list of different strings, one or more."""
        one = isinstance(self._table.get(key), str)
        return (self.text(key),) if one else self.texts(key, default)

    def texts(self, key: str, default: Any = REQUIRED) -> tuple[str, ...]:
        """A list of different strings, one or more."""
        values = tuple(self._take(key, list, default))
        if key not in self._table:
            return values
        for value in values:
            if not isinstance(value, str) or not value:
                raise self._wrong(key, "strings", value)
        if not values or len(set(values)) < len(values):
            raise InputError(
                "is empty or repeats", where=self.where(key), wanted="different strings"
            )
        return values

    def rows(self, key: str) -> tuple[tuple[str | int | float, ...], ...]:
        """A list of lists of strings and numbers."""
        values = self._take(key, list, REQUIRED)
        for row in values:
            cells = row if isinstance(row, list) else [None]
            if bad := [
                c for c in cells if isinstance(c, bool) or not isinstance(c, str | int | float)
            ]:
                raise self._wrong(key, "lists of strings and numbers", bad[0])
        return tuple(tuple(row) for row in values)

    def values(self, key: str, default: Any = REQUIRED) -> dict[str, Any]:
        """A table as it is, whatever it holds."""
        found: dict[str, Any] = self._take(key, dict, default)
        return found

    @property
    def path(self) -> Path:
        """The file."""
        return Path(self._file)

    def section(self, key: str, default: Any = REQUIRED) -> Section:
        """A table within this one."""
        return Section(self._take(key, dict, default), self._file, self._inner(key))

    def sections(self, key: str, default: Any = REQUIRED) -> Iterator[Section]:
        """The tables of a list, written [[key]]."""
        for number, values in enumerate(self._take(key, list, default), 1):
            if not isinstance(values, dict):
                raise self._wrong(key, "tables", values)
            yield Section(values, self._file, f"{self._inner(key)}[{number}]")

    def table_or_tables(self, key: str) -> Iterator[Section]:
        """A table, or the tables of a list; none where the key is missing."""
        self._taken.append(key)
        if isinstance(self._table.get(key), list):
            yield from self.sections(key)
        elif key in self._table:
            yield self.section(key)

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys that are there, in the order of the file."""
        return tuple(self._table)

    def end(self) -> None:
        """Raise InputError for a key that nobody took; it lists those that there are."""
        if unknown := [key for key in self._table if key not in self._taken]:
            raise InputError(
                "unknown key",
                where=self.where(unknown[0]),
                remedy=f"one of {', '.join(self._taken)}",
            )

    def _take(self, key: str, kind: type | UnionType, default: Any) -> Any:
        self._taken.append(key)
        if key not in self._table:
            if default is REQUIRED:
                raise InputError("key is missing", where=self.where(key))
            return default
        value = self._table[key]
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise self._wrong(key, WORDS.get(kind, "a number"), value)  # type: ignore[arg-type]
        return value

    def _wrong(self, key: str, wanted: str, found: object) -> InputError:
        return InputError("wrong type", where=self.where(key), wanted=wanted, found=repr(found))

    def _inner(self, key: str) -> str:
        return f"{self._key}.{key}" if self._key else key


def with_settings(
    values: Mapping[str, Any], settings: Mapping[str, Any], path: Path
) -> dict[str, Any]:
    """The contents of the file at `path` with other settings: dotted key → value.

    A table of a list goes by its name: "data.mb.weight". Tables are made where there are none.
    Raises InputError for a key that leads nowhere.
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
            named = (one for one in table if isinstance(one, dict) and one.get("name") == key)
            table = next(named, None)
        else:
            table = table.setdefault(key, {})
        if not isinstance(table, dict | list):
            raise InputError(
                f"{key} is no table",
                where=where,
                remedy="name tables, and those of a list by their name",
            )
    if not isinstance(table, dict):
        raise InputError(f"{last} is no setting", where=where)
    table[last] = value
