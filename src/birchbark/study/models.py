"""Which models does a study compare: some that are there, and some that it trains first?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from birchbark.checkpoint.named import open_named
from birchbark.section import Section
from birchbark.show.plot import Plot
from birchbark.show.table import Column, Table
from birchbark.study.bench import Bench
from birchbark.study.chain_tables import COLUMNS, trained_plots, trained_table
from birchbark.study.chains import (
    Chain,
    Trained,
    bases,
    learnt_files,
    read_models,
    settings_of,
    train_all,
)


@dataclass(frozen=True, slots=True)
class Models:
    """What rows call them → a model as `--model` takes it, or the trainings that make it."""

    named: Mapping[str, str | Chain]

    @classmethod
    def read(cls, section: Section) -> Models:
        """From a table of a recipe, whose keys are names; see `read_models`."""
        return cls(read_models(section))

    @property
    def given(self) -> dict[str, str]:
        """Those that are there."""
        return {name: how for name, how in self.named.items() if isinstance(how, str)}

    @property
    def chains(self) -> dict[str, Chain]:
        """Those that trainings make."""
        return {name: how for name, how in self.named.items() if not isinstance(how, str)}

    @property
    def needed(self) -> tuple[str, ...]:
        """All that must be there before anything is trained."""
        return tuple(dict.fromkeys([*self.given.values(), *bases(self.chains.values())]))

    @property
    def files(self) -> tuple[str, ...]:
        """What is learnt from."""
        return learnt_files(self.chains.values())

    def layout(self) -> dict[str, tuple[Column, ...]]:
        """Name → columns of the tables that `Made` adds."""
        return {"trained": COLUMNS} if self.chains else {}

    def make(self, bench: Bench) -> Made:
        """Train what is to be trained, unless it is kept."""
        return Made(self, train_all(self.chains, bench))


def fingerprint_of(model: str) -> str:
    """Of its checkpoint, whatever head it has or lacks."""
    return open_named(model).fingerprint


@dataclass(frozen=True, slots=True)
class Made:
    """Models that are all there. trained: name → how it went, of those that were trained."""

    models: Models
    trained: Mapping[str, Trained]

    @property
    def places(self) -> dict[str, str]:
        """Name → what opens it, in the order of the recipe."""
        given = self.models.given
        return {
            n: given[n] if n in given else str(self.trained[n].model) for n in self.models.named
        }

    @property
    def fingerprints(self) -> dict[str, str]:
        """Name → that of its checkpoint."""
        return {name: fingerprint_of(model) for name, model in self.places.items()}

    @property
    def settings(self) -> dict[str, Any]:
        """Name → settings of its trainings."""
        return settings_of(self.trained)

    @property
    def tables(self) -> tuple[Table, ...]:
        """How the trainings went; none where nothing was trained."""
        return (trained_table(self.trained),) if self.trained else ()

    @property
    def plots(self) -> tuple[Plot, ...]:
        """Their curves."""
        return trained_plots(self.trained) if self.trained else ()
