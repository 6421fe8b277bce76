"""How are the models of pipelines loaded, each of them once?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from birchbark import BirchbarkError, Ranker, defaults
from birchbark.checkpoint.heads import Pooling
from birchbark.checkpoint.locate import open_named
from birchbark.device.torch_session import session_factory
from birchbark.pipeline.load_rankers import make_ranker
from birchbark.pipeline.loaded_models import LoadedModels
from birchbark.pipeline.stage_options import NONE, StageOptions
from birchbark.score.precision import Precision
from birchbark_studies.workspace import Workspace

ROLES = ("model", "embedding", "duo")  # options of a stage that name a model


class PipelineLoader:
    """Loads the rankers of pipelines; each model is opened once."""

    def __init__(self, workspace: Workspace) -> None:
        self._fp32 = LoadedModels(session=session_factory(workspace.device))
        self._int8 = LoadedModels()  # int8 runs on the CPU only
        self._sizes: dict[str, int] = {}

    def rankers(
        self, row: str, stages: Sequence[StageOptions], models: Mapping[str, str]
    ) -> list[Ranker]:
        """Load a Ranker for each stage of a row. models: name → model name or path.

        Errors, such as InputError and CheckpointError, name the row and the stage.
        """
        rankers = []
        for number, stage in enumerate(stages, 1):
            loaded = self._int8 if stage.precision == Precision.INT8.value else self._fp32
            overrides: dict[str, Any] = {
                role: models[name] for role, name in models_of(stage).items()
            }
            try:
                rankers.append(make_ranker(replace(stage, **overrides), loaded))
            except BirchbarkError as fault:
                raise fault.at(f"row {row!r}, stage {number}") from None
        return rankers

    def parameters(
        self, stages: Sequence[StageOptions], models: Mapping[str, str], *, static: bool
    ) -> int:
        """Count the parameters of all models of a pipeline, each model once.

        static: whether it uses vectors of the static embedding.
        """
        used = {defaults.STATIC_EMBEDDING} if static else set()
        for stage in stages:
            used |= {models[name] for name in models_of(stage).values()}
            if takes_default_embedding(stage) and not self._is_embedding(models[stage.model]):
                used.add(defaults.EMBEDDING)
        for model in used - self._sizes.keys():
            self._sizes[model] = open_named(model).parameters
        return sum(self._sizes[model] for model in used)

    def _is_embedding(self, model: str) -> bool:
        return isinstance(open_named(model).head, Pooling)


def takes_default_embedding(stage: StageOptions) -> bool:
    """Return whether a stage takes the default embedding, unless its model is one itself."""
    return stage.embedding is None and not is_embedding(stage)


def is_embedding(stage: StageOptions) -> bool:
    """Return whether the model of a stage is an embedding, as far as its options tell."""
    return stage.model == defaults.EMBEDDING or stage.pooling is not None


def models_of(stage: StageOptions) -> dict[str, str]:
    """Return role → name of the models that a stage uses."""
    return {role: name for role in ROLES if (name := getattr(stage, role)) and name != NONE}
