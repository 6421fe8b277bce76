"""How is a ranker read from its TOML file?

The table [first_stage] says how candidates are found; each table [[stage]] describes a re-ranking
of the best documents before it. `birchbark ranker show` prints all keys and their values.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from birchbark.errors import InputError
from birchbark.pipeline.first_stage_options import FirstStageOptions
from birchbark.pipeline.stage_options import StageOptions
from birchbark.section import Section


def read_ranker(
    path: Path,
    first_stage: FirstStageOptions = FirstStageOptions(),
    stage: StageOptions = StageOptions(),
) -> tuple[FirstStageOptions, list[StageOptions]]:
    """Return the first stage and the re-ranking stages, in order, that a TOML file describes.

    first_stage, stage: give the keys that are missing; `stage` is the only stage of a file without
    one. Raises InputError, which names the file and the key, if a table or a key is invalid.
    """
    top = Section.read(path)
    stages = [stage.updated(section) for section in top.sections("stage", [])]
    if "first_stage" in top.keys:
        first_stage = first_stage.updated(top.section("first_stage"))
    elif not stages:
        raise InputError(
            "no ranker", where=str(path), wanted="a table [first_stage], or tables [[stage]]"
        )
    top.reject_unknown_keys()
    return first_stage, stages or [stage]


def as_toml(first_stage: FirstStageOptions, stages: Sequence[StageOptions]) -> str:
    """Return the text of a file that `read_ranker` reads as these.

    Keys that are not set, or have no effect, are comments.
    """
    tables = ["[first_stage]\n" + "".join(_lines(first_stage))]
    tables += ["[[stage]]\n" + "".join(_lines(stage)) for stage in stages]
    return "\n".join(tables)


def _lines(table: FirstStageOptions | StageOptions) -> Iterator[str]:
    for name in (field.name for field in fields(table)):
        value = getattr(table, name)
        if value is None or value == () or value == {}:
            yield f"# {name} is not set\n"
        else:
            yield f"{'' if _has_effect(table, name) else '# '}{name} = {_toml(value)}\n"


def _has_effect(table: FirstStageOptions | StageOptions, name: str) -> bool:
    try:
        table.check([name])
    except InputError:
        return False
    return True


def _toml(value: Any) -> str:
    """Return a value as TOML, tables on one line."""
    if is_dataclass(value):
        value = {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{json.dumps(k)} = {_toml(v)}' for k, v in value.items())} }}"
    if isinstance(value, tuple) and isinstance(value[0], float):
        return _toml(dict(zip(("k1", "b"), value, strict=True)))
    return json.dumps(list(value) if isinstance(value, tuple) else value)
