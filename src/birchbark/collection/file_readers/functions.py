"""Where do functions and classes begin in source code? Tree-sitter finds them (extra `code`)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from itertools import accumulate, islice
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from tree_sitter import Node, Parser, Query


class Grammar(NamedTuple):
    """The package that has a grammar, and its function that returns it."""

    package: str
    function: str = "language"


_JAVASCRIPT, _CPP = Grammar("tree_sitter_javascript"), Grammar("tree_sitter_cpp")
GRAMMARS = {
    **dict.fromkeys((".py", ".pyi"), Grammar("tree_sitter_python")),
    **dict.fromkeys((".js", ".jsx", ".mjs"), _JAVASCRIPT),
    ".ts": Grammar("tree_sitter_typescript", "language_typescript"),
    ".tsx": Grammar("tree_sitter_typescript", "language_tsx"),
    **dict.fromkeys((".c", ".cc", ".cpp", ".cxx", ".h", ".hh", ".hpp"), _CPP),
    ".java": Grammar("tree_sitter_java"),
    ".cs": Grammar("tree_sitter_c_sharp"),
    ".go": Grammar("tree_sitter_go"),
    ".rs": Grammar("tree_sitter_rust"),
    ".rb": Grammar("tree_sitter_ruby"),
    ".php": Grammar("tree_sitter_php", "language_php"),
    **dict.fromkeys((".sh", ".bash"), Grammar("tree_sitter_bash")),
}
# Grammars name such nodes alike: function_definition, method_declaration, struct_item, class, …
_DEFINITION = re.compile(
    r"(\w+_)?(function|method|constructor|class|struct|enum|interface|trait|impl|mod|module"
    r"|namespace|record|union|macro|type)_(definition|declaration|item|specifier)"
    r"|(\w+_)?(class|method|module)"
)
_OF_FUNCTION = re.compile(r"function|method|constructor|macro|lexical")
# A function that JavaScript and TypeScript assign to a name.
_ARROW = "(lexical_declaration (variable_declarator value: (arrow_function))) @definition"
_AROUND = {"decorated_definition", "export_statement", "template_declaration"}
_BEFORE = re.compile("comment|attribute|decorator")


def installed_grammars() -> list[str]:
    """Return the packages with grammars that are installed, sorted; none without tree-sitter."""
    packages = {grammar.package for grammar in GRAMMARS.values()}
    return sorted(filter(find_spec, packages)) if find_spec("tree_sitter") else []


def has_grammar(suffix: str) -> bool:
    """Return whether functions are found in files with this suffix, and load what finds them."""
    grammar = GRAMMARS.get(suffix)
    installed = grammar and find_spec("tree_sitter") and find_spec(grammar.package)
    return bool(grammar and installed and _load(grammar))


def function_starts(text: str, suffix: str) -> list[int]:
    """Return the offset of the line in which each function or class begins, in order.

    Comments and decorators directly above it belong to it. Functions within functions, and what is
    a single line, do not count. What follows a function or class outside of any other begins there.

    Parsers are programs in C, which can fail on hostile code, and take long: call it in a process
    of its own. suffix: see `has_grammar`.
    """
    parser, query = _load(GRAMMARS[suffix])
    lines = text.split("\n")
    rows = sorted(set(_rows(parser, query, text, lines)))
    offsets = [0, *accumulate(len(line) + 1 for line in lines)]
    return [offsets[row] for row in rows]


@cache
def _load(grammar: Grammar) -> tuple[Parser, Query]:
    """Return a parser, and the query for the definitions of its language."""
    from tree_sitter import Language, Parser, Query

    language = Language(getattr(import_module(grammar.package), grammar.function)())
    kinds = {
        name
        for number in range(language.node_kind_count)
        if language.node_kind_is_named(number) and language.node_kind_is_visible(number)
        if (name := language.node_kind_for_id(number)) and _DEFINITION.fullmatch(name)
    }
    wanted = f"[{' '.join(f'({kind})' for kind in sorted(kinds))}] @definition"
    if language.id_for_node_kind("arrow_function", True) and language.id_for_node_kind(
        "lexical_declaration", True
    ):
        wanted += _ARROW
    return Parser(language), Query(language, wanted)


def _rows(parser: Parser, query: Query, text: str, lines: list[str]) -> Iterator[int]:
    """Yield the line, from 0, of each start, in any order and possibly twice."""
    from tree_sitter import QueryCursor

    root = parser.parse(text.encode()).root_node
    nodes = QueryCursor(query).captures(root).get("definition", [])
    end_of_function = -1
    for node in sorted(nodes, key=lambda node: (node.start_byte, -node.end_byte)):
        first, last = node.start_point.row, node.end_point.row
        if node == root or node.start_byte < end_of_function or first == last:
            continue
        if _OF_FUNCTION.search(node.type):
            end_of_function = node.end_byte
        whole = node
        while whole.parent and whole.parent.type in _AROUND:
            whole = whole.parent
        yield _row_of_comments(whole, lines)
        if whole.parent == root:
            following = range(whole.end_point.row + 1, len(lines))
            yield from islice((row for row in following if lines[row].strip()), 1)


def _row_of_comments(node: Node, lines: list[str]) -> int:
    """Return the line of a node, or of the first of the comments directly above it."""
    row: int = node.start_point.row
    before = node.prev_sibling
    if before is None and node.parent and node.parent.start_byte == node.start_byte:
        before = node.parent.prev_sibling  # the body of a class, which begins with this node
    while before and _BEFORE.search(before.type) and before.end_point.row >= row - 1:
        start = before.start_point
        if lines[start.row].encode()[: start.column].strip():  # a comment beside other code
            break
        row, before = start.row, before.prev_sibling
    return row
