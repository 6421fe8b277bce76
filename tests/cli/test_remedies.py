"""Does the shell advise only what the command that was run can do?"""

from __future__ import annotations

import re
import shlex
import signal
import subprocess
import sys
import warnings
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import birchbark
from birchbark.cli import group, main
from birchbark.cli.remedies import options_of
from birchbark.errors import applicable


@pytest.mark.parametrize(
    ("remedy", "known", "expected"),
    [
        ("check the path", [], "check the path"),
        ("shorten it, or --set query_tokens=5", ["--set"], "all"),
        ("shorten it, or --set query_tokens=5", [], "shorten it"),
        ("convert it; or name its encoding: --encoding latin-1", ["--to"], "convert it"),
        ("set --embedding to a model, or to none", ["--model"], ""),
        ("another path, or replace it: --replace, or replace=True", [], "another path"),
        ("birchbark serve --writable", [], "all"),
        ("pip install --no-deps x", [], "all"),
    ],
)
def test_advice_ends_before_an_unknown_option(remedy: str, known: list[str], expected: str) -> None:
    """Options of another command that is named are no options of this one."""
    assert applicable(remedy, known) == (remedy if expected == "all" else expected)


def test_options_of_commands() -> None:
    """Those of the command, and of the group that it is in."""
    of = {"evaluate": "--judged-only", "index": "--encoding", "index sync": "--replace"}
    found = {name: options_of(group, [*name.split(), "x", "--y"]) for name in of}
    assert "--judged-only" in found["evaluate"]
    assert "--encoding" not in found["evaluate"]
    assert "--encoding" in found["index"]
    assert "--analyzer" not in found["index sync"]
    run = options_of(group, ["cluster", "--shards", "2", "rerank", "i"])
    assert {"--shards", "--run"} <= run
    assert "--judged-only" not in run


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("search i -rust --top 3", "birchbark search INDEX -- -rust"),
        ("""search i '-"rust belt"'""", """birchbark search INDEX -- '-"rust belt"'"""),
        ("search i --tpo 3 birch", ""),
        ("evaluate qrels run --rust", ""),
        ("search i birch --k1 2", "--k1 is a key of the ranker: --set first_stage.k1=VALUE"),
        ("rerank i --read-pairs 2", "--read-pairs is a key of the ranker: --set read_pairs=VALUE"),
        ("evaluate qrels run --depth 3", ""),
    ],
)
def test_an_unknown_option_may_be_a_text_or_a_key(
    arguments: str,
    told: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The error says how either is given; nothing is said of misspelt options."""
    monkeypatch.setattr(sys, "argv", ["birchbark", *shlex.split(arguments)])
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)
    with pytest.raises(SystemExit):
        main()
    errors = capsys.readouterr().err
    _, found, advice = errors.partition("No such option")
    assert found
    assert (advice.count("\n") == 2) == bool(told)  # a line after the error's
    assert told in advice


@pytest.mark.parametrize(("command", "advised"), [("evaluate", False), ("index", True)])
def test_a_file_in_another_encoding(command: str, advised: bool, tmp_path: Path) -> None:
    """`evaluate` cannot read another encoding, `index` can."""
    (tmp_path / "f.tsv").write_bytes(b"1\t0\tcaf\xe9\t1\n")
    file = str(tmp_path / "f.tsv")
    arguments = {"evaluate": [file, file], "index": [file, "--to", str(tmp_path / "i")]}[command]
    code = "from birchbark.cli import main; main()"
    run = [sys.executable, "-c", code, command, *arguments]
    done = subprocess.run(run, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "(convert it, as by iconv -f latin1 -t utf-8 FILE" in done.stderr
    assert ("--encoding" in done.stderr) == advised


def test_every_option_that_an_error_may_name_exists() -> None:
    """An option that was renamed is no advice."""
    known = {"--help"}

    def collect(command: click.Command, context: click.Context) -> None:
        known.update(name for p in command.params for name in (*p.opts, *p.secondary_opts))
        if isinstance(command, click.Group):
            for name in command.list_commands(context):
                if found := command.get_command(context, name):
                    collect(found, context)

    collect(group, click.Context(group))
    source = Path(birchbark.__file__).parent
    remedy = re.compile(r'remedy=f?"([^"]*)"')
    named = {
        option
        for file in source.rglob("*.py")
        for text in remedy.findall(file.read_text("utf-8"))
        if "pip " not in text
        for option in re.findall(r"(?<![\w-])--[a-z][a-z-]+", text)
    }
    assert len(named) > 10
    assert named <= known


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("index c.jsonl --to j --field f=title --field f=text", "join both: f=title+text"),
    ],
)
def test_an_option_that_the_next_would_replace_is_refused(
    arguments: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One field is named once."""
    monkeypatch.chdir(tmp_path)
    birchbark.build_index([{"id": "a", "text": "b"}], "i")
    Path("q").write_text("1\tb\n")
    Path("c.jsonl").write_text('{"id": "a", "text": "b"}\n')
    result = CliRunner().invoke(group, arguments.split())
    assert isinstance(result.exception, birchbark.InputError)
    assert message in str(result.exception)


def test_fields_and_documents_that_are_not_there_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A keyword field that no document has, and a run of which no document is judged."""
    monkeypatch.chdir(tmp_path)
    Path("c.jsonl").write_text('{"id": "a", "text": "b", "type": "x"}\n')
    fields = ["--keyword", "type", "--keyword", "typ"]
    told = CliRunner().invoke(group, ["index", "c.jsonl", "--to", "i", *fields]).stderr
    assert "note: no document has the field typ, which is to be filtered by" in told
    assert "the field type" not in told
    Path("q").write_text("1 0 D1 1\n")
    Path("r").write_text("1 Q0 d1 1 1 t\n")
    told = CliRunner().invoke(group, ["evaluate", "q", "r"]).stderr
    assert "note: r: none of its documents is judged; are the ids the same?" in told
