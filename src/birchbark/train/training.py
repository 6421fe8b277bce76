"""How does a configuration become a model? All of a training, which a kill cannot undo."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from birchbark.artifact import origin
from birchbark.checkpoint.named import open_named
from birchbark.checkpoint.reader import Checkpoint
from birchbark.checkpoint.tokenizer import Pieces
from birchbark.device.session import on_device
from birchbark.errors import InputError, MissingPackageError, TrainingError, first_line
from birchbark.train.card import begun, kind_of
from birchbark.train.config import Training
from birchbark.train.course import Course
from birchbark.train.curve import Curve
from birchbark.train.export import export, write_card
from birchbark.train.folder import (
    CURVE,
    IDENTITY,
    MODEL,
    STATE,
    TEACHERS,
    check_identity,
    opened,
    written,
)
from birchbark.train.loop import Learner
from birchbark.train.masked import MaskedLearner
from birchbark.train.masking import Hider
from birchbark.train.matching import Matcher
from birchbark.train.material import Material, load_material
from birchbark.train.shaping import open_network
from birchbark.train.state import Progress, load_state, save_state
from birchbark.train.teaching import Teachers, teach
from birchbark.train.validate import check_validation, validate
from birchbark.train.world import World


@dataclass(frozen=True, slots=True)
class Talk:
    """How a training is followed.

    tell: a line of text. stepped: steps done, all steps, loss. asked: pairs that a teacher has
    answered, and all of the data set's.
    """

    tell: Callable[[str], None] = lambda text: None
    stepped: Callable[[int, int, float], None] = lambda step, steps, loss: None
    asked: Callable[[int, int], None] = lambda pairs, of: None


def train(
    training: Training,
    root: Path,
    folder: Path,
    *,
    teachers: Path | None = None,
    device: str = "cpu",
    world: World = World(),
    talk: Talk = Talk(),
) -> Progress:
    """Train, or go on with the training that `folder` holds; its model is in `folder`/model.

    root: what paths of the data start from. teachers: score store of what they say, which several
    trainings may share; else `folder` has one. Raises InputError where `folder` holds another
    training or anything else, MissingPackageError without torch, TrainingError where the loss is no
    number or the disk is full, and what reading data and base raises.
    """
    check_device(device)
    base = _open_base(training)
    lineage = begun(base, training.base)
    pieces = Pieces(base)
    network = open_network(base, training.shaping, training.seed, device)
    how, longest = training.matching, training.max_length
    matcher = Matcher(how, network, pieces, longest, training.seed) if how else None
    with opened(folder, world):
        with world.in_turn():
            materials = list(load_material(training, root, pieces, talk.tell))
            check_validation(materials, training.validation)
            course = Course(materials, training.schedule, training.seed, world.size)
            kept = Teachers(teachers or folder / TEACHERS, device, world.first, talk.asked)
            materials = teach(materials, course, kept, talk.tell)
        for material, lists in zip(materials, course.lists.tolist(), strict=True):
            talk.tell(f"{material.data.name}: {lists:,} lists an epoch, {material.data.draw.each}")
        if training.masking:
            hider = Hider.of(training.masking, pieces)
            learner: Learner = MaskedLearner(network, materials, course, world, hider)
        else:
            learner = Learner(network, materials, course, world, matcher)
        check_identity(
            folder / IDENTITY, _identity(training, base, materials, device, world), world
        )
        write = partial(export, network=network, base=base, pieces=pieces)
        task = _Running(training, folder, lineage, write, materials, course, learner, world, talk)
        with written(folder), _roomy():
            return task.run()


@dataclass(slots=True)
class _Running:
    """A training that runs.

    begun: the base's lineage. export: writes the model, given a folder and its lineage.
    """

    training: Training
    folder: Path
    begun: Mapping[str, Any]
    export: Callable[..., None]
    materials: Sequence[Material]
    course: Course
    learner: Learner
    world: World
    talk: Talk
    progress: Progress = field(default_factory=Progress)

    def run(self) -> Progress:
        """Take up what is there, learn to the end, and finish the card."""
        if (self.folder / STATE).exists():
            self.progress = load_state(self.folder / STATE, self.learner)
            self._check_model()
            self.talk.tell(f"goes on after step {self.progress.step:,} of {self.course.steps:,}")
        if (first := self.world.agreed(self.progress.step)) != self.progress.step:
            raise TrainingError(
                "the processes of this training do not see one folder",
                where=str(self.folder),
                found=f"step {first} and step {self.progress.step}",
            )
        with Curve.open(self.folder / CURVE, self.progress.step, self.world.first) as curve:
            while not self.progress.ended:
                self._step(curve)
        if self.world.first:
            kind = kind_of(self.training.shaping.form)
            write_card(self.folder / MODEL, self._lineage(), kind)
        return self.progress

    def _check_model(self) -> None:
        """A training that goes on may never find a better model than that which it has written."""
        if self.progress.best_step and not (self.folder / MODEL).exists():
            raise TrainingError(
                "the training's best model is gone",
                where=str(self.folder / MODEL),
                remedy="put it back, or ask to replace the training",
            )

    def _step(self, curve: Curve) -> None:
        progress = self.progress
        loss = self.learner.step(progress.step, self.training.seed)
        progress.step += 1
        curve.add(step=progress.step, loss=loss, rate=self.course.rate(progress.step - 1))
        self.talk.stepped(progress.step, self.course.steps, loss)
        every = self.training.validation.every or self.course.epoch
        done = progress.step >= self.course.steps
        if done or progress.step % every == 0:
            better = self._validated(curve)
            patience = self.training.validation.patience
            if done:
                progress.ended = "all steps"
            elif patience and progress.stale >= patience:
                progress.ended = f"no better value in {patience} validations"
            if self.world.first:
                if better:
                    self.export(self.folder / MODEL, lineage=self._lineage())
                save_state(self.folder / STATE, self.learner, progress)
            self.world.wait()
        elif (often := self.training.schedule.checkpoint) and progress.step % often == 0:
            if self.world.first:
                save_state(self.folder / STATE, self.learner, progress)
            self.world.wait()

    def _validated(self, curve: Curve) -> bool:
        """Measure, and say whether this is the model to keep: the best, or the last of all."""
        progress, name = self.progress, self.training.validation.measure
        found = self.world.agreed(validate(self.learner, self.materials, name, self.training.seed))
        judged = self.training.masking or any(m.data.aims for m in self.materials)
        if not found:
            progress.best_step = progress.step
            return True
        values = {key: one.mean for key, one in found.items()}
        losses = {key: one.loss for key, one in found.items() if one.loss is not None}
        mean = sum(values.values()) / len(values)
        better = progress.best is None or mean > progress.best or not judged
        progress.stale = 0 if better else progress.stale + 1
        if better:
            progress.best, progress.best_step = mean, progress.step
            progress.measures = {key: one.told for key, one in found.items()}
        curve.add(step=progress.step, measure=name, values=values, losses=losses)
        shown = ", ".join(f"{key} {value:.4f}" for key, value in values.items())
        self.talk.tell(f"step {progress.step:,}: {name} {shown}{' (best)' if better else ''}")
        return better

    def _lineage(self) -> dict[str, Any]:
        """The base's lineage, with this training at its end."""
        progress = self.progress
        own = {
            "title": self.training.title,
            "seed": self.training.seed,
            "settings": self.training.values,
            "data": [material.facts for material in self.materials],
            "steps": progress.step,
            "best_step": progress.best_step,
            "ended": progress.ended or "not ended yet",
            "measure": self.training.validation.measure,
            "measures": progress.measures,
            "versions": made_by(),
        }
        return {**self.begun, "trainings": [*self.begun["trainings"], own]}


