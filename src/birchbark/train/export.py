"""How does a network become a model directory that others can load?

Transformers' layout: config.json, model.safetensors, the tokeniser, and a card with its lineage.
sentence-transformers' CrossEncoder reads it as it is, and so does score/.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from birchbark.artifact import new_directory, write_json
from birchbark.checkpoint.heads import MODES, PASSAGES, STATED, STATEMENT, TWO_TEXTS, Pooling
from birchbark.checkpoint.model_json import read_object
from birchbark.checkpoint.reader import Checkpoint
from birchbark.checkpoint.tokenizer import Pieces
from birchbark.train.card import LINEAGE, Kind, card, kind_of
from birchbark.train.network import Network

HEADS = ("classifier.", "pre_classifier.", "parade.")  # which have no prefix
FOREIGN = (  # what a base says of itself alone; without the last two it is a sigmoid
    *("problem_type", "_name_or_path", "quantization_config"),
    *("sentence_transformers", "sbert_ce_default_activation_function"),
)
VOCABULARIES = ("vocab.txt", "vocab.json", "merges.txt", "special_tokens_map.json")


def export(
    target: Path, network: Network, base: Checkpoint, pieces: Pieces, lineage: Mapping[str, Any]
) -> None:
    """Write `network`, trained from `base`, to `target`, in the place of what is there.

    lineage: what the card tells (card.py).
    """
    from safetensors.torch import save

    prefix, masked, form = base.family.prefix, base.family.masked, network.form
    heads = (*HEADS, masked.linear, masked.norm, masked.bias)
    named = {
        name if name.startswith(heads) else prefix + name: weight.detach().cpu().contiguous()
        for name, weight in network.weights.items()
    }
    with new_directory(target, replace=True) as scratch:
        weights = save(named, metadata={"format": "pt"})
        (scratch / "model.safetensors").write_bytes(weights)
        write_json(scratch / "config.json", _config(network, base))
        pieces.save(scratch / "tokenizer.json")
        write_json(scratch / "tokenizer_config.json", _tokenizer_config(base))
        for name in VOCABULARIES:
            if (base.directory / name).exists():
                shutil.copyfile(base.directory / name, scratch / name)
        was = base.head.mode if form.masked and isinstance(base.head, Pooling) else None
        if mode := form.pooling or was:
            _write_pooling(scratch, mode, network.shape.hidden, base.max_length)
        kind = kind_of(form)
        write_card(scratch, lineage, kind)


def _write_pooling(folder: Path, mode: str, hidden: int, longest: int) -> None:
    """sentence-transformers' layout of an embedding that reads as many tokens as its base."""
    kind = "sentence_transformers.models"
    modules = [("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Normalize", "Normalize")]
    listed = [
        {"idx": n, "name": str(n), "path": path, "type": f"{kind}.{name}"}
        for n, (path, name) in enumerate(modules)
    ]
    (folder / "1_Pooling").mkdir()
    stated: dict[str, Any] = {key: said == mode for key, said in STATED.items() if said in MODES}
    stated["word_embedding_dimension"] = hidden
    stated["pooling_mode_mean_sqrt_len_tokens"] = False
    write_json(folder / "modules.json", listed)
    write_json(
        folder / "sentence_bert_config.json", {"max_seq_length": longest, "do_lower_case": False}
    )
    write_json(folder / "1_Pooling" / "config.json", stated)


def write_card(model: Path, lineage: Mapping[str, Any], kind: Kind) -> None:
    """Write the card of the model directory `model`, for people and for machines."""
    write_json(model / LINEAGE, lineage)
    (model / "README.md").write_text(card(lineage, kind), "utf-8")


def _config(network: Network, base: Checkpoint) -> dict[str, Any]:
    """The base's configuration, with one logit and the sizes that were kept."""
    config = read_object(base.directory / "config.json")
    shape, names, form = network.shape, base.family.keys, network.form
    sizes = {
        "num_hidden_layers": shape.layers,
        "hidden_size": shape.hidden,
        "num_attention_heads": shape.heads,
        "intermediate_size": shape.intermediate,
    }
    if base.family.names.widen:
        sizes["embedding_size"] = shape.embedding
    if "{group}" in base.family.names.query:
        sizes["num_hidden_groups"] = shape.groups
    for key in FOREIGN:
        config.pop(key, None)
    classes, said = f"{base.family.classes}ForSequenceClassification", {}
    if form.parade:
        classes = classes.replace("ForSequenceClassification", "Model")
        said = {STATEMENT: {"reads": PASSAGES, "aggregation": form.parade}}
    if form.duo:
        said = {STATEMENT: {"reads": TWO_TEXTS}}
    labels = {"id2label": {"0": "relevance"}, "label2id": {"relevance": 0}}
    if form.pooling:
        classes, labels = classes.replace("ForSequenceClassification", "Model"), {}
    if form.masked:
        classes, labels = classes.replace("ForSequenceClassification", "ForMaskedLM"), {}
    for key in (STATEMENT, "id2label", "label2id"):
        config.pop(key, None)
    return (
        config
        | said
        | labels
        | {
            "architectures": [classes],
            **{names.get(key, key): size for key, size in sizes.items()},
            "torch_dtype": "float32",
        }
    )


def _tokenizer_config(base: Checkpoint) -> dict[str, Any]:
    path = base.directory / "tokenizer_config.json"
    stated = read_object(path) if path.exists() else {}
    for key in ("max_length", "name_or_path", "stride", "truncation_side", "truncation_strategy"):
        stated.pop(key, None)
    return stated | {"model_max_length": base.shape.longest}
