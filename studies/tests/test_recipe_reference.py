"""Does docs/reference/recipes.md name every key of a recipe?"""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from birchbark.errors import InputError
from birchbark_studies.experiments.recipe_file import KINDS, read_recipe
from birchbark_studies.recipe_folder import RECIPES

ROOT = Path(__file__).parents[2]
REFERENCE = (ROOT / "docs" / "reference" / "recipes.md").read_text()
EXAMPLES = {  # of each kind
    "analyzers": "uva-analyzers",
    "answers": "default-answers",
    "fields": "cord-fields",
    "evidence": "cord-adaptation",
    "training": "passages-settings",
    "pipelines": "passages-sizes",
    "reranking": "cord-reranking",
    "bi-encoder": "cord-biencoder",
    "query-reformulation": "cord-reformulation",
    "training-data": "birch-data",
}
TABLES = [("", kind) for kind in KINDS] + [
    *((f"[{kind}]", kind) for kind in KINDS),
    ("[training.evidence]", "training"),
    ("[pipelines.stage]", "pipelines"),
    ("[[pipelines.rows]]", "pipelines"),
    ("[[training.variants]]", "training"),
    ("[[bi-encoder.ranked]]", "bi-encoder"),
    ("[[collections]]", "fields"),
    ("[[published]]", "training"),
    ("[bm25]", "training"),
]


@pytest.mark.parametrize(("table", "kind"), TABLES, ids=lambda part: part or "top")
def test_every_key_is_documented(table: str, kind: str, tmp_path: Path) -> None:
    """The reference has each key that the message about an unknown one lists as known."""
    text = (RECIPES / f"{EXAMPLES[kind]}.toml").read_text()
    text = text.replace('"../training/', f'"{RECIPES.parent}/training/')
    assert tomllib.loads(text)["kind"] == kind
    if table:
        assert f"\n{table}" in text
        text = text.replace(f"\n{table}", f"\n{table}\nnonsense = 1\n#", 1)
    else:
        text = f"nonsense = 1\n{text}"
    (tmp_path / "recipe.toml").write_text(text)
    with pytest.raises(InputError, match="nonsense") as refused:
        read_recipe(tmp_path / "recipe.toml")
    keys = refused.value.wanted.removeprefix("one of ").split(", ")
    if table == "[pipelines.stage]":
        assert "read_segments" in keys  # the options of `birchbark rerank`
        return
    assert keys != ["nonsense"]
    missing = [k for k in keys if f"`{k}`" not in REFERENCE and f".{k}`" not in REFERENCE]
    assert not missing


def test_every_kind_is_documented() -> None:
    """Each has an example, too."""
    assert set(EXAMPLES) == set(KINDS)
    assert all(f"`{kind}`" in REFERENCE for kind in KINDS)
