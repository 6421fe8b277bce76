"""Does one table of rules reject options that have no effect or contradict each other?"""

from __future__ import annotations

import click
import pytest

from birchbark.cli import group
from birchbark.cli.option_rules import (
    EXCLUDES,
    NEEDS,
    NEEDS_VALUE,
    check_options,
)
from birchbark.errors import InputError
from test_defaults import commands

VALUES = {"vectors": None, "pooling": "tokens", "fused_by": "ranks", "scale": "raw", "ranks": "1-9"}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["pooling"], "pooling has no effect without vectors"),
        (["scale"], "scale has no effect with fused_by ranks"),
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
    check_options(["pooling", "vectors"], {**VALUES, "vectors": "model"})


def test_names_are_spelled_as_users_write_them() -> None:
    """The command line shows --vector-bits, not vector_bits."""
    with pytest.raises(InputError, match="--vector-bits has no effect without --vectors"):
        check_options(["vector_bits"], VALUES, lambda name: "--" + name.replace("_", "-"))


def test_every_rule_is_about_existing_options() -> None:
    """A renamed option must be renamed in the rules as well."""
    names: set[str | None] = set()
    for _, command in commands(group, "birchbark"):
        if not isinstance(command, click.Group):
            names |= {parameter.name for parameter in command.params}
    in_rules = {*NEEDS, *NEEDS_VALUE, *EXCLUDES}
    in_rules |= {name for others in (*NEEDS.values(), *EXCLUDES.values()) for name in others}
    in_rules |= {name for name, _ in NEEDS_VALUE.values()}
    assert in_rules <= names
