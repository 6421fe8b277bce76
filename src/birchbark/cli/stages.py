"""How does a file name several rankers that rank in turn? Each by the words of the options."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from birchbark.errors import InputError
from birchbark.section import Section

TEXTS = (
    *("model", "pooling", "segments", "aggregate", "first_stage_scale", "embedding", "precision"),
    *("duo", "duo_aggregate"),
)
WHOLES = ("depth", "max_segments", "max_length", "duo_depth", "duo_most")
NUMBERS = ("first_stage_weight", "embedding_weight")
KNOWN = {"first_stage_scale": ("raw", "max", "minmax"), "precision": ("fp32", "int8")}


def read_stages(path: Path) -> list[dict[str, Any]]:
    """Name of an option → value, for each [[stage]] of the TOML file at `path`, in their order.

    Raises InputError for any fault, naming the file and the key.
    """
    top = Section.read(path)
    found = []
    for section in top.sections("stage"):
        keys = section.keys
        own: dict[str, Any] = {name: section.text(name) for name in TEXTS if name in keys}
        own |= {name: section.whole(name, least=1) for name in WHOLES if name in keys}
        own |= {name: section.number(name) for name in NUMBERS if name in keys}
        for name, known in KNOWN.items():
            if name in own and own[name] not in known:
                raise InputError(
                    f"unknown {name} {own[name]!r}",
                    where=section.where(name),
                    remedy=f"one of {', '.join(known)}",
                )
        if unknown := [key for key in keys if key not in own]:
            raise InputError(
                "unknown key",
                where=section.where(unknown[0]),
                remedy=f"one of {', '.join((*TEXTS, *WHOLES, *NUMBERS))}",
            )
        found.append(own)
    top.end()
    if not found:
        raise InputError("no stages", where=str(path), wanted="[[stage]], once or more")
    return found
