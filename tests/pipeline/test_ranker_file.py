"""Is the file of a ranker read, shown and checked as written?"""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from birchbark.cli import group
from birchbark.errors import InputError
from birchbark.pipeline.first_stage_options import FirstStageOptions
from birchbark.pipeline.ranker_file import as_toml, first_stage_of, read_ranker, stages_of
from birchbark.pipeline.stage_options import StageOptions
from birchbark.retrieve.bm25 import BM25
from birchbark.retrieve.rm3 import RM3
from birchbark.section import Section
from conftest import write_bert

WHOLE = """
[first_stage]
k1 = 1.5
idf_documents = "all"
match = "nearest:20+and"
vector_set = "vectors"
fields = { title = 2, "ein Feld" = 0.5 }
field_bm25.title = { k1 = 1, b = 0.3 }
filters = ["type=pdf"]
rm3 = { terms = 30, max_df_share = 0.2 }

[[stage]]
depth = 50
read_segments = 2

[[stage]]
duo = "model \\" of 😀 \\u007f two"
duo_depth = 3
embedding = "none"
"""


def test_what_is_written_is_read(tmp_path: Path) -> None:
    """A ranker that is shown is read as the same ranker."""
    file = tmp_path / "r.toml"
    for text in (WHOLE, "first_stage = {}", "[first_stage]\nmodel = 'dense'", "[[stage]]"):
        file.write_text(text)
        read = read_ranker(file)
        file.write_text(as_toml(*read))
        assert read_ranker(file) == read
        assert all(f"{field.name} " in as_toml(*read) for field in fields(StageOptions))


def test_each_key_has_its_effect(tmp_path: Path) -> None:
    """The first stage that is made has the values of the file."""
    (tmp_path / "r.toml").write_text(WHOLE)
    options, stages = read_ranker(tmp_path / "r.toml")
    match, stage = options.make()
    assert match and (match.count, match.vectors) == (20, "vectors")
    assert stage.model == BM25(1.5, idf_documents="all")
    assert stage.fields == {"title": 2, "ein Feld": 0.5}
    assert stage.field_models == {"title": BM25(1, 0.3, "all")}
    assert stage.filters == {"type": "pdf"}
    assert stage.expansion == RM3(terms=30, max_df_share=0.2)
    assert [(stage.depth, stage.read_segments) for stage in stages] == [(50, "2"), (100, None)]


def test_options_apply_where_a_key_is_missing(tmp_path: Path) -> None:
    """Of the first stage and of each other; a file without stages has one."""
    (tmp_path / "r.toml").write_text("[first_stage]\nk1 = 1.5\n")
    file = Section.read(tmp_path / "r.toml")
    first_stage, stage = FirstStageOptions("rrf", k1=2, rm3=RM3()), StageOptions(depth=7)
    options = first_stage_of(file, first_stage, ["rm3"])
    stages = stages_of(file, stage, ["depth"])
    assert (options.model, options.k1, options.rm3) == ("rrf", 1.5, RM3())
    assert stages == [stage]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("first_stage = 3", "first_stage: wrong type"),
        ("[first_stage]\nk2 = 1", "first_stage.k2: unknown key"),
        ("[first_stage]\nmodel = 'dense'\nrm3 = {}", "rm3 has no effect with model dense"),
        ("[first_stage]\nmodel = 'lm'", "unknown model 'lm': expected one of bm25, tfidf"),
        ("[first_stage]\nrm3 = true", "first_stage.rm3: wrong type"),
        ("[first_stage]\nrm3 = { original_weight = 2 }", "original_weight is out of range"),
        ("[first_stage]\nfields = { a = 'x' }", "first_stage.fields.a: wrong type"),
        ("[first_stage]\nmatch = 'near'", "first_stage: unknown match 'near'"),
        ("[rm3]", "rm3: unknown key"),
        ("[[stages]]", "stages: unknown key"),
        ("[first_stage]\n[other]", "other: unknown key"),
    ],
)
def test_faults_are_named(tmp_path: Path, text: str, message: str) -> None:
    """With the file and the key."""
    (tmp_path / "r.toml").write_text(text)
    with pytest.raises(InputError, match=rf"r\.toml: .*{message}"):
        read_ranker(tmp_path / "r.toml")


@pytest.mark.parametrize(
    ("text", "given"),
    [
        ("[first_stage]\nmodel = 'bm25'", "first_stage_model"),
        ("[first_stage]\nmatch = 'or'", "match"),
        ("[[stage]]\ndepth = 3\n[[stage]]\ndepth = 2", "depth"),
    ],
)
def test_an_option_that_the_file_sets_is_refused(tmp_path: Path, text: str, given: str) -> None:
    """It would have no effect; one that a stage leaves open has one."""
    (tmp_path / "r.toml").write_text(text)
    read: Any = stages_of if given == "depth" else first_stage_of
    with pytest.raises(InputError, match=f"{given} has no effect: .*r.toml: .* is set"):
        read(Section.read(tmp_path / "r.toml"), given=[given])
    (tmp_path / "r.toml").write_text(f"{text}\n[[stage]]\n")
    if given == "depth":
        stages_of(Section.read(tmp_path / "r.toml"), given=[given])


def test_fields_of_options_may_have_their_own_k1_and_b(tmp_path: Path) -> None:
    """A file whose field is searched because of an option is right for all that read it."""
    (tmp_path / "r.toml").write_text("first_stage.field_bm25.title = { k1 = 1, b = 0 }")
    file = Section.read(tmp_path / "r.toml")
    assert first_stage_of(file, FirstStageOptions(fields={"title": 1.0})).field_bm25
    assert stages_of(file) == [StageOptions()]


def test_unknown_tables_are_refused_by_all_that_read_the_file(tmp_path: Path) -> None:
    """Also by a command that uses only one of the tables that there can be."""
    (tmp_path / "r.toml").write_text("[first_stage]\n[rm3]\n")
    readers: tuple[Any, ...] = first_stage_of, stages_of
    for read in readers:
        with pytest.raises(InputError, match=r"r\.toml: rm3: unknown key"):
            read(Section.read(tmp_path / "r.toml"))


def test_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`show` prints a file that `check` accepts, unless a model is missing."""
    monkeypatch.chdir(tmp_path)
    shown = CliRunner().invoke(group, ["ranker", "show"])
    Path("r.toml").write_text(shown.stdout)
    assert CliRunner().invoke(group, ["ranker", "show", "r.toml"]).stdout == shown.stdout
    done = CliRunner().invoke(group, ["ranker", "check", "r.toml"])
    assert (done.exit_code, done.stderr) == (0, "r.toml: no fault found\n")
    write_bert(tmp_path / "one", labels=1)
    Path("r.toml").write_text("[[stage]]\nmodel = 'one'\nduo = 'two'\n")
    assert "two: no such model" in str(
        CliRunner().invoke(group, ["ranker", "check", "r.toml"]).exception
    )
