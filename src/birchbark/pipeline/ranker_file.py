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
from birchbark.pipeline.first_stage_options import FirstStageOptions
from birchbark.pipeline.stage_options import StageOptions, check_embedding
from birchbark.section import Section


def read_ranker(path: Path) -> tuple[FirstStageOptions, list[StageOptions]]:
    """Return the first stage and the re-ranking stages, in order, that the file describes.

    Raises InputError, which names the file and the key, if a table or a key is invalid.
    """
    file = Section.read(path)
    return first_stage_of(file), stages_of(file)


def first_stage_of(
    file: Section,
    usual: FirstStageOptions = FirstStageOptions(),
    given: Collection[str] = (),
    spell: Callable[[str], str] = str,
) -> FirstStageOptions:
    """Return the first stage that a ranker's file describes.

    usual: gives the keys that are missing. given: names of options that the user has set, each of
    which must have an effect. spell: returns an option's name as users write it.
    """
    table, _ = _tables(file)
    for name in given:
        _check_effect(spell(name), "model" if name == "first_stage_model" else name, [table])
    return usual.updated(table)


def stages_of(
    file: Section,
    usual: StageOptions = StageOptions(),
    given: Collection[str] = (),
    spell: Callable[[str], str] = str,
) -> list[StageOptions]:
    """Return the re-ranking stages that a ranker's file describes, in order; `usual` if none.

    For the arguments see `first_stage_of`.
    """
    _, tables = _tables(file)
    if not tables:
        usual.check(given, spell)
        return [usual]
    for name in given:
        _check_effect(spell(name), name, tables)
    stages = [usual.updated(table) for table in tables]
    check_embedding(given, stages, spell)
    return stages


def _tables(file: Section) -> tuple[Section, list[Section]]:
    """Return [first_stage], which may be empty, and each [[stage]]."""
    of_first, of_stages = file.section("first_stage", {}), [*file.sections("stage", [])]
    file.reject_unknown_keys()
    if not of_stages and "first_stage" not in file.keys:
        wanted = "a table [first_stage], or tables [[stage]]"
        raise InputError("no ranker", where=file.where(), wanted=wanted)
    return of_first, of_stages


def _check_effect(option: str, key: str, tables: Sequence[Section]) -> None:
    """Raise InputError if all tables set what an option would."""
    if all(key in table.keys for table in tables):
        raise InputError(f"{option} has no effect: {tables[0].where(key)} is set")


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
