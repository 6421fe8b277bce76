"""What does a trained model's card state about its data, lineage and measured quality?

The lineage is a JSON object. `base` names the model that the first training run started from.
`trainings` lists all training runs, oldest first, each with its title, seed, settings, data sets
(with licences and hashes), software versions, and measures on held-out queries.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from birchbark.artifact import fingerprint, write_json
from birchbark.checkpoint.architecture import Architecture
from birchbark.checkpoint.checkpoint import Checkpoint
from birchbark.checkpoint.json_files import read_object
from birchbark.checkpoint.shards import weight_files
from birchbark.errors import ArtifactError

LINEAGE = "birchbark.json"


@dataclass(frozen=True, slots=True)
class CardKind:
    """What the card says about a kind of model.

    Attributes:
        tag: Tag on the hub.
        library: Library that loads the model.
        description: Paragraph that describes the model.
        task: The hub's name for its task.
    """

    tag: str
    library: str
    description: str
    task: str = "text-ranking"


def card_kind(architecture: Architecture) -> CardKind:
    """Return the kind of model that has this architecture."""
    if architecture.parade:
        return CardKind(
            "parade",
            "birchbark",
            f"PARADE with {architecture.parade} aggregation, trained with Birchbark. It reads the "
            "query with each passage of a document and returns one number, the log-odds that the "
            "document is relevant. Other libraries do not implement the aggregation of passages.",
        )
    if architecture.pooling:
        return CardKind(
            "bi-encoder",
            "sentence-transformers",
            "An embedding model, trained with Birchbark. It encodes query and text separately and "
            f"scores them by the cosine of their vectors ({architecture.pooling} pooling).",
            "sentence-similarity",
        )
    if architecture.masked:
        return CardKind(
            "fill-mask",
            "transformers",
            "A masked language model, trained with Birchbark. It predicts masked tokens and "
            "returns no relevance scores; use it as the base for training a ranking model.",
            "fill-mask",
        )
    if architecture.duo:
        return CardKind(
            "duo",
            "birchbark",
            "A pairwise model (duoBERT), trained with Birchbark. It reads a query and two texts "
            "and returns one number, the log-odds that the first text is the more relevant one.",
        )
    return CardKind(
        "cross-encoder",
        "sentence-transformers",
        "A cross-encoder, trained with Birchbark. It reads a query and a text and returns one "
        "number, the log-odds that the text is relevant.",
    )


def lineage_of(base: Checkpoint, name: str) -> dict[str, Any]:
    """Return the lineage stored with `base`, or a new one without training runs.

    name: name of `base` for a new lineage. Raises ArtifactError if the stored lineage is invalid.
    """
    path = base.directory / LINEAGE
    if path.exists():
        lineage = read_object(path)
        if not {"base", "trainings"} <= lineage.keys():
            raise ArtifactError(
                "not a lineage", where=str(path), remedy="remove or repair this file"
            )
        return lineage
    weights = fingerprint(*weight_files(base.weights))
    return {"base": name, "sha256": weights, "trainings": []}


def write_card(model: Path, lineage: Mapping[str, Any], kind: CardKind) -> None:
    """Write the lineage and the model card into the model directory `model`."""
    write_json(model / LINEAGE, lineage)
    (model / "README.md").write_text(render_card(lineage, kind), "utf-8")


def render_card(lineage: Mapping[str, Any], kind: CardKind) -> str:
    """Return the model card, Markdown with the front matter that the hub reads."""
    trainings = lineage["trainings"]
    licences = sorted({data["licence"] for t in trainings for data in t["data"]})
    paragraphs = [
        _front_matter(lineage, kind),
        f"# {trainings[-1]['title']}",
        kind.description,
        f"Trained from {' → '.join([lineage['base'], *(t['title'] for t in trainings)])}.",
        f"Licences of the data: {'; '.join(licences)}.",
        *(paragraph for training in trainings for paragraph in _training_section(training)),
    ]
    return "\n\n".join(paragraphs) + "\n"


def _front_matter(lineage: Mapping[str, Any], kind: CardKind) -> str:
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


def _training_section(training: Mapping[str, Any]) -> list[str]:
    """Return the paragraphs about one training run."""
    data_rows = [
        (
            data["name"],
            f"{data['learnt']['queries']:,}",
            f"{data['learnt']['pairs']:,}",
            f"{data['held']['queries']:,}",
            data["licence"],
        )
        for data in training["data"]
    ]
    paragraphs = [
        f"## {training['title']}",
        _table(("data", "queries", "pairs", "held-out queries", "licence"), data_rows),
        f"Seed {training['seed']}; {training['steps']:,} steps"
        + (f", step {training['best_step']:,} is kept" if training.get("measures") else "")
        + f"; {training['ended']}.",
    ]
    if teachers := [
        f"{data['name']} by {teacher['model']}{_teacher_settings(teacher)}"
        for data in training["data"]
        for teacher in _teachers(data)
    ]:
        distinct = ", ".join(dict.fromkeys(teachers))  # loss terms may share a teacher
        paragraphs.append(f"Distilled from the scores of another model: {distinct}.")
    paragraphs += [
        f"{data['name']}: {of['texts']:,} texts were left out, because their scores by "
        f"{' and '.join(teacher['model'] for teacher in of['teachers'])} are above those of the "
        "relevant texts."
        for data in training["data"]
        for of in data.get("left_out", ())
    ]
    if matched := training.get("settings", {}).get("match"):
        paragraphs.append(f"Distilled from the hidden states of {matched['teacher']}.")
    if training.get("measures"):
        rows = [
            (name, f"{of['queries']:,}", f"{of['mean']:.4f} [{of['low']:.4f}, {of['high']:.4f}]")
            for name, of in training["measures"].items()
        ]
        header = ("data", "held-out queries", f"{training['measure']} [95 % interval]")
        paragraphs.append(_table(header, rows))
        paragraphs += [
            f"{name}: {of['agreement']:.0%} of comparisons give the same order when the two texts "
            "are swapped."
            for name, of in training["measures"].items()
            if "agreement" in of
        ]
    return paragraphs


def _teachers(data: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the teachers of a data set; lineages of early releases name at most one."""
    teacher = data.get("teacher")
    teachers: list[Mapping[str, Any]] = data.get("teachers", [teacher] if teacher else [])
    return teachers


def _teacher_settings(teacher: Mapping[str, Any]) -> str:
    """Return pooling and precision of a teacher in parentheses, or nothing."""
    settings = [teacher[key] for key in ("pooling", "precision") if teacher.get(key)]
    return f" ({', '.join(settings)})" if settings else ""


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
