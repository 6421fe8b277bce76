"""Is the file of a ranker read, shown and checked as written?"""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from birchbark.cli import group
from birchbark.cli.from_options import parse_setting
from birchbark.errors import InputError
from birchbark.pipeline.first_stage_options import FirstStageOptions
from birchbark.pipeline.ranker_file import as_toml, read_ranker
from birchbark.pipeline.stage_options import StageOptions
from birchbark.retrieve.bm25 import BM25
from birchbark.retrieve.rm3 import RM3
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
    assert [(stage.depth, stage.read_segments) for stage in stages] == [(50, "2"), (50, None)]


def test_settings_replace_what_the_file_says(tmp_path: Path) -> None:
    """They replace keys of the first stage and of its only other stage; all other keys stay."""
    (tmp_path / "r.toml").write_text("[first_stage]\nk1 = 1.5\n[[stage]]\ndepth = 7\n")
    changed = {"first_stage.k1": 2, "first_stage.rm3.terms": 5, "read_pairs": "all"}
    first_stage, stages = read_ranker(tmp_path / "r.toml", changed)
    assert first_stage == FirstStageOptions(k1=2.0, rm3=RM3(terms=5))
    assert stages == [StageOptions(depth=7, read_pairs="all")]
    assert read_ranker(None, {"depth": 9}) == (FirstStageOptions(), [StageOptions(depth=9)])
    assert read_ranker() == (FirstStageOptions(), [StageOptions()])


def test_none_restores_the_default(tmp_path: Path) -> None:
    """The file's value does not count; what it does not set is not created, such as RM3."""
    (tmp_path / "r.toml").write_text(
        "[first_stage]\nk1 = 1.5\nb = 0.3\nrm3 = { terms = 5 }\n[[stage]]\ndepth = 7\n"
    )
    unset = {"first_stage.k1": None, "first_stage.rm3.terms": None, "depth": None}
    first_stage, stages = read_ranker(tmp_path / "r.toml", unset)
    assert first_stage == FirstStageOptions(b=0.3, rm3=RM3())
    assert stages == [StageOptions()]
    assert read_ranker(tmp_path / "r.toml", {"first_stage.rm3": None})[0].rm3 is None
    assert read_ranker(None, unset) == (FirstStageOptions(), [StageOptions()])
    with pytest.raises(InputError, match=r"no key 'first_stage\.k2' of a ranker: expected first"):
        read_ranker(None, {"first_stage.k2": None})


def test_k1_and_b_of_a_field_have_defaults_of_their_own() -> None:
    """Either alone suffices; the other one is the first stage's."""
    settings = {"first_stage.k1": 2, "first_stage.fields": {"title": 1.0}}
    stage = read_ranker(None, {**settings, "first_stage.field_bm25.title.b": 0.1})[0].make()[1]
    assert stage.field_models == {"title": BM25(2, 0.1)}
    with pytest.raises(InputError, match="k1 has no effect: field_bm25 gives all"):
        read_ranker(None, {**settings, "first_stage.field_bm25.title.k1": 1})


def test_the_model_none_leaves_out_re_ranking(tmp_path: Path) -> None:
    """It may be in the file or a setting; other keys, which would have no effect, are refused."""
    (tmp_path / "r.toml").write_text("[first_stage]\nk1 = 1.5\n[[stage]]\nmodel = 'none'\n")
    assert read_ranker(tmp_path / "r.toml") == (FirstStageOptions(k1=1.5), [])
    (tmp_path / "two.toml").write_text("[[stage]]\ndepth = 9\n[[stage]]\n")
    assert read_ranker(tmp_path / "two.toml", {"model": "none"}) == (FirstStageOptions(), [])
    with pytest.raises(InputError, match="depth has no effect with model none"):
        read_ranker(None, {"model": "none", "depth": 9})


def test_a_setting_needs_one_stage(tmp_path: Path) -> None:
    """With two it could be for either, and without one it is for none."""
    (tmp_path / "r.toml").write_text("[[stage]]\n[[stage]]\n")
    with pytest.raises(
        InputError, match=r"r.toml: there is not exactly one \[\[stage\]\], so that depth could"
    ):
        read_ranker(tmp_path / "r.toml", {"depth": 9})
    assert read_ranker(tmp_path / "r.toml", {"first_stage.k1": 1})[0].k1 == 1
    (tmp_path / "n.toml").write_text("[[stage]]\nmodel = 'none'\n[[stage]]\ndepth = 5\n")
    with pytest.raises(InputError, match=r"model none beside another \[\[stage\]\]"):
        read_ranker(tmp_path / "n.toml")


