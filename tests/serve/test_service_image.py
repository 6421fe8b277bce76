"""Would the image of the service start and be found healthy? Its commands run without Docker."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from served import running, send

DOCKERFILE = Path(__file__).parents[2] / "docker" / "service.Dockerfile"


def words(instruction: str) -> list[str]:
    """Return the words of an instruction in JSON."""
    found = re.search(rf"^{instruction}.*?(\[.*\])$", DOCKERFILE.read_text(), re.M)
    assert found, instruction
    result: list[str] = json.loads(found[1])
    return result


def test_the_image_serves_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other machines cannot search without a key; the health check needs none."""
    (tmp_path / "documents").mkdir()
    (tmp_path / "documents" / "bees.txt").write_text("Bees dance.")
    program, verb, folder, *options = words("ENTRYPOINT")
    assert (program, verb, folder) == ("birchbark", "serve", "/data/documents")
    monkeypatch.setenv("BIRCHBARK_API_KEY", "secret")
    options[options.index("8000")] = "0"
    with running("documents", *options, "--model", "none", cwd=tmp_path) as (port, _):
        python, flag, code = words("HEALTHCHECK")
        assert (python, flag) == ("python", "-c")
        check = [sys.executable, "-c", code.replace(":8000/", f":{port}/")]
        assert subprocess.run(check, check=False).returncode == 0
        assert send(port, "GET", "/search?q=bees")[0] == 401
    assert subprocess.run(check, check=False, stderr=subprocess.DEVNULL).returncode == 1


def test_the_image_has_no_privileges() -> None:
    """It runs as a user of its own, and keeps what it writes in a volume."""
    text = DOCKERFILE.read_text()
    assert re.search(r"^USER birchbark$", text, re.M)
    assert re.search(r"^VOLUME /data$", text, re.M)
    assert text.index("USER birchbark") < text.index("ENTRYPOINT")
