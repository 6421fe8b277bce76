"""What happens in a training run, step by step?"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from birchbark.artifact import software_versions
from birchbark.checkpoint.model_card import card_kind, write_card
from birchbark.errors import TrainingError
from birchbark.train.config import TrainingConfig
from birchbark.train.dataset import Log, TokenisedDataSet
from birchbark.train.distributed import ProcessGroup
from birchbark.train.learner import Learner
from birchbark.train.mining import mine, read_negatives, with_negatives, write_negatives
from birchbark.train.sampler import Sampler
from birchbark.train.teacher_scores import TeacherScores, with_teacher_targets
from birchbark.train.training_folder import LOG, MINED, MODEL, STATE
from birchbark.train.training_log import TrainingLog
from birchbark.train.training_state import Progress, load_state, save_state
from birchbark.train.validation import validate


@dataclass(frozen=True, slots=True)
class ProgressReporter:
    """Functions that are called with the progress of a training run.

    log: receives a line of text.
    on_step: receives the number of completed steps, the number of all steps, and the loss.
    on_teacher_scores: receives how many pairs of a data set have teacher scores so far, and how
    many need them.
    """

    log: Log = lambda text: None
    on_step: Callable[[int, int, float], None] = lambda step, steps, loss: None
    on_teacher_scores: Callable[[int, int], None] = lambda pairs, total: None


@dataclass(slots=True)
class TrainingRun:
    """A training run in progress.

    base_lineage: the lineage of the base, see checkpoint/model_card.py.
    write_model: writes the model, given a folder and the lineage.
    unmined: the data sets as they are without mining and teachers.
    mined_at: the step before which the negatives in use were mined; None if none were.
    """

    training: TrainingConfig
    folder: Path
    base_lineage: Mapping[str, Any]
    write_model: Callable[..., None]
    datasets: Sequence[TokenisedDataSet]
    unmined: Sequence[TokenisedDataSet]
    teacher_scores: TeacherScores
    sampler: Sampler
    learner: Learner
    processes: ProcessGroup
    reporter: ProgressReporter
    progress: Progress = field(default_factory=Progress)
    mined_at: int | None = None

    def train(self) -> Progress:
        """Restore the saved state, if there is one, train to the end, and write the model card."""
        if (self.folder / STATE).exists():
            self.progress = load_state(self.folder / STATE, self.learner)
            self._check_model()
            self.reporter.log(
                f"resuming after step {self.progress.step:,} of {self.sampler.steps:,}"
            )
        if (step := self.processes.broadcast(self.progress.step)) != self.progress.step:
            raise TrainingError(
                "the processes of this training run do not share a folder",
                where=str(self.folder),
                found=f"step {step} and step {self.progress.step}",
            )
        is_main, log_file = self.processes.is_main, self.folder / LOG
        with TrainingLog.open(log_file, self.progress.step, is_main) as training_log:
            while not self.progress.ended:
                self._mine()
                self._step(training_log)
        if is_main:
            kind = card_kind(self.training.initialisation.architecture)
            write_card(self.folder / MODEL, self._lineage(), kind)
        return self.progress

    def _check_model(self) -> None:
        """Raise TrainingError if the kept model is missing, since no later one may be kept."""
        if self.progress.best_step and not (self.folder / MODEL).exists():
            raise TrainingError(
                "the model of this training run is missing",
                where=str(self.folder / MODEL),
                remedy="restore it, or replace the training run",
            )

    def _mine(self) -> None:
        """Mine negatives, if the next step needs others.

        The state is saved before, so that a run that is killed meanwhile mines the same ones.
        """
        settings, step = self.training.mining, self.progress.step
        if settings is None or (first := settings.round_at(step)) in (None, self.mined_at):
            return
        assert first is not None
        steps = range(first, min(first + settings.every, self.sampler.steps))
        folder, log = self.folder / MINED / str(first), self.reporter.log
        if step == first and step and not folder.exists():
            self._save_state()
        with self.processes.main_process_first():
            if self.processes.is_main and not folder.exists():
                if step != first:
                    raise TrainingError(
                        "the negatives of this training run are missing",
                        where=str(folder),
                        remedy="restore them, or replace the training run",
                    )
                log(f"step {step:,}: mining negatives")
                sampler = self._sampler_of(self.unmined)
                mined = mine(self.learner, self.unmined, sampler, steps, settings, log)
                write_negatives(folder, mined)
            mined = read_negatives(folder, len(self.unmined))
            datasets = list(map(with_negatives, self.unmined, mined))
            sampler = self._sampler_of(datasets)
            datasets = with_teacher_targets(datasets, sampler, steps, self.teacher_scores, log)
        if self.processes.is_main:
            for other in folder.parent.iterdir():
                if other != folder:
                    shutil.rmtree(other)
        given = zip(self.datasets, datasets, strict=True)
        self.datasets = [replace(dataset, facts=mined.facts) for dataset, mined in given]
        self.learner.use(datasets, sampler)
        self.mined_at = first

    def _sampler_of(self, datasets: Sequence[TokenisedDataSet]) -> Sampler:
        training = self.training
        return Sampler(datasets, training.schedule, training.seed, self.processes.size)

    def _step(self, training_log: TrainingLog) -> None:
        """Train one step; then validate or save the state, if either is due."""
        progress, schedule = self.progress, self.training.schedule
        loss = self.learner.step(progress.step, self.training.seed)
        rate = self.sampler.learning_rate(progress.step)
        progress.step += 1
        training_log.add(step=progress.step, loss=loss, rate=rate)
        self.reporter.on_step(progress.step, self.sampler.steps, loss)
        every = self.training.validation.every or self.sampler.steps_per_epoch
        is_last = progress.step >= self.sampler.steps
        if is_last or progress.step % every == 0:
            is_kept = self._validate(training_log)
            patience = self.training.validation.patience
            if is_last:
                progress.ended = "all steps"
            elif patience and progress.stale >= patience:
                progress.ended = f"no better value in {patience} validations"
            if is_kept and self.processes.is_main:
                self.write_model(self.folder / MODEL, lineage=self._lineage())
            self._save_state()
        elif schedule.save_every and progress.step % schedule.save_every == 0:
            self._save_state()

    def _save_state(self) -> None:
        if self.processes.is_main:
            save_state(self.folder / STATE, self.learner, self.progress)
        self.processes.barrier()

    def _validate(self, training_log: TrainingLog) -> bool:
        """Validate the model, and return whether to write it.

        A model is written if its mean over data sets is the best so far. With `keep = "last"`,
        without held-out queries, or with distillation of hidden states alone, every model is.
        """
        progress, settings = self.progress, self.training.validation
        measure = settings.measure
        results = self.processes.broadcast(
            validate(self.learner, self.datasets, measure, self.training.seed)
        )
        if not results:
            progress.best_step = progress.step
            return True
        values = {name: result.mean for name, result in results.items()}
        losses = {name: result.loss for name, result in results.items() if result.loss is not None}
        mean = sum(values.values()) / len(values)
        has_measured_loss = self.training.masking or self.training.objectives
        best = progress.best
        is_best = best is None or settings.is_better(mean, best) or not has_measured_loss
        progress.stale = 0 if is_best else progress.stale + 1
        progress.best = mean if is_best else progress.best
        is_kept = is_best or settings.keeps_last
        if is_kept:
            progress.best_step = progress.step
            progress.measures = {name: result.summary for name, result in results.items()}
        training_log.add(step=progress.step, measure=measure, values=values, losses=losses)
        by_set = ", ".join(f"{name} {value:.4f}" for name, value in values.items())
        by_set += "".join(
            f"; {name}: {result.agreement:.0%} of comparisons agree in both orders"
            for name, result in results.items()
            if result.agreement is not None
        )
        suffix = " (best)" if is_best else ""
        self.reporter.log(f"step {progress.step:,}: {measure} {by_set}{suffix}")
        return is_kept

    def _lineage(self) -> dict[str, Any]:
        """Return the base's lineage, with this training run appended."""
        progress = self.progress
        entry = {
            "title": self.training.title,
            "seed": self.training.seed,
            "settings": self.training.values,
            "data": [dataset.facts for dataset in self.datasets],
            "steps": progress.step,
            "best_step": progress.best_step,
            "ended": progress.ended or "not ended yet",
            "measure": self.training.validation.measure,
            "measures": progress.measures,
            "versions": training_versions(),
        }
        return {**self.base_lineage, "trainings": [*self.base_lineage["trainings"], entry]}


def training_versions() -> dict[str, str]:
    """Return the versions of all software that the weights depend on."""
    import torch

    return software_versions() | {"torch": str(torch.__version__)}
