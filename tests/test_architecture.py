"""Does each package import only what ARCHITECTURE.md allows?"""

from __future__ import annotations

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import birchbark

SOURCE = Path(birchbark.__file__).parent
EVERY_PACKAGE_MAY_IMPORT = {
    "records",
    "record_values",
    "errors",
    "defaults",
    "arguments",
    "_version",
}
MAY_IMPORT = {
    "_version": set(),
    "errors": set(),
    "arguments": {"errors"},
    "deadline": {"errors"},
    "defaults": set(),
    "recently_used": set(),
    "compiled": set(),
    "process_limits": {"systems"},
    "systems": set(),
    "lazy_sequence": set(),
    "records": {"errors"},
    "record_values": {"errors"},
    "artifact": {"errors", "systems"},
    "section": {"errors"},
    "collection": {"artifact", "process_limits", "systems", "text"},
    "text": set(),
    "index": {"artifact", "compiled", "recently_used", "systems", "text"},
    "retrieve": {"recently_used", "artifact", "index", "text"},
    "segment": {"text"},
    "pairs": {"artifact", "collection", "compiled", "lazy_sequence", "score"},
    "checkpoint": {"artifact", "text"},
    "score": {"artifact", "checkpoint", "compiled", "systems"},
    "score_cache": {"artifact", "deadline", "score", "systems"},
    "hub": {"artifact", "checkpoint", "score"},
    "combine": set(),
    "device": {"checkpoint", "score"},
    "train": {
        "artifact",
        "collection",
        "pairs",
        "section",
        "segment",
        "checkpoint",
        "score",
        "score_cache",
        "device",
        "evaluate",
        "index",
        "retrieve",
    },
    "show": {"score", "evaluate", "pipeline"},
    "evaluate": set(),
    "pipeline": {
        "deadline",
        "recently_used",
        "lazy_sequence",
        "collection",
        "section",
        "index",
        "retrieve",
        "segment",
        "checkpoint",
        "score",
        "score_cache",
        "combine",
        "text",
    },
    "cluster": {"artifact", "checkpoint", "index", "retrieve", "score", "score_cache"},
    "adapters": {
        "artifact",
        "checkpoint",
        "index",
        "pipeline",
        "retrieve",
        "serve",
        "show",
        "text",
    },
    "serve": {
        "deadline",
        "process_limits",
        "systems",
        "recently_used",
        "checkpoint",
        "collection",
        "combine",
        "index",
        "pipeline",
        "retrieve",
        "score_cache",
        "score",
        "show",
    },
    "bench": {
        "artifact",
        "collection",
        "evaluate",
        "index",
        "pipeline",
        "segment",
        "serve",
        "show",
        "text",
    },
    "cli": {
        "adapters",
        "bench",
        "deadline",
        "cluster",
        "combine",
        "artifact",
        "collection",
        "compiled",
        "index",
        "retrieve",
        "segment",
        "checkpoint",
        "score",
        "score_cache",
        "evaluate",
        "pipeline",
        "show",
        "hub",
        "pairs",
        "device",
        "train",
        "serve",
        "systems",
    },
    "__init__": {
        "collection",
        "index",
        "retrieve",
        "score",
        "evaluate",
        "pipeline",
    },
    "__main__": {"cli"},
}
THIRD_PARTY = {
    "isal": {"index"},
    "backports": {"collection"},
    "cbor2": {"collection"},
    "ir_datasets": {"collection"},
    "chardet": {"collection"},
    "py3langid": {"collection"},
    "ncompress": {"collection"},
    "pypandoc": {"collection"},
    "pypdfium2": {"collection"},
    "python_calamine": {"collection"},
    "tree_sitter": {"collection"},
    "tantivy": {"adapters"},
    "faiss": {"retrieve"},
    "rapidfuzz": {"retrieve", "serve"},
    "markdown_it": {"serve"},
    "nh3": {"serve"},
    "click": {"cli"},
    "fastapi": {"serve", "bench"},
    "h11": {"serve"},
    "haystack": {"adapters"},
    "langchain_core": {"adapters"},
    "llama_index": {"adapters"},
    "mcp": {"adapters"},
    "mteb": {"adapters"},
    "pandas": {"adapters"},
    "pyarrow": {"collection"},
    "pyterrier": {"adapters"},
    "starlette": {"serve"},
    "pydantic": {"serve", "adapters", "bench"},
    "uvicorn": {"serve"},
    "opentelemetry": {"serve"},
    "prometheus_client": {"serve"},
    "rich": {"cli", "show"},
    "numba": {"compiled"},
    "regex": {"text"},
    "Stemmer": {"text"},
    "nupunkt": {"segment"},
    "onnx": {"score", "device"},
    "onnxruntime": {"score"},
    "safetensors": {"checkpoint", "score", "train"},
    "tokenizers": {"checkpoint", "text"},
    "ir_measures": {"evaluate"},
    "scipy": {"evaluate"},
    "matplotlib": {"show"},
    "jinja2": {"show"},
    # No other package uses the network, except ray's clusters; serve reads links (urllib.parse).
    "urllib": {"hub", "serve"},
    "http": {"hub"},
    "socket": {"cluster", "serve"},  # to see whether a cluster listens; to listen
    "ray": {"cluster"},
    "huggingface_hub": set(),  # comes with tokenizers; see hub/client.py
    "bm25s": set(),  # compared with in benchmarks/ only
    "accelerate": set(),
    "flashrank": set(),
    "sentence_transformers": set(),
    "torch": {"train", "device"},
    "transformers": set(),
}


