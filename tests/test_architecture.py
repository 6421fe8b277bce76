"""Does each room import only what ARCHITECTURE.md lets it?"""

from __future__ import annotations

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import birchbark

SOURCE = Path(birchbark.__file__).parent
EVERYONE = {"records", "errors", "_version"}
ROOMS = {
    "_version": set(),
    "errors": set(),
    "records": {"errors"},
    "artifact": {"errors"},
    "section": {"errors"},
    "collection": {"artifact"},
    "text": set(),
    "index": {"artifact", "text"},
    "retrieve": {"artifact", "index", "text"},
    "segment": set(),
    "pairs": {"artifact", "collection", "score"},
    "checkpoint": {"artifact"},
    "score": {"checkpoint"},
    "remember": {"artifact", "score"},
    "hub": {"artifact", "checkpoint", "score"},
    "combine": set(),
    "device": {"checkpoint", "score"},
    "train": {
        "artifact",
        "collection",
        "section",
        "segment",
        "checkpoint",
        "score",
        "remember",
        "device",
        "evaluate",
    },
    "show": {"score", "evaluate"},
    "evaluate": set(),
    "pipeline": {
        "section",
        "index",
        "retrieve",
        "segment",
        "checkpoint",
        "score",
        "remember",
        "combine",
    },
    "study": {
        "artifact",
        "section",
        "collection",
        "text",
        "index",
        "retrieve",
        "segment",
        "checkpoint",
        "score",
        "remember",
        "combine",
        "evaluate",
        "pipeline",
        "show",
        "device",
        "train",
    },
    "adapters": {"checkpoint", "pipeline", "score"},
    "serve": {"checkpoint", "collection", "combine", "pipeline", "remember", "score", "show"},
    "cli": {
        "artifact",
        "collection",
        "index",
        "retrieve",
        "segment",
        "checkpoint",
        "score",
        "remember",
        "evaluate",
        "pipeline",
        "show",
        "study",
        "hub",
        "pairs",
        "device",
        "train",
        "serve",
    },
    "__init__": {"index", "retrieve", "score", "combine", "evaluate", "pipeline"},
    "__main__": {"cli"},
}
PACKAGES = {
    "isal": {"index"},
    "cbor2": {"collection"},
    "ir_datasets": {"collection"},
    "tantivy": {"retrieve"},
    "faiss": {"retrieve"},
    "click": {"cli"},
    "fastapi": {"serve"},
    "haystack": {"adapters"},
    "langchain_core": {"adapters"},
    "llama_index": {"adapters"},
    "pandas": {"adapters"},
    "pyterrier": {"adapters"},
    "starlette": {"serve"},
    "pydantic": {"serve", "adapters"},
    "uvicorn": {"serve"},
    "prometheus_client": {"serve"},
    "rich": {"cli"},
    "numba": {"index"},
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
    "urllib": {"hub"},  # nothing else touches the network
    "http": {"hub"},
    "socket": {"serve"},  # to listen
    "huggingface_hub": set(),  # comes with tokenizers; see hub/client.py
    "bm25s": set(),  # peers, for benchmarks/ alone
    "accelerate": set(),
    "flashrank": set(),
    "sentence_transformers": set(),
    "torch": {"train", "device"},
    "transformers": set(),
}


def imports() -> list[tuple[str, str, str]]:
    """File, its room, and the dotted name of each import in the package."""
    found = []
    for path in sorted(SOURCE.rglob("*.py")):
        relative = path.relative_to(SOURCE)
        room = relative.parts[0].removesuffix(".py")
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{relative}: relative import"
                bare = node.module == "birchbark"  # then each name is a room, or public
                names = [f"birchbark.{a.name}" for a in node.names] if bare else [node.module or ""]
            found += [(str(relative), room, name) for name in names]
    return found


def test_every_room_is_known() -> None:
    """A new room must be entered in the table, and so in the plan."""
    rooms = {room for _, room, _ in imports()}
    assert rooms - ROOMS.keys() == set()
    assert not rooms & {"utils", "helpers", "common", "core"}


def test_rooms_import_only_what_they_may() -> None:
    """Data flows one way through the house."""
    wrong = []
    for file, room, name in imports():
        if name.startswith("birchbark."):
            target = name.split(".")[1]
            if target != room and target not in ROOMS[room] | EVERYONE:
                wrong.append(f"{file} imports {name}")
    assert not wrong


def test_rooms_may_import_only_what_they_do() -> None:
    """A permission that nobody uses is an open door."""
    used: dict[str, set[str]] = {room: set() for room in ROOMS}
    for _, room, name in imports():
        if name.startswith("birchbark."):
            used[room].add(name.split(".")[1])
    assert {room: may - used[room] for room, may in ROOMS.items() if may - used[room]} == {}


def test_no_file_needs_one_that_needs_it() -> None:
    """Nor by way of others: what is below can be read without what is above."""
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


def test_each_package_is_used_in_its_room() -> None:
    """A dependency stays behind the room that it was taken in for."""
    wrong = [
        f"{file} imports {name}"
        for file, room, name in imports()
        if (package := name.split(".")[0]) in PACKAGES and room not in PACKAGES[package]
    ]
    assert not wrong


def test_compiled_functions_call_only_those_of_their_file() -> None:
    """Numba keeps compiled code by file, and would not notice a change in another."""
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


def test_every_file_says_what_it_answers() -> None:
    """The first line of each file states its question."""
    for path in SOURCE.rglob("*.py"):
        assert ast.get_docstring(ast.parse(path.read_text())), path