@pytest.mark.parametrize(
    ("key", "wanted"),
    [
        ("k1", "expected first_stage.k1"),
        ("rm3.terms", "expected first_stage.rm3.terms"),
        ("read_segment", "expected read_segments or"),
        ("?", "expected one that `birchbark ranker` prints"),
    ],
)
def test_an_unknown_key_is_refused_with_what_may_be_meant(key: str, wanted: str) -> None:
    """A key of the first stage needs its table."""
    with pytest.raises(InputError, match=f"no key .* of a .*{wanted}"):
        read_ranker(None, {key: 9})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("first_stage = 3", "first_stage: wrong type"),
        ("[first_stage]\nk2 = 1", "first_stage.k2: unknown key.*fields, field_bm25, filters, rm3"),
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
    """The error names the file and the key."""
    (tmp_path / "r.toml").write_text(text)
    with pytest.raises(InputError, match=rf"r\.toml: .*{message}"):
        read_ranker(tmp_path / "r.toml")


@pytest.mark.parametrize(
    ("text", "key", "value"),
    [
        ("depth=20", "depth", 20),
        ("read_pairs=all", "read_pairs", "all"),
        ("first_stage_weight=.8", "first_stage_weight", 0.8),
        ("aggregate=top:1,0.5", "aggregate", "top:1,0.5"),
        ("first_stage.rm3={}", "first_stage.rm3", {}),
        ("first_stage.filters=type=pdf", "first_stage.filters", "type=pdf"),
        ('duo="1"', "duo", "1"),
        ("duo=1\ndepth=2", "duo", "1\ndepth=2"),
        ("embedding=", "embedding", None),
    ],
)
def test_a_setting_is_parsed(text: str, key: str, value: Any) -> None:
    """Its value is TOML, or else a string; none at all is the default."""
    assert parse_setting(text) == (key, value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--set", "depth"], "not a setting: expected --set KEY=VALUE, found depth"),
        (["--set", "=3"], "not a setting"),
        (["--set", "depth=3", "--set", "depth=x"], r"depth: wrong type.*found 'x'"),
        (["--model", "none", "--set", "model=x"], "--model and --set model exclude each other"),
        (["--set", 'embedding=""'], r"stage\[1\].embedding: is empty"),
        (["--set", "first_stage.rm3.words=1"], "first_stage.rm3.words: unknown key"),
    ],
)
def test_wrong_settings_are_refused(tmp_path: Path, options: list[str], message: str) -> None:
    """They are refused before anything is read."""
    with pytest.raises(InputError, match=message):
        CliRunner().invoke(group, ["search", str(tmp_path), "x", *options], catch_exceptions=False)


def test_a_command_refuses_keys_of_the_table_that_it_does_not_use(tmp_path: Path) -> None:
    """`retrieve` does not re-rank, and `rerank` has no first stage; of a file, both take a part."""
    files = ("--queries", "q", "--output", "o")
    for command, key in (
        (["retrieve", "i", *files], "depth"),
        (["rerank", "i", "--run", "r", *files], "first_stage.k1"),
    ):
        with pytest.raises(InputError, match=f"--set {key} has no effect: the command does not"):
            CliRunner().invoke(group, [*command, "--set", f"{key}=1"], catch_exceptions=False)


def test_unknown_tables_are_refused(tmp_path: Path) -> None:
    """A command that uses only one of the possible tables refuses them, too."""
    (tmp_path / "r.toml").write_text("[first_stage]\n[rm3]\n")
    with pytest.raises(InputError, match=r"r\.toml: rm3: unknown key"):
        read_ranker(tmp_path / "r.toml")


def test_a_stage_deeper_than_the_one_before_it_is_refused(tmp_path: Path) -> None:
    """It would have no effect."""
    file = tmp_path / "r.toml"
    file.write_text("[[stage]]\ndepth = 9\n[[stage]]\ndepth = 10\n")
    with pytest.raises(InputError, match=r"stage.*depth: too deep: expected at most 9.*found 10"):
        read_ranker(file)


def test_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It prints a file that it accepts, with counts as numbers, unless a model is missing."""
    monkeypatch.chdir(tmp_path)
    shown = CliRunner().invoke(group, ["ranker"])
    Path("r.toml").write_text(shown.stdout)
    assert '\nread_documents = "all"\n' in shown.stdout
    assert "\ndepth = 100\n" in shown.stdout
    assert CliRunner().invoke(group, ["ranker", "r.toml"]).stdout == shown.stdout
    write_bert(tmp_path / "one", labels=1)
    Path("r.toml").write_text("[[stage]]\nmodel = 'one'\nduo = 'two'\n")
    assert "two: no such model" in str(CliRunner().invoke(group, ["ranker", "r.toml"]).exception)
