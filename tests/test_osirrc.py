"""Do the Docker hooks follow the OSIRRC contract when run as plain scripts?"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from birchbark.collection.runs import read_run
from conftest import DOCUMENTS

HOOKS = Path(__file__).parents[1] / "docker"
TOPICS = "<top>\n<num> Number: 301\n<title> birch river\n<desc> Description:\nCanoes.\n</top>\n"


@pytest.fixture
def call(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Return a function that runs a hook as the jig does, with folders of the test."""
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    script = bin_folder / "birchbark"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m birchbark "$@"\n')
    script.chmod(0o755)
    environment = os.environ | {
        "PATH": f"{bin_folder}:{os.environ['PATH']}",
        "BIRCHBARK_INDEXES": str(tmp_path / "indexes"),
        "BIRCHBARK_OUTPUT": str(tmp_path / "output"),
    }

    def run(hook: str, request: object = None) -> subprocess.CompletedProcess[str]:
        arguments = [] if request is None else ["--json", json.dumps(request)]
        return subprocess.run(
            [sys.executable, str(HOOKS / hook), *arguments],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )

    return run


@pytest.mark.slow
def test_hooks(
    call: Callable[..., subprocess.CompletedProcess[str]],
    tmp_path: Path,
    bert: Callable[..., Path],
) -> None:
    """init, index and search write runs; options reach the commands; failures have exit codes."""
    (tmp_path / "disk").mkdir()
    (tmp_path / "disk" / "docs").write_text(
        "".join(
            f"<DOC>\n<DOCNO>{d.doc_id}</DOCNO>\n<TITLE>{d.title}</TITLE>\n<TEXT>\n{d.text}\n</TEXT>\n"
            "</DOC>\n"
            for d in DOCUMENTS
        )
    )
    (tmp_path / "topics.txt").write_text(TOPICS)
    assert call("init").returncode == 0
    collection = {"name": "robust04", "path": str(tmp_path / "disk"), "format": "trectext"}
    indexed = call(
        "index", {"collections": [collection], "opts": [{"key": "skip-bad", "value": "true"}]}
    )
    assert indexed.returncode == 0, indexed.stderr
    request = {
        "collection": {"name": "robust04"},
        "topic": {"path": str(tmp_path / "topics.txt"), "format": "trec"},
        "top_k": 3,
        "opts": {"model": str(bert(labels=1)), "set.depth": "2"},
    }
    searched = call("search", request)
    assert searched.returncode == 0, searched.stderr
    first = read_run(tmp_path / "output" / "first-stage.birchbark.run")
    final = read_run(tmp_path / "output" / "birchbark.run")
    assert len(first.rankings["301"]) == len(final.rankings["301"]) == 3
    assert first.tag == "bm25+rm3"
    opts = [
        {"key": "rerank", "value": "false"},
        {"key": "retrieve.match", "value": "2"},
        {"key": "retrieve.rm3", "value": "false"},
        {"key": "out_file_name", "value": "../../outside.run"},
    ]
    assert call("search", {**request, "opts": [*opts]}).returncode == 0
    assert read_run(tmp_path / "output" / "outside.run").tag == "bm25"
    wrong = call("search", {**request, "opts": {"model": "nothing-like-it"}})
    assert wrong.returncode != 0
    assert "nothing-like-it" in wrong.stderr
