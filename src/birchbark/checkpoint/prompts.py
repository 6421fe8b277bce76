"""Which prompts does an embedding model put before queries and documents?

They are in config_sentence_transformers.json. As the documentation of sentence-transformers 6 says,
queries have the prompt called `query`, and documents that called `document`, else `passage`, else
`corpus`. The default prompt is for texts that are neither, so that no query or document has it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import astuple, dataclass
from pathlib import Path

from birchbark.checkpoint.settings import SETTINGS, read_settings
from birchbark.errors import CheckpointError

DOCUMENT_NAMES = ("document", "passage", "corpus")
_HALF_PAIR = re.compile("[\ud800-\udfff]")
PREFIXES = {"query": "query_prefix", "document": "document_prefix"}  # prompt → PyLate's key for it


@dataclass(frozen=True, slots=True)
class Prompts:
    """The texts that are put before queries and documents; the default is none.

    Attributes:
        query: What is put before queries, including the space that separates them.
        document: The same for documents and their segments.
        markers: Beginnings of prompts that are single tokens, if the tokeniser has them.
    """

    query: str = ""
    document: str = ""
    markers: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.query or self.document)

    @property
    def fingerprint(self) -> str:
        """A hash that is equal only for equal prompts."""
        return hashlib.sha256(json.dumps(astuple(self)).encode()).hexdigest()[:16]


def read_prompts(root: Path) -> Prompts:
    """Return the prompts of the model directory `root`.

    Raises CheckpointError if they are not texts by name, or the default is none of them.
    """
    named, settings = dict(_named_prompts(root)), read_settings(root)
    markers = {name: settings[key] or "" for name, key in PREFIXES.items() if key in settings}
    if not all(map(_is_text, markers.values())):
        raise CheckpointError(
            f"invalid {' or '.join(PREFIXES.values())}",
            where=str(root / SETTINGS),
            wanted="texts",
            found=repr(markers)[:80],
        )
    for name, marker in markers.items():
        named[name] = marker + (named.get(name) or "").removeprefix(marker)
    document = next((named[name] for name in DOCUMENT_NAMES if named.get(name) is not None), None)
    stated = tuple(marker for marker in markers.values() if marker.strip())
    return Prompts(named.get("query") or "", document or "", stated)


def no_prompts(root: Path) -> Prompts:
    """Return no prompts, for a model that reads query and text together.

    Raises CheckpointError if sentence-transformers would put a prompt before both.
    """
    if prompt := _named_prompts(root).get(read_settings(root).get("default_prompt_name") or ""):
        raise CheckpointError(
            "a prompt before query and text together is not supported",
            where=str(root / SETTINGS),
            wanted="default_prompt_name null",
            found=repr(prompt)[:80],
        )
    return Prompts()


def _named_prompts(root: Path) -> Mapping[str, str | None]:
    """Return the prompts by name; None for one that is not stated."""
    settings = read_settings(root)
    prompts, default = settings.get("prompts") or {}, settings.get("default_prompt_name")
    if not isinstance(prompts, dict) or not all(
        value is None or _is_text(value) for value in prompts.values()
    ):
        raise CheckpointError(
            "invalid prompts",
            where=str(root / SETTINGS),
            wanted="an object of texts by name",
            found=repr(prompts)[:80],
        )
    if default is not None and default not in ("query", "document", *prompts):
        raise CheckpointError(
            "unknown default_prompt_name",
            where=str(root / SETTINGS),
            wanted=" or ".join(["null", *prompts]),
            found=repr(default)[:80],
        )
    return prompts


def _is_text(value: object) -> bool:
    """Whether a value is a text that a tokeniser takes: valid Unicode."""
    return isinstance(value, str) and not _HALF_PAIR.search(value)
