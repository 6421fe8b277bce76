"""Does one table of rules reject options that have no effect or contradict each other?"""

from __future__ import annotations

from dataclasses import fields

import click
import pytest

from birchbark.cli import group
from birchbark.errors import InputError
from birchbark.option_rules import (
    EXCLUDES,
    FIRST_STAGE_OPTIONS,
    NEEDS,
    NEEDS_VALUE,
    check_options,
)
from birchbark.pipeline.first_stage_options import FirstStageOptions
from birchbark.pipeline.stage_options import StageOptions
from test_defaults import commands

VALUES = {"duo": None, "duo_depth": 10, "first_stage_model": "dense", "k1": 0.9, "ranks": "1-9"}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["duo_depth"], "duo_depth has no effect without duo"),
        (["k1"], "k1 has no effect with first_stage_model dense"),
        (["per_query", "grades"], "per_query cannot be combined with grades"),
    ],
)
def test_conflicts(given: list[str], message: str) -> None:
    """The message names both options."""
    with pytest.raises(InputError, match=message):
        check_options(given, VALUES)


def test_rules_apply_only_where_their_options_exist() -> None:
    """`ranks` needs `run_file`, which these values do not have; nothing else is given."""
    check_options(["ranks"], VALUES)
    check_options([], VALUES)
    check_options(["duo_depth", "duo"], {**VALUES, "duo": "model"})


def test_names_are_spelled_as_users_write_them() -> None:
    """The command line shows --duo-depth, not duo_depth."""
    with pytest.raises(InputError, match="--duo-depth has no effect without --duo"):
        check_options(["duo_depth"], VALUES, lambda name: "--" + name.replace("_", "-"))


def test_every_rule_is_about_existing_options() -> None:
    """A renamed option must be renamed in the rules as well."""
    names: set[str | None] = {field.name for field in fields(StageOptions)}
    for _, command in commands(group, "birchbark"):
        if not isinstance(command, click.Group):
            names |= {parameter.name for parameter in command.params}
    names |= {field.name for field in fields(FirstStageOptions)}
    search = dict(commands(group, "birchbark"))["birchbark search"]
    options = {parameter.name for parameter in search.params} - {"query_tokens"}
    of_rankers = {field.name for field in fields(StageOptions)} & options
    assert len(of_rankers) > 10
    assert of_rankers <= set(EXCLUDES["first_stage_only"])
    in_rules = {*FIRST_STAGE_OPTIONS, *NEEDS, *NEEDS_VALUE, *EXCLUDES}
    in_rules |= {name for others in (*NEEDS.values(), *EXCLUDES.values()) for name in others}
    in_rules |= {name for name, _ in NEEDS_VALUE.values()}
    assert in_rules <= names
