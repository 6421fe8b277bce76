"""Which arrays does an attachment store per document, and how were they computed?

An attachment is data computed from documents, such as vectors, and stored beside the postings. The
index knows nothing about models or segments. It knows that each document has rows in each array,
the dtype and shape of a row, and the configuration that produced the rows.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from birchbark.errors import InputError

Rows = dict[str, NDArray[Any]]  # array name → the rows of one document
_NAME = re.compile(r"[a-z][a-z0-9_-]{0,39}")  # becomes part of a file name on any file system


@dataclass(frozen=True, slots=True)
class RowForm:
    """The form of one row of an array. dtype: a numpy dtype's name. shape: the row's shape."""

    dtype: str
    shape: tuple[int, ...] = ()

    def __str__(self) -> str:
        return f"{self.dtype} (rows{''.join(f', {size}' for size in self.shape)})"

    def fits(self, values: NDArray[Any]) -> bool:
        """Return whether `values` consists of rows of this form, (rows, *shape)."""
        form = (values.dtype, values.ndim, values.shape[1:])
        return form == (np.dtype(self.dtype), 1 + len(self.shape), self.shape)


@dataclass(frozen=True, slots=True)
class AttachmentSchema:
    """The arrays that an attachment stores for each document, and how they were computed.

    config: everything that the rows depend on besides the document, as JSON values; rows computed
    under different configs are never mixed. arrays: array name → form of its rows. A document may
    have different numbers of rows in different arrays.
    """

    config: Mapping[str, Any]
    arrays: Mapping[str, RowForm]

    def checked(self, name: str) -> AttachmentSchema:
        """Return this schema as it will be read back, with its arrays sorted by name.

        name: the attachment's name. Raises InputError if the name or the schema cannot be stored.
        """
        for used in (name, *self.arrays):
            if not _NAME.fullmatch(used):
                wanted = "at most 40 lower-case letters, digits, _ and -, beginning with a letter"
                raise InputError("invalid name in an attachment", wanted=wanted, found=used)
        if not self.arrays:
            raise InputError("an attachment needs at least one array", where=name)
        try:
            config = json.loads(json.dumps(dict(self.config), allow_nan=False))
        except (TypeError, ValueError) as error:
            raise InputError(f"config is not JSON: {error}", where=name) from error
        arrays = {name: _checked_form(name, form) for name, form in sorted(self.arrays.items())}
        return AttachmentSchema(config, arrays)

    def check_same(self, name: str, stored: Mapping[str, AttachmentSchema], where: Path) -> None:
        """Raise InputError if an index has the attachment `name` with another schema.

        stored: the attachments of the index. where: its directory.
        """
        if stored.get(name, self) != self:
            raise InputError(f"the index has {name} with another schema", where=str(where))

    @classmethod
    def read(cls, values: dict[str, Any]) -> AttachmentSchema:
        """Make the schema from its JSON in the manifest; KeyError or TypeError if damaged."""
        forms = values["arrays"].items()
        arrays = {name: RowForm(form["dtype"], tuple(form["shape"])) for name, form in forms}
        return cls(values["config"], arrays)


def _checked_form(array: str, form: RowForm) -> RowForm:
    """Return `form` with numpy's name of the dtype; InputError if it is not a number type."""
    try:
        dtype = np.dtype(form.dtype)
    except TypeError:
        dtype = np.dtype(object)
    if dtype.kind not in "iuf" or not dtype.isnative or min(form.shape, default=1) < 1:
        raise InputError(
            "unsupported row form",
            where=array,
            wanted="an int, uint or float dtype in native byte order, and a shape without 0",
            found=str(form),
        )
    return RowForm(dtype.name, tuple(map(int, form.shape)))


@dataclass(frozen=True, slots=True)
class RowFolderEntry:
    """The manifest's entry for one folder of rows, which covers some documents of one part.

    name: the name of the folder. documents: the number of documents in it, including documents with
    zero rows. rows: the number of rows in each array. checksum: the checksum of the folder's files.
    """

    name: str
    documents: int
    rows: tuple[int, ...]
    checksum: str

    @classmethod
    def read(cls, values: dict[str, Any]) -> RowFolderEntry:
        """Make the entry from its JSON in the manifest; KeyError or TypeError if damaged."""
        return cls(**values | {"rows": tuple(values["rows"])})