def _open_base(training: Training) -> Checkpoint:
    """The base; InputError if it cannot read inputs that are as long as is asked for."""
    base = open_named(training.base)
    if training.max_length > base.shape.longest:
        raise InputError(
            "max_length is more than the base can read",
            where=str(training.path),
            wanted=f"at most {base.shape.longest}",
            found=str(training.max_length),
        )
    return base


def _identity(
    training: Training,
    base: Checkpoint,
    materials: Sequence[Material],
    device: str,
    world: World,
) -> dict[str, Any]:
    """What must be equal for a training to go on."""
    return {
        "settings": training.values,
        "base": base.fingerprint,
        "teachers": [open_named(name).fingerprint for name in training.teachers],
        "data": [material.facts for material in materials],
        "processes": world.size,
        "device": device,
        "versions": made_by(),
    }


def made_by() -> dict[str, str]:
    """Versions that weights depend on."""
    import torch

    return origin() | {"torch": str(torch.__version__)}


@contextmanager
def _roomy() -> Iterator[None]:
    """A GPU whose memory does not suffice, in plain words."""
    import torch

    try:
        yield
    except torch.OutOfMemoryError as full:
        raise TrainingError(
            "the GPU's memory is full",
            found=first_line(full),
            remedy="a smaller schedule.batch, with schedule.accumulate as much larger",
        ) from full


def check_device(device: str) -> None:
    """Raise MissingPackageError without torch, InputError for a device that it does not know."""
    try:
        import torch
    except ImportError:
        raise MissingPackageError(
            "training needs torch", remedy="pip install 'birchbark[train]'"
        ) from None
    on_device(device)
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as unknown:
        raise InputError(
            "torch does not know this device",
            where=f"device {device}",
            found=first_line(unknown),
            remedy="--device cpu is always there",
        ) from None
