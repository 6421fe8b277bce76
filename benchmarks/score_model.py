"""Which model does every engine load: how is MiniLM's encoder written with a random head?

Speed does not depend on the weights of the head, so it is not trained. Peers read files in the
format of transformers, or a plain ONNX export.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np

SEED = 0
PLAIN, QUANTISED = "plain.onnx", "plain-int8.onnx"
TOKENISER = ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "vocab.txt")


def write_model(directory: Path) -> None:
    """Write a cross-encoder with one logit, in the format of transformers."""
    from safetensors.numpy import load_file, save_file

    from birchbark.checkpoint.locate import locate

    source = locate("all-MiniLM-L6-v2")
    directory.mkdir(parents=True, exist_ok=True)
    for name in TOKENISER:
        shutil.copy(source / name, directory / name)
    config = json.loads((source / "config.json").read_text())
    config |= {"architectures": ["BertForSequenceClassification"], "id2label": {"0": "LABEL_0"}}
    config |= {"label2id": {"LABEL_0": 0}}
    (directory / "config.json").write_text(json.dumps(config, indent=1))
    random, hidden = np.random.default_rng(SEED), config["hidden_size"]
    tensors = {
        f"bert.{name}": value
        for name, value in load_file(source / "model.safetensors").items()
        if not name.endswith("position_ids")
    }
    tensors |= {
        "bert.pooler.dense.weight": _normal(random, hidden, hidden),
        "bert.pooler.dense.bias": _normal(random, hidden),
        "classifier.weight": _normal(random, 1, hidden),
        "classifier.bias": _normal(random, 1),
    }
    save_file(tensors, directory / "model.safetensors", metadata={"format": "pt"})


def _normal(random: np.random.Generator, *shape: int) -> Any:
    return random.normal(0, 1 / np.sqrt(shape[-1]), shape).astype(np.float32)


def export(directory: Path) -> None:
    """Export the model with torch, and quantise the export with ONNX Runtime (dynamic int8)."""
    import torch
    from onnxruntime.quantization import QuantType, quantize_dynamic
    from transformers import AutoModelForSequenceClassification

    model = AutoModelForSequenceClassification.from_pretrained(
        directory, attn_implementation="eager"
    ).eval()

    class Plain(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, input_ids: Any, attention_mask: Any, token_type_ids: Any) -> Any:
            return self.model(input_ids, attention_mask, token_type_ids).logits

    names = ["input_ids", "attention_mask", "token_type_ids"]
    torch.onnx.export(
        Plain(),
        (torch.ones((2, 7), dtype=torch.int64),) * 3,
        str(directory / PLAIN),
        input_names=names,
        output_names=["logits"],
        dynamic_axes={name: {0: "batch", 1: "length"} for name in names},
        opset_version=17,
        dynamo=False,
    )
    quantize_dynamic(
        directory / PLAIN, directory / QUANTISED, per_channel=True, weight_type=QuantType.QInt8
    )


if __name__ == "__main__":
    import sys

    export(Path(sys.argv[1]))
