"""How does a ray cluster train a study's models?"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from birchbark import InputError
from birchbark.artifact import refuse_existing
from birchbark.cli.cluster import prepare_node
from birchbark.cli.console import notify, progress

if TYPE_CHECKING:
    from birchbark.cluster.on_ray import Resources
    from birchbark.cluster.shard import Shard


class TrainsOnCluster(click.Command):
    """A command that runs a study, with models that `birchbark cluster` trains."""

    def on_cluster(
        self,
        parsed: click.Context,
        shards: int | None,
        resources: Resources,
        address: str | None,
        *,
        unlike_processors: bool,
    ) -> None:
        """Train the models of a study on the cluster, and then run it here.

        parsed: the command's arguments. shards: into how many parts the trainings are divided; by
        default, each is a part. address: the cluster's, None for the default. unlike_processors:
        whether models may be trained on processors of different kinds.
        """
        from birchbark.cluster.on_ray import run_on_ray
        from birchbark_studies.experiments.recipe_file import read_recipe
        from birchbark_studies.training_chains import independent

        recipe, cache = parsed.params["recipe"], parsed.params["cache"]
        if recipe.is_dir():
            raise InputError("a folder of recipes", wanted="one recipe", found=str(recipe))
        if (output := parsed.params["output"]) is None:
            raise InputError("no folder to write to", wanted="--output DIR")
        refuse_existing(output, replace=parsed.params["replace"])
        if cache is None:
            raise InputError(
                "no folder for trained models", wanted="--cache DIR, which all nodes see"
            )
        chains = read_recipe(recipe, parsed.params["larger"]).experiment.chains
        models = [tuple(of_group) for of_group in independent(chains)]
        if not models:
            raise InputError(
                "this study trains no models",
                found=str(recipe),
                remedy="run it without birchbark cluster: birchbark study run",
            )
        count = shards or len(models)
        options = {name: parsed.params[name] for name in ("recipe", "larger", "data", "device")}
        work = StudyTraining(tuple(models), cache, options, str(Path.cwd()), resources.cpus)
        processors: set[str] = set()
        with (
            closing(run_on_ray(work, count, resources, address)) as outcomes,
            progress("trainings", count) as advance,
        ):
            for shard, (messages, processor) in outcomes:
                for line in messages:
                    notify(f"[{shard}] {line}")
                processors.add(processor)
                if len(processors) > 1 and not unlike_processors:
                    raise InputError(
                        "models were trained on unlike processors",
                        found=" and ".join(sorted(processors)),
                        remedy="nodes of one kind, or --unlike-processors",
                    )
                advance(1)
        with parsed:
            self.invoke(parsed)


@dataclass(frozen=True)
class StudyTraining:
    """Trains some of a study's models on a node.

    Attributes:
        models: Their names, in groups. Different groups can be trained at the same time.
        cache: The folder for trained models.
        options: recipe, larger, data and device, as given to the command.
        folder: The working directory.
        threads: Number of threads.
    """

    models: tuple[tuple[str, ...], ...]
    cache: Path
    options: Mapping[str, Any]
    folder: str
    threads: int

    def __call__(self, shard: Shard) -> tuple[list[str], str]:
        """Train the shard's models. Returns what was said, and the kind of processor."""
        prepare_node(self.folder, self.threads)
        from birchbark.collection.data_files import find_data_root
        from birchbark.score.vector_instructions import processor
        from birchbark_studies.experiments.recipe_file import read_recipe
        from birchbark_studies.run import train_models

        messages: list[str] = []
        train_models(
            read_recipe(self.options["recipe"], self.options["larger"]),
            find_data_root(self.options["data"]),
            self.cache,
            [name for of_group in shard.of(self.models) for name in of_group],
            device=self.options["device"],
            progress=messages.append,
        )
        return messages, processor()
