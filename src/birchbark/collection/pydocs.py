"""How does the documentation inside this Python's standard library become Documents?

The sources are parsed with `ast`; none of them is imported. What is written in C (builtins,
itertools, …) has no source here and is no part of the collection.
"""

from __future__ import annotations

import ast
import sysconfig
import warnings
from collections.abc import Iterator
from pathlib import Path

from birchbark.collection.intake import Intake
from birchbark.collection.qrels import read_qrels
from birchbark.collection.queries import read_queries
from birchbark.errors import InputError
from birchbark.records import Document, Qrels, Query

QUESTIONS = Path(__file__).with_name("pydocs_questions")

NOT_LIBRARY = {
    "site-packages",
    "dist-packages",
    "test",
    "tests",
    "idlelib",
    "lib2to3",
    "turtledemo",
}
# Implementations under private names, in some versions of Python, and what they are imported as.
PUBLIC = {"_pydatetime": "datetime", "pathlib._local": "pathlib", "zipfile._path": "zipfile"}

Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def read_pydocs(library: Path, intake: Intake) -> Iterator[tuple[str, Document]]:
    """One Document for each public module, class, function and method below `library`.

    Those without a docstring are no documentation and left out.

    doc_id is the qualified name (`heapq.nlargest`), `title` the kind and the signature, `text` the
    docstring, `kind` one of module, class, function, method. Names that start with an underscore
    are private and left out. A name defined twice keeps its first definition.

    Raises InputError if the sources of the standard library are not installed.
    """
    sources = [(p, _module(p.relative_to(library))) for p in sorted(library.rglob("*.py"))]
    public = [(path, module) for path, module in sources if module and path.is_file()]
    if not public:
        raise InputError(
            "no Python sources", where=str(library), remedy="install the library's sources"
        )
    seen: set[str] = set()
    for source, module in public:
        try:
            tree = _parse(source)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as broken:
            intake.bad(InputError(f"not valid Python: {broken}", where=str(source)))
            continue
        for document in _documents(tree, module):
            if document.doc_id not in seen:
                seen.add(document.doc_id)
                yield str(source), document


def standard_library() -> Path:
    """Where the sources of the running Python's standard library lie."""
    return Path(sysconfig.get_path("stdlib"))


def _parse(source: Path) -> ast.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # escapes that Python frowns upon are no fault of the user
        return ast.parse(source.read_bytes())


def _module(relative: Path) -> str:
    """The name that the file at `relative` is imported by; empty if it is not public."""
    parts = relative.with_suffix("").parts
    names = parts[:-1] if parts[-1] == "__init__" else parts
    name = ".".join(names)
    if name in PUBLIC:
        return PUBLIC[name]
    private = any(part.startswith("_") for part in names) or NOT_LIBRARY.intersection(parts)
    return "" if private else name


def _documents(tree: ast.Module, module: str) -> Iterator[Document]:
    if doc := ast.get_docstring(tree):
        yield Document(module, {"title": f"module {module}", "text": doc, "kind": "module"})
    yield from _members(tree, module, within_class=False)


def _members(node: ast.AST, name: str, *, within_class: bool) -> Iterator[Document]:
    for child in _definitions(node):
        if child.name.startswith("_"):
            continue
        qualified = f"{name}.{child.name}"
        is_class = isinstance(child, ast.ClassDef)
        if doc := ast.get_docstring(child):
            kind = "class" if is_class else "method" if within_class else "function"
            title = f"{kind} {_signature(child, qualified)}"
            fields = {"title": title, "text": doc, "kind": kind}
            yield Document(qualified, fields)
        if is_class:
            yield from _members(child, qualified, within_class=True)


def _definitions(node: ast.AST) -> Iterator[Definition]:
    """Definitions in `node`, those under an `if` or `try` included."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, Definition):
            yield child
        elif isinstance(child, ast.If | ast.Try | ast.ExceptHandler):
            yield from _definitions(child)


def _signature(node: Definition, qualified: str) -> str:
    if isinstance(node, ast.ClassDef):
        bases = ", ".join(ast.unparse(base) for base in node.bases)
        return f"{qualified}({bases})" if bases else qualified
    return f"{qualified}({ast.unparse(node.args)})"


def pydocs_queries() -> list[Query]:
    """The questions about this collection that ship with the package."""
    return read_queries(QUESTIONS / "topics.txt")


def pydocs_qrels() -> Qrels:
    """Their judgments, grades 0 to 3; topics.txt says how they were made."""
    return read_qrels(QUESTIONS / "qrels.txt")
