"""Does a ray cluster train a study's models, so that the study is the same as without it?"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from test_seeds_of_studies import TRAINING, make_study

from birchbark.cli import group
from birchbark.train.training_folder import MODEL
from birchbark_studies.experiments.recipe_file import read_recipe
from birchbark_studies.training_chains import independent
from ray_nodes import ray_nodes
from small_study import COLLECTION

pytest.importorskip("torch", reason="torch is not installed: nothing can be trained")
pytest.importorskip("ray.cluster_utils")

pytestmark = pytest.mark.filterwarnings("default")  # ray's own


@pytest.fixture(scope="module")
def nodes() -> Iterator[Any]:
    """Start a cluster of a head without CPUs and two nodes with one each."""
    with ray_nodes() as cluster:
        yield cluster


def birchbark(*arguments: str, status: int = 0) -> str:
    """Run a command; return what it says, or its error."""
    result = CliRunner().invoke(group, arguments)
    assert bool(result.exception) == bool(status), result.output
    return str(result.exception) if status else result.output


def test_the_study_is_the_same(nodes: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each model is trained on a node, once; figures and runs equal those of one process."""
    make_study(tmp_path, TRAINING)
    monkeypatch.chdir(tmp_path)
    study = ["study", "run", "recipe.toml", "--data", "."]
    birchbark(*study, "--output", "alone", "--cache", "one")
    shared = [*study, "--cache", "shared"]
    said = birchbark("cluster", "--address", nodes.address, *shared, "--output", "together")
    assert said.count("training: ") == 4
    assert len(list(Path("shared/trainings").glob(f"*/{MODEL}"))) == 4
    for name in ("results.json", "runs/Tiny.head-alone-seed-1.run"):
        assert Path("together", name).read_bytes() == Path("alone", name).read_bytes()
    said = birchbark("cluster", "--address", nodes.address, *shared, "--output", "again")
    assert "training: " not in said


def test_what_a_cluster_cannot_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is refused before ray is started."""
    make_study(tmp_path, TRAINING)
    monkeypatch.chdir(tmp_path)
    run = ("cluster", "study", "run", "recipe.toml")
    assert "no folder for trained models" in birchbark(*run, "--output", "o", status=1)
    untrained = TRAINING.partition("[training]")[0].replace('"training"', '"analyzers"')
    Path("recipe.toml").write_text(
        untrained + "[analyzers]\nnames = ['english', 'plain']\n" + COLLECTION
    )
    message = birchbark(*run, "--output", "o", "--cache", "c", status=1)
    assert "this study trains no models" in message
    for wrong in (["study", "list"], ["search", "i", "red"]):
        message = birchbark("cluster", "--shards", "2", *wrong, status=1)
        assert "no command with shards: expected retrieve, rerank, study run or serve" in message


def test_chains_with_the_same_beginning_are_trained_together(tmp_path: Path) -> None:
    """They share the folder of their first training run."""
    study = make_study(tmp_path, TRAINING)
    (chain, *_) = read_recipe(study.path).experiment.chains.values()
    other = read_recipe(study.path).experiment.chains["head / alone, seed 1"]
    chains = {"one": chain, "two": other, "more": (*chain, *other)}
    assert [list(of_group) for of_group in independent(chains)] == [["one", "more"], ["two"]]
