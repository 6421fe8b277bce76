"""What do all experiments that compare models have in common?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from birchbark_studies.models import Models
from birchbark_studies.recipe import Experiment
from birchbark_studies.training_chains import Chain


@dataclass(frozen=True, slots=True)
class ModelExperiment(Experiment):
    """An experiment that compares models. compared: the models, by name in the tables."""

    compared: Models

    @property
    def models(self) -> tuple[str, ...]:
        """The existing models, and the models that training runs start from or learn from."""
        return self.compared.required

    @property
    def chains(self) -> Mapping[str, Chain]:
        """The models that the study trains."""
        return self.compared.chains

    @property
    def files(self) -> tuple[str, ...]:
        """The training data."""
        return self.compared.files
