"""Do the commands of the README lead to a running page after a normal installation?"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from served import running, send

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")


@pytest.mark.registry
def test_the_readmes_commands_lead_to_a_page(tmp_path: Path) -> None:
    """They run in a new environment, with the installed package instead of the source."""
    (install,) = re.findall(r"^    (pip install '[^'\n]*serve[^'\n]*')", README, re.M)
    ((folder, url),) = re.findall(r"^    birchbark serve ~/(\w+) +# then open (\S+)$", README, re.M)
    project = tmp_path / "project"
    project.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, project)
    ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
    shutil.copytree(ROOT / "src", project / "src", ignore=ignored)
    documents = tmp_path / folder
    documents.mkdir()
    for text, name in re.findall(r'^echo "(.+)" > notes/(\w+\.txt)$', README, re.M):
        (documents / name).write_text(text)
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "new"], check=True)
    search_path = f"{tmp_path / 'new' / 'bin'}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": search_path, "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    subprocess.run(["bash", "-euc", install], cwd=project, env=environment, check=True)
    (project / "src").rename(project / "elsewhere")
    python = tmp_path / "new" / "bin" / "python"
    with running(documents, cwd=project, python=python) as (port, _):
        assert url == "http://127.0.0.1:8000/"
        status, page = send(port, "GET", "/")
        assert status == 200
        assert b"<title>Birchbark</title>" in page
        for path in set(re.findall(rb'(?:href|src)="(/page/[^"]+)"', page)):
            assert send(port, "GET", path.decode())[0] == 200
        query = {"query": "how long do I have to return a parcel"}
        status, answer = send(port, "POST", "/search", query)
        assert status == 200
        assert b"Parcels can be sent back within thirty days." in answer
