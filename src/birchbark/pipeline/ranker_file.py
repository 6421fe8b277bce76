"""How is a ranker read from its TOML file?

The table [first_stage] says how candidates are found; each table [[stage]] describes a re-ranking
of the best documents before it. `birchbark ranker show` prints all keys and their values.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from birchbark.errors import InputError
from birchbark.option_rules import FIRST_STAGE_OPTIONS
from birchbark.pipeline.first_stage_options import FirstStageOptions
from birchbark.pipeline.stage_options import StageOptions
from birchbark.section import Section


def read_ranker(path: Path) -> tuple[FirstStageOptions, list[StageOptions]]:
    """Return the first stage and the re-ranking stages, in order, that the file describes.

    Raises InputError, which names the file and the key, if a table or a key is invalid.
    """
    return ranker_of(Section.read(path))


def ranker_of(
    file: Section,
    first_stage: FirstStageOptions = FirstStageOptions(),
    stage: StageOptions = StageOptions(),
    given: Collection[str] = (),
    spell: Callable[[str], str] = str,
) -> tuple[FirstStageOptions, list[StageOptions]]:
    """Return what `read_ranker` returns, of the contents of a file.

    first_stage, stage: give the keys that are missing; `stage` is the only stage of a file without
    one. given: names of options that the user has set, each of which must have an effect. spell:
    returns an option's name as users write it.
    """
    of_first, of_stages = file.section("first_stage", {}), [*file.sections("stage", [])]
    file.reject_unknown_keys()
    if not of_stages and "first_stage" not in file.keys:
        wanted = "a table [first_stage], or tables [[stage]]"
        raise InputError("no ranker", where=file.where(), wanted=wanted)
    for name in given:
        tables = [of_first] if name in FIRST_STAGE_OPTIONS else of_stages
        key = "model" if name == "first_stage_model" else name
        if tables and all(key in table.keys for table in tables):
            raise InputError(f"{spell(name)} has no effect: {tables[0].where(key)} is set")
    stages = [stage.updated(section) for section in of_stages]
    return first_stage.updated(of_first), stages or [stage]


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
    text = json.dumps(list(value) if isinstance(value, tuple) else value, ensure_ascii=False)
    return text.replace("\x7f", "\\u007f")  # which JSON allows and TOML does not
