"""What should people know of a model that was trained? Its data, its lineage, its measures.

A lineage is JSON: `base`, the name of the model that all began with, and `trainings`, the oldest
first. Each says its title, seed, settings, data with licences and hashes, versions, and measures on
queries kept apart.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from birchbark.artifact import fingerprint
from birchbark.checkpoint.model_json import read_object
from birchbark.checkpoint.reader import Checkpoint
from birchbark.errors import ArtifactError
from birchbark.train.network import Form

LINEAGE = "birchbark.json"


@dataclass(frozen=True, slots=True)
class Kind:
    """What a card calls a model. tag, library, task: for the hub. reads: a sentence."""

    tag: str
    library: str
    reads: str
    task: str = "text-ranking"


def kind_of(form: Form) -> Kind:
    """The kind of a model, by what it reads and says."""
    if form.parade:
        return Kind(
            *("parade", "birchbark"),
            f"PARADE by {form.parade}, trained with Birchbark: it reads a query with each passage "
            "of a document and gives one number, the log-odds that the document is relevant. Other "
            "libraries do not know how passages become documents.",
        )
    if form.pooling:
        return Kind(
            *("bi-encoder", "sentence-transformers"),
            "An embedding that was trained with Birchbark: query and text are read apart, and the "
            f"cosine of their vectors ({form.pooling} of their tokens) says how near they are.",
            "sentence-similarity",
        )
    if form.masked:
        return Kind(
            *("fill-mask", "transformers"),
            "A masked language model, trained with Birchbark: it says which tokens were hidden "
            "from it. It judges no relevance: models that do can be trained from it.",
            "fill-mask",
        )
    if form.duo:
        return Kind(
            *("duo", "birchbark"),
            "A comparison of two texts, trained with Birchbark: it reads a query and two texts, "
            "and gives one number, the log-odds that the first is the more relevant one.",
        )
    return Kind(
        *("cross-encoder", "sentence-transformers"),
        "A cross-encoder that was trained with Birchbark: it reads a query and a text, and gives "
        "one number, the log-odds that the text is relevant.",
    )


def begun(base: Checkpoint, name: str) -> dict[str, Any]:
    """The lineage of `base`: its own, or the beginning of one."""
    path = base.directory / LINEAGE
    if path.exists():
        lineage = read_object(path)
        if not {"base", "trainings"} <= lineage.keys():
            raise ArtifactError("no lineage", where=str(path), remedy="remove it, or put it right")
        return lineage
    weights = fingerprint(base.weights)
    return {"base": name, "sha256": weights, "trainings": []}


def card(lineage: Mapping[str, Any], kind: Kind) -> str:
    """The model card, Markdown with the hub's front matter."""
    trainings = lineage["trainings"]
    licences = sorted({d["licence"] for t in trainings for d in t["data"]})
    parts = [
        _front(lineage, kind),
        f"# {trainings[-1]['title']}",
        kind.reads,
        f"Trained from {' → '.join([lineage['base'], *(t['title'] for t in trainings)])}.",
        f"Licences of the data: {'; '.join(licences)}.",
        *(part for training in trainings for part in _training(training)),
    ]
    return "\n\n".join(parts) + "\n"


def _front(lineage: Mapping[str, Any], kind: Kind) -> str:
    return "\n".join(
        [
            "---",
            f"base_model: {json.dumps(lineage['base'])}",
            f"library_name: {kind.library}",
            f"pipeline_tag: {kind.task}",
            "tags:",
            f"- {kind.tag}",
            "- birchbark",
            "---",
        ]
    )


def _training(training: Mapping[str, Any]) -> list[str]:
    """A section on one training."""
    data = [
        (
            d["name"],
            f"{d['learnt']['queries']:,}",
            f"{d['learnt']['pairs']:,}",
            f"{d['held']['queries']:,}",
            d["licence"],
        )
        for d in training["data"]
    ]
    parts = [
        f"## {training['title']}",
        _table(("data", "queries", "pairs", "queries kept apart", "licence"), data),
        f"Seed {training['seed']}; {training['steps']:,} steps"
        + (f", the best at {training['best_step']:,}" if training.get("measures") else "")
        + f"; {training['ended']}.",
    ]
    if teachers := [
        f"{d['name']} by {teacher['model']}"
        + (f" ({teacher['pooling']})" if teacher.get("pooling") else "")
        for d in training["data"]
        for teacher in _teachers(d)
    ]:
        once = ", ".join(dict.fromkeys(teachers))  # several losses may have one teacher
        parts.append(f"Taught by the scores of another model: {once}.")
    if matched := training.get("settings", {}).get("match"):
        parts.append(f"Taught by what {matched['teacher']} computes on the way.")
    if training.get("measures"):
        rows = [
            (name, f"{of['queries']:,}", f"{of['mean']:.4f} [{of['low']:.4f}, {of['high']:.4f}]")
            for name, of in training["measures"].items()
        ]
        head = ("data", "queries kept apart", f"{training['measure']} [95 % interval]")
        parts.append(_table(head, rows))
    return parts


def _teachers(data: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Who taught by scores; lineages of the first releases name one teacher or none."""
    one = data.get("teacher")
    found: list[Mapping[str, Any]] = data.get("teachers", [one] if one else [])
    return found


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
