"""Is each default value defined only once, in `birchbark.defaults`?"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import Any

import click
import pytest

import birchbark
from birchbark import defaults
from birchbark.cli import COMMAND_NAMES, group
from birchbark.collection.data_files import DEFAULT_DATA_ROOT
from birchbark.combine.aggregate import Top, TopMean, parse_aggregation
from birchbark.combine.interpolate import DEFAULT_SCALE, Interpolation
from birchbark.combine.pairwise import Pairwise
from birchbark.pipeline.settings.ranker import Ranker
from birchbark.pipeline.stage_options import StageOptions
from birchbark.retrieve.bm25 import BM25
from birchbark.retrieve.rm3 import RM3
from birchbark.segment.by_name import DEFAULT_WINDOW, parse_segmenter
from birchbark.segment.passages import Passages
from birchbark.segment.windows import Windows
from birchbark.train.initialise import Initialisation
from birchbark.train.masking import Masking
from birchbark.train.objectives import Objective
from conftest import WordScorer

SOURCE = Path(birchbark.__file__).parent
OWN_OF_ONE_COMMAND = {"'whole'", "'title'", "'text'", "Path('birchbark-demo')", "None"}
DATACLASSES = (
    *(BM25, RM3, Interpolation, Top, TopMean, Pairwise, Passages, Windows),
    *(Ranker, StageOptions),
    *(Initialisation, Masking, Objective),
)


def commands(command: click.Command, name: str) -> Iterator[tuple[str, click.Command]]:
    """Yield all commands below `command`, with their names."""
    yield name, command
    if isinstance(command, click.Group):
        for below_name in command.list_commands(click.Context(command)):
            below = command.get_command(click.Context(command), below_name)
            assert below
            yield from commands(below, f"{name} {below_name}")


def test_options_take_their_defaults_from_one_module() -> None:
    """No `default=` of an option is a literal, unless no other command has this option."""
    literals = []
    for path in (SOURCE / "cli").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.keyword) and node.arg == "default":
                written = ast.unparse(node.value)
                if "defaults." not in written and written not in OWN_OF_ONE_COMMAND:
                    literals.append(f"{path.name}: {written}")
    assert [line for line in literals if not line.endswith(": default")] == []


@pytest.mark.parametrize("kind", DATACLASSES)
def test_dataclasses_take_their_defaults_from_one_module(kind: type) -> None:
    """No numeric or string default of these fields is a literal; None, False, 0 and () may be."""
    (tree,) = ast.parse(inspect.getsource(kind)).body
    assert isinstance(tree, ast.ClassDef)
    literals = [
        ast.unparse(node)
        for node in tree.body
        if isinstance(node, ast.AnnAssign)
        and isinstance(node.value, ast.Constant | ast.Tuple)
        and ast.unparse(node.value) not in {"None", "False", "True", "0", "()"}
        and "ClassVar" not in ast.unparse(node.annotation)
    ]
    assert literals == []


def test_options_and_keys_of_stages_have_the_same_defaults() -> None:
    """Those of `birchbark rerank`, which has an option for some keys of a table [[stage]]."""
    rerank = dict(commands(group, "birchbark"))["birchbark rerank"]
    options = {parameter.name: parameter.default for parameter in rerank.params}
    both = [field for field in fields(StageOptions) if field.name in options]
    assert len(both) == 3
    for field in both:
        given: Any = options[field.name]
        assert (None if "UNSET" in repr(given).upper() else given) == field.default, field.name


def test_same_option_has_same_default_in_all_commands() -> None:
    """An option of several commands differs only where its meaning does."""
    values: dict[str, set[str]] = {}
    for name, command in commands(group, "birchbark"):
        assert not name.split()[1:] or name.split()[1] in COMMAND_NAMES
        for parameter in command.params:
            if parameter.opts[0].startswith("--"):
                values.setdefault(parameter.opts[0], set()).add(repr(parameter.default))
    differing = {name for name, found in values.items() if len(found) > 1}
    assert differing <= {
        "--depth",
        "--segments",
        "--model",
        "--budget",
        "--to",
        "--tag",
        "--top",
    }


def test_defaults_agree_with_each_other() -> None:
    """Names and values of the same default stand for the same object."""
    assert parse_aggregation(defaults.AGGREGATION) == TopMean()
    assert parse_segmenter(defaults.SEGMENTS) == Ranker(WordScorer()).segmenter
    assert parse_segmenter(defaults.DOCUMENT_SCORER_SEGMENTS) == Windows()
    assert parse_segmenter(f"windows:{DEFAULT_WINDOW}") == parse_segmenter("windows") == Windows()
    assert Interpolation().scale == DEFAULT_SCALE == defaults.FIRST_STAGE_SCALE
    assert Path(defaults.DATA_ROOT) == DEFAULT_DATA_ROOT


def test_limits_of_the_service() -> None:
    """Limits that `birchbark serve` can set have the library's defaults."""
    pytest.importorskip("fastapi", reason="the extra serve is not installed")
    from birchbark.serve.limits import Limits

    assert is_dataclass(Limits)
    values = {f.name: f.default for f in fields(Limits) if f.default is not MISSING}
    assert values == {
        "budget": defaults.BUDGET_SECONDS,
        "max_time": defaults.MAX_SECONDS,
        "max_requests": defaults.MAX_REQUESTS,
        "max_request_bytes": defaults.MAX_REQUEST_BYTES,
    }
