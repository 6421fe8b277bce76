"""How do values that are read or passed become the ids, grades and texts of records?"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from numbers import Integral, Real
from typing import Any, TypeVar

import numpy as np

from birchbark.arguments import listed, mapping_of, shown
from birchbark.errors import InputError

T = TypeVar("T")

MAX_GRADE = 10_000  # measures need memory in proportion to the highest grade
MAX_WEIGHT = 1e30  # of a term or field; sums of products with it are finite


def is_missing(value: object) -> bool:
    """Whether a cell of a record or frame has no value: None, NaN, NaT, or pandas' NA."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    if isinstance(value, np.datetime64):
        return bool(np.isnat(value))
    return isinstance(value, float | np.floating) and bool(np.isnan(value))


def as_id(value: object, name: str = "id") -> str:
    """Return an id as a string; InputError unless it is a string or an integer.

    name: what it is, as the message calls it.
    """
    if type(value) is str:
        return value
    if isinstance(value, bool) or not isinstance(value, str | Integral):
        raise InputError(
            f"{name} is not an id",
            wanted="a string or an integer",
            found=json.dumps(value, default=repr),
        )
    try:
        return str(value)
    except ValueError:
        raise InputError(f"{name} is not an id: the number is too long") from None


def ids_of(doc_ids: Iterable[object]) -> list[str]:
    """Return the ids of documents as a list of strings; see `as_id` and `listed`."""
    ids = listed(doc_ids, "doc_ids")
    return ids if set(map(type, ids)) <= {str} else [as_id(x, "doc_id") for x in ids]  # type: ignore[return-value]


def as_grade(value: Any) -> int:
    """Return a relevance grade as an integer.

    Raises InputError unless it is a whole number, such as 1 or 1.0, of at most MAX_GRADE.
    """
    try:
        is_number = isinstance(value, int | float | np.integer | np.floating)
        number = float(value) if is_number else math.nan
    except OverflowError:
        number = math.inf
    if not math.isinf(number) and number % 1 != 0:
        raise InputError("grade is not an integer", found=shown(value))
    if abs(number) > MAX_GRADE:
        found = shown(value)
        raise InputError("grade is out of range", wanted=f"at most {MAX_GRADE:,}", found=found)
    return int(number)


def weighted_terms(values: object, name: str) -> dict[str, float]:
    """Return index terms with their weights as floats.

    name: what they are, as the message calls them. Raises InputError unless each term is a text
    that is not empty, and each weight a number from 0 to MAX_WEIGHT.
    """
    weights = mapping_of(values, name)
    for term, weight in weights.items():
        is_term, is_number = isinstance(term, str) and term, isinstance(weight, Real)
        if not (is_term and is_number and type(weight) is not bool and 0 <= weight <= MAX_WEIGHT):
            raise InputError(
                f"{name}: invalid weight of term {term!r}",
                wanted=f"terms as text, numbers from 0 to {MAX_WEIGHT:g}",
                found=shown(weight),
            )
    return {term: float(weight) for term, weight in weights.items()}


def by_id(values: Mapping[str, T], what: str) -> Mapping[str, T]:
    """Return a mapping with its ids as strings; InputError if two of them are equal then."""
    if set(map(type, values)) <= {str}:
        return values
    renamed: dict[str, T] = {}
    for key, value in values.items():
        name = as_id(key, f"{what} id")
        if name in renamed:
            raise InputError(f"{what} {name} occurs twice", found="as a string and as an integer")
        renamed[name] = value
    return renamed


def take_id(values: dict[str, Any], names: tuple[str, ...]) -> str:
    """Remove the id from `values` and return it: the first of `names` that has a value.

    Raises InputError if there is no id, or if it is neither a string nor an integer.
    """
    name = next((name for name in names if not is_missing(values.get(name))), None)
    if name is None:
        raise InputError(
            "no id",
            wanted=f"a field named {' or '.join(names)}",
            found=", ".join(sorted(values)) or "an empty object",
        )
    return as_id(values.pop(name), f"field {name}")


def as_paragraphs(name: str, value: object) -> str:
    """Return a text; of a list of texts, as it may be read from JSON or Parquet, its paragraphs."""
    if isinstance(value, list | tuple | np.ndarray):
        texts = [text for text in value if not is_missing(text)]
        if all(isinstance(text, str) for text in texts):
            return "\n\n".join(texts)
    return as_text(name, value)


def as_text(name: str, value: Any) -> str:
    """Return the value of a field as text; other values than strings as JSON."""
    if isinstance(value, str):
        return value
    number = float(value) if isinstance(value, float | np.floating) else math.nan
    if abs(number) < 2**53 and number.is_integer():
        return str(int(number))  # 2020.0, as an integer becomes in a column with missing values
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, default=_of_numpy)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(
            f"field {name} cannot be stored as text: {error}",
            wanted="a string, or a value that JSON can express",
            found=type(value).__name__,
        ) from None


def _of_numpy(value: object) -> object:
    """Return a number or an array of numpy as Python's own; TypeError for anything else."""
    if isinstance(value, np.datetime64):
        return str(value)
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable")
