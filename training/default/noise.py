"""Which texts share words with a question and answer none? Source code, and other questions.

Writes a collection to standard output: the source code of Python's standard library in chunks of
lines, without comments and docstrings, and the questions in the files given. pool.sh runs it.
"""

from __future__ import annotations

import ast
import json
import sys
from collections.abc import Iterator

from birchbark import Document, read_queries
from birchbark.collection.pydocs import standard_library
from birchbark.segment.sentences import sentences

SHORTEST = 40  # characters of a chunk of code


def code() -> Iterator[tuple[str, str]]:
    """Yield id and text of each chunk of code."""
    root = standard_library()
    for path in sorted(root.rglob("*.py")):
        if {"test", "tests", "idle_test", "site-packages"} & set(path.relative_to(root).parts):
            continue
        try:
            bare = ast.unparse(_without_docstrings(ast.parse(path.read_bytes())))
        except (SyntaxError, ValueError):  # files that test errors
            continue
        name = path.relative_to(root).as_posix()
        for segment in sentences(Document(name, {"text": bare})):
            if len(segment.text) >= SHORTEST:
                yield f"{name}:{segment.start}", segment.text


def _without_docstrings(tree: ast.Module) -> ast.Module:
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(tree):
        if isinstance(node, documented) and ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    return tree


if __name__ == "__main__":
    questions = ((f"question:{q.query_id}", q.text) for p in sys.argv[1:] for q in read_queries(p))
    for doc_id, text in (*code(), *questions):
        sys.stdout.write(json.dumps({"id": doc_id, "text": text}) + "\n")
