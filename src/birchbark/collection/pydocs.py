"""How are the docstrings of Python's standard library read as Documents?

The sources are parsed with `ast`; no module is imported. Modules written in C (builtins,
itertools, …) have no Python source and are not part of the collection.
"""

from __future__ import annotations

import ast
import sysconfig
import warnings
from collections.abc import Iterator
from pathlib import Path

from birchbark.collection.parsing.intake import Intake
from birchbark.collection.qrels import read_qrels
from birchbark.collection.queries import read_queries
from birchbark.errors import InputError
from birchbark.records import Document, Qrels, Query

QUESTIONS = Path(__file__).with_name("pydocs_questions")

EXCLUDED = {
    "site-packages",
    "dist-packages",
    "test",
    "tests",
    "idlelib",
    "lib2to3",
    "turtledemo",
}
# Modules that are private in some versions of Python, and their public names.
PUBLIC_NAMES = {"_pydatetime": "datetime", "pathlib._local": "pathlib", "zipfile._path": "zipfile"}

Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def read_pydocs(library: Path, intake: Intake) -> Iterator[tuple[str, Document]]:
    """Yield file and Document of each public module, class, function and method with a docstring.

    The doc_id is the qualified name (`heapq.nlargest`), `title` the kind and the signature, `text`
    the docstring, and `kind` one of module, class, function, method. Names that start with an
    underscore are private. If a name is defined twice, the first definition is used.

    library: the folder of the standard library. Raises InputError if it contains no sources.
    """
    sources = [(p, _module(p.relative_to(library))) for p in sorted(library.rglob("*.py"))]
    public = [(path, module) for path, module in sources if module and path.is_file()]
    if not public:
        raise InputError(
            "no Python sources",
            where=str(library),
            remedy="install the sources of the standard library",
        )
    seen: set[str] = set()
    for source, module in public:
        try:
            tree = _parse(source)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            intake.bad(InputError(f"not valid Python: {error}", where=str(source)))
            continue
        for document in _documents(tree, module):
            if document.doc_id not in seen:
                seen.add(document.doc_id)
                yield str(source), document


def standard_library() -> Path:
    """Return the folder of the running Python's standard library."""
    return Path(sysconfig.get_path("stdlib"))


def _parse(source: Path) -> ast.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the user cannot mend, for example, invalid escapes
        return ast.parse(source.read_bytes())


def _module(relative: Path) -> str:
    """Return the name of the module at `relative`; an empty string if it is not public."""
    parts = relative.with_suffix("").parts
    names = parts[:-1] if parts[-1] == "__init__" else parts
    name = ".".join(names)
    if name in PUBLIC_NAMES:
        return PUBLIC_NAMES[name]
    private = any(part.startswith("_") for part in names) or EXCLUDED.intersection(parts)
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
    """Yield the definitions in `node`, including those under an `if` or `try`."""
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
    """Return the questions about this collection that ship with the package."""
    return read_queries(QUESTIONS / "topics.txt")


def pydocs_qrels() -> Qrels:
    """Return the judgments for these questions, grades 0 to 3; topics.txt explains them."""
    return read_qrels(QUESTIONS / "qrels.txt")