def imports() -> list[tuple[str, str, str]]:
    """Return file, package and dotted name of each import."""
    found = []
    for path in sorted(SOURCE.rglob("*.py")):
        relative = path.relative_to(SOURCE)
        package = relative.parts[0].removesuffix(".py")
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{relative}: relative import"
                bare = node.module == "birchbark"  # then each name is a package, or public
                names = [f"birchbark.{a.name}" for a in node.names] if bare else [node.module or ""]
            found += [(str(relative), package, name) for name in names]
    return found


def test_every_package_is_listed() -> None:
    """A new package must be entered in the table above."""
    packages = {package for _, package, _ in imports()}
    assert packages - MAY_IMPORT.keys() == set()
    assert not packages & {"utils", "helpers", "common", "core"}


def test_packages_import_only_what_they_may() -> None:
    """Dependencies between packages point one way."""
    wrong = []
    for file, package, name in imports():
        if name.startswith("birchbark."):
            target = name.split(".")[1]
            if target != package and target not in MAY_IMPORT[package] | EVERY_PACKAGE_MAY_IMPORT:
                wrong.append(f"{file} imports {name}")
    assert not wrong


def test_every_permission_is_used() -> None:
    """A package may import only what it does import."""
    used: dict[str, set[str]] = {package: set() for package in MAY_IMPORT}
    for _, package, name in imports():
        if name.startswith("birchbark."):
            used[package].add(name.split(".")[1])
    assert {
        package: may - used[package] for package, may in MAY_IMPORT.items() if may - used[package]
    } == {}


def test_no_import_cycles() -> None:
    """No module imports itself, directly or through others."""
    files = {
        path.relative_to(SOURCE).with_suffix("").as_posix().removesuffix("/__init__"): path
        for path in SOURCE.rglob("*.py")
    }
    needs: dict[str, set[str]] = {name: set() for name in files}
    for file, _, name in imports():
        parts = name.split(".")[1:] if name.startswith("birchbark.") else []
        while parts and "/".join(parts) not in files:
            parts.pop()
        if parts:
            needs[file.removesuffix(".py").removesuffix("/__init__")].add("/".join(parts))
    try:
        tuple(TopologicalSorter(needs).static_order())
    except CycleError as circle:
        pytest.fail(" → ".join(circle.args[1]))


def test_no_circles_between_folders() -> None:
    """No two folders of a package import each other; the files beside its folders are one, too."""
    folders = {path.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("*") if path.is_dir()}
    needs: dict[str, set[str]] = {folder: set() for folder in folders}
    for file, package, name in imports():
        parts = name.split(".")[1:] if name.startswith("birchbark.") else []
        while parts and "/".join(parts) not in folders:
            parts.pop()
        here, there = Path(file).parent.as_posix(), "/".join(parts)
        if parts and parts[0] == package and here != there:
            needs[here].add(there)
    try:
        tuple(TopologicalSorter(needs).static_order())
    except CycleError as circle:
        pytest.fail(" → ".join(circle.args[1]))


def test_libraries_are_used_in_their_packages() -> None:
    """A library is imported only by the packages listed for it."""
    wrong = [
        f"{file} imports {name}"
        for file, package, name in imports()
        if (library := name.split(".")[0]) in THIRD_PARTY and package not in THIRD_PARTY[library]
    ]
    assert not wrong


def test_compiled_functions_call_only_those_of_their_file() -> None:
    """Numba caches compiled code per file, and would not notice a change in another file."""
    compiled: dict[Path, dict[str, ast.FunctionDef]] = {}
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef) and any(
                isinstance(d, ast.Name) and d.id == "compiled" for d in node.decorator_list
            ):
                compiled.setdefault(path, {})[node.name] = node
    assert sum(map(len, compiled.values())) > 20
    everywhere = {name for functions in compiled.values() for name in functions}
    for path, functions in compiled.items():
        for name, function in functions.items():
            calls = [node.func for node in ast.walk(function) if isinstance(node, ast.Call)]
            called = {func.id for func in calls if isinstance(func, ast.Name)}
            assert not (called & everywhere) - functions.keys(), f"{path.name}: {name}"


def test_every_module_has_a_docstring() -> None:
    """The first line of each module is the question that it answers."""
    for path in SOURCE.rglob("*.py"):
        assert ast.get_docstring(ast.parse(path.read_text())), path
