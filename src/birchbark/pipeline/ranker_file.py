"""How is a ranker read from its TOML file, and from single settings?

The table [first_stage] says how candidates are found; each table [[stage]] describes a re-ranking
of the best documents before it. `birchbark ranker` prints all keys and their values.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, fields, is_dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from textwrap import wrap
from typing import Any

from birchbark import defaults
from birchbark.arguments import is_count
from birchbark.errors import InputError
from birchbark.pipeline.first_stage_options import FirstStageOptions
from birchbark.pipeline.stage_options import NAMES, NONE, StageOptions
from birchbark.section import Section, with_settings

FIRST_STAGE = "first_stage."


def read_ranker(
    path: Path | None = None, settings: Mapping[str, Any] = {}
) -> tuple[FirstStageOptions, list[StageOptions]]:
    """Return a first stage and the re-ranking stages that follow it, in order.

    Args:
        path: The ranker's TOML file; None for the default ranker.
        settings: Key → value that replaces the file's: `first_stage.KEY` for the table
            [first_stage], any other key for [[stage]]. None restores the default. The model `none`
            replaces all stages: there is no re-ranking.

    Raises:
        InputError: A table, a key or a value is invalid or has no effect, or there are several
            tables [[stage]], so that it is unknown which one a setting is for. Names file and key.
    """
    where = path or Path("ranker")
    contents = {} if path is None else Section.table(path)
    of_first = {key: x for key, x in settings.items() if key.startswith(FIRST_STAGE)}
    of_stage = {key: x for key, x in settings.items() if key not in of_first}
    for key in settings:
        _check_key(key)
    contents = with_settings(contents, of_first, where)
    if of_stage:
        contents["stage"] = [_changed(contents.get("stage", [{}]), of_stage, where)]
    file = Section(contents, str(where))
    table, tables = file.section("first_stage", {}), [*file.sections("stage", [{}])]
    file.reject_unknown_keys()
    if not tables or (path and not contents):
        wanted = "a table [first_stage], or tables [[stage]]"
        raise InputError("no ranker", where=file.where(), wanted=wanted)
    stages = [*_stages(tables)]
    if any(stage.model == NONE for stage in stages):
        if len(stages) > 1:
            raise InputError(f"model {NONE} beside another [[stage]]", where=file.where())
        if others := [key for key in tables[0].keys if key != "model"]:
            raise InputError(f"{others[0]} has no effect with model {NONE}", where=file.where())
        stages = []
    return FirstStageOptions().updated(table), stages


def _stages(tables: Sequence[Section]) -> Iterator[StageOptions]:
    """Yield the stage of each table; no stage is deeper than the one before it."""
    depth = defaults.RERANKING_DEPTH
    for number, table in enumerate(tables):
        stage = StageOptions().updated(table)
        if number and stage.depth > depth:
            if "depth" in table.keys:
                wanted = f"at most {depth}, as many as the [[stage]] before it"
                raise InputError(
                    "too deep", where=table.where("depth"), wanted=wanted, found=str(stage.depth)
                )
            stage = replace(stage, depth=depth)
        depth = stage.depth
        yield stage


def _check_key(key: str) -> None:
    """Raise InputError, with what may be meant, if a ranker has no such key."""
    first = [f"{FIRST_STAGE}{field.name}" for field in fields(FirstStageOptions)]
    if key in NAMES or ".".join(key.split(".")[:2]) in first:
        return
    every = [*NAMES, *first]
    of_first = FIRST_STAGE + key.partition(".")[0]
    near = [FIRST_STAGE + key] if of_first in every else get_close_matches(key, every)
    wanted = " or ".join(near) or "one that `birchbark ranker` prints"
    raise InputError(f"no key {key!r} of a ranker", wanted=wanted)


def _changed(stages: Any, settings: Mapping[str, Any], where: Path) -> Any:
    """Return the one stage of `stages`, with settings; of those that are None, without its own."""
    if settings.get("model") == NONE:
        stages = [{}]
    if not isinstance(stages, list) or len(stages) != 1 or not isinstance(stages[0], dict):
        raise InputError(
            f"there is not exactly one [[stage]], so that {min(settings)} could be for any or none",
            where=str(where),
            remedy="set it in the file",
        )
    return {key: x for key, x in {**stages[0], **settings}.items() if x is not None}


def as_toml(first_stage: FirstStageOptions, stages: Sequence[StageOptions]) -> str:
    """Return the text of a file that `read_ranker` reads as these, with the meaning of each key.

    Keys that are not set, or have no effect, are comments.
    """
    tables = ["[first_stage]\n" + "".join(_lines(first_stage))]
    if not stages:
        tables.append(f'[[stage]]\nmodel = "{NONE}"\n')
    tables += ["[[stage]]\n" + "".join(_lines(stage)) for stage in stages]
    return "\n".join(tables)


def settings_of(table: FirstStageOptions | StageOptions) -> dict[str, Any]:
    """Return the keys that are set and have an effect, with values that JSON has."""
    values = {each.name: getattr(table, each.name) for each in fields(table)}
    used = {
        name: value
        for name, value in values.items()
        if value is not None and value != () and value != {} and _has_effect(table, name)
    }
    return dict(json.loads(json.dumps(used, default=_plain)))


def _plain(value: Any) -> Any:
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else str(value)


def _lines(table: FirstStageOptions | StageOptions) -> Iterator[str]:
    for each in fields(table):
        value = getattr(table, each.name)
        yield from (f"# {line}\n" for line in wrap(each.metadata["meaning"], 98))
        if value is None or value == () or value == {}:
            yield f"# {each.name} =\n\n"
        else:
            unused = "" if _has_effect(table, each.name) else "# "
            yield f"{unused}{each.name} = {_toml(value)}\n\n"


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
        return f"{{ {', '.join(f'{_toml_string(k)} = {_toml(v)}' for k, v in value.items())} }}"
    if isinstance(value, str) and is_count(value):
        return value
    return _toml_string(list(value) if isinstance(value, tuple) else value)


def _toml_string(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text.replace("\x7f", "\\u007f")  # which JSON allows and TOML does not
