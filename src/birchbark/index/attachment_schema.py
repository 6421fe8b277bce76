"""What is an attachment: data that others compute from documents, and keep beside the postings?

The index knows neither models nor segments. It knows that a document has some rows in each of a few
arrays, which form these rows have, and what they were made by.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from birchbark.errors import InputError

Rows = dict[str, NDArray[Any]]  # array → the rows of one document
_NAME = re.compile(r"[a-z][a-z0-9_-]{0,39}")  # part of a file's name, on any file system


@dataclass(frozen=True, slots=True)
class RowForm:
    """What one row of an array is: numbers of `dtype` (numpy's name for it) in `shape`."""

    dtype: str
    shape: tuple[int, ...] = ()

    def __str__(self) -> str:
        return f"{self.dtype} (rows{''.join(f', {size}' for size in self.shape)})"

    def fits(self, values: NDArray[Any]) -> bool:
        """Whether `values` are rows of this form."""
        form = (values.dtype, values.ndim, values.shape[1:])
        return form == (np.dtype(self.dtype), 1 + len(self.shape), self.shape)


@dataclass(frozen=True, slots=True)
class AttachmentSchema:
    """What an attachment keeps of each document, and what makes it.

    config: JSON values, all that rows depend on besides the document. Rows that were made under
    another config are never mixed with these. arrays: name → form of its rows; how many rows a
    document has may differ from array to array.
    """

    config: Mapping[str, Any]
    arrays: Mapping[str, RowForm]

    def checked(self, name: str) -> AttachmentSchema:
        """This, as it will be read again, arrays by name; InputError if `name` cannot keep it."""
        for used in (name, *self.arrays):
            if not _NAME.fullmatch(used):
                wanted = "small letters, digits, _ and -, a letter first, 40 at most"
                raise InputError("cannot be a name in an attachment", wanted=wanted, found=used)
        if not self.arrays:
            raise InputError("an attachment without arrays", where=name)
        try:
            config = json.loads(json.dumps(dict(self.config), allow_nan=False))
        except (TypeError, ValueError) as broken:
            raise InputError(f"config is not JSON: {broken}", where=name) from broken
        arrays = {name: _plain(name, form) for name, form in sorted(self.arrays.items())}
        return AttachmentSchema(config, arrays)

    @classmethod
    def read(cls, values: dict[str, Any]) -> AttachmentSchema:
        """Out of the manifest; KeyError or TypeError if damaged."""
        forms = values["arrays"].items()
        arrays = {name: RowForm(form["dtype"], tuple(form["shape"])) for name, form in forms}
        return cls(values["config"], arrays)


def _plain(array: str, form: RowForm) -> RowForm:
    """`form` with numpy's own name of the type; InputError for what is no plain number."""
    try:
        dtype = np.dtype(form.dtype)
    except TypeError:
        dtype = np.dtype(object)
    if dtype.kind not in "iuf" or not dtype.isnative or min(form.shape, default=1) < 1:
        raise InputError(
            "not a form of rows",
            where=array,
            wanted="int, uint or float of some bits, in a shape without 0",
            found=str(form),
        )
    return RowForm(dtype.name, tuple(map(int, form.shape)))


@dataclass(frozen=True, slots=True)
class AttachedEntry:
    """In the manifest, one folder of rows of documents of one part.

    documents: how many have rows there, if only none. rows: how many in each array. checksum: over
    its files.
    """

    name: str
    documents: int
    rows: tuple[int, ...]
    checksum: str

    @classmethod
    def read(cls, values: dict[str, Any]) -> AttachedEntry:
        """Out of the manifest; KeyError or TypeError if damaged."""
        return cls(**values | {"rows": tuple(values["rows"])})
