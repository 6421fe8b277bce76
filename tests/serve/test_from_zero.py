"""Do three commands lead from nothing to a page? Installed as others install it, not from here."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from served import asked, running

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")


@pytest.mark.registry
def test_the_readmes_three_commands_lead_to_a_page(tmp_path: Path) -> None:
    """In an environment of its own, by what the package brings, far from its source."""
    (section,) = re.findall(r"^## As a service$(.*?)^## ", README, re.S | re.M)
    install, serve, look = re.findall(r"^    (.+)$", section, re.M)
    project = tmp_path / "project"
    project.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, project)
    left_out = shutil.ignore_patterns("__pycache__", "*.egg-info")
    shutil.copytree(ROOT / "src", project / "src", ignore=left_out)
    (project / "notes").mkdir()
    for text, name in re.findall(r'^echo "(.+)" > (notes/\w+\.txt)$', README, re.M):
        (project / name).write_text(text)
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "new"], check=True)
    found = f"{tmp_path / 'new' / 'bin'}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": found, "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    subprocess.run(["bash", "-euc", install], cwd=project, env=environment, check=True)
    (project / "src").rename(project / "elsewhere")
    words = serve.removeprefix("birchbark serve ").split()
    python = tmp_path / "new" / "bin" / "python"
    with running(*words, cwd=project, python=python) as (port, _):
        assert look.split()[:4] == ["python", "-m", "webbrowser", "http://127.0.0.1:8000/"]
        status, page = asked(port, "GET", "/")
        assert status == 200
        assert b"<title>Birchbark</title>" in page
        for path in set(re.findall(rb'(?:href|src)="(/page/[^"]+)"', page)):
            assert asked(port, "GET", path.decode())[0] == 200
        query = {"query": "how long do I have to return a parcel"}
        status, answer = asked(port, "POST", "/search", query)
        assert status == 200
        assert b"Parcels can be sent back within thirty days." in answer
