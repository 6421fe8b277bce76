"""Does the time of each regular expression of the package grow no faster than the text?

Texts are made for each expression from a text that it matches: its beginnings, then something that
occurs in the expression, thousands of times, then an end that does not fit. A search that is tried
again from each character, or that divides a run of blanks in all possible ways, takes sixteen times
as long for four times the text.
"""

from __future__ import annotations

import ast
import importlib
import re
from collections import deque
from collections.abc import Callable, Iterator
from itertools import chain, product
from pathlib import Path
from re import _constants as kinds  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

import pytest

import birchbark
from growth import FASTER_THAN_SQUARE, NOTABLE_SECONDS, growth, seconds

SOURCE = Path(birchbark.__file__).parent
METHODS = ("match", "fullmatch", "search", "sub", "subn", "split", "findall", "finditer")
FEW, SIZE, LARGER = 24, 2_000, 8_000  # repetitions
# Values of local variables in expressions.
LOCALS = {
    "tag": "DOC",
    "flags": re.IGNORECASE,
    "label": "title",
    "target": Path("target"),
    "pattern": "x",
    "name": "title",
    "segments": [["a", "*", "b"], ["*", "*"], ["a", "*", "b", "*", "c"], ["*", "*"], ["a"]],
}


def expressions() -> Iterator[tuple[Path, ast.Call, str | None]]:
    """Yield file, call and, if it is assigned, name of each use of re and regex."""
    for path in sorted(SOURCE.rglob("*.py")):
        text = path.read_text("utf-8")
        if "import re" not in text:
            continue
        tree = ast.parse(text)
        names = {
            id(value): target.id
            for node in ast.walk(tree)
            if isinstance(node, ast.Assign)
            for target, value in _assigned(node)
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                of = node.func.value
                library = of.id if isinstance(of, ast.Name) else ""
                if library in ("re", "regex") and node.func.attr in (*METHODS, "compile"):
                    yield path, node, names.get(id(node))


def _assigned(node: ast.Assign) -> Iterator[tuple[ast.Name, ast.expr]]:
    target = node.targets[0]
    if isinstance(target, ast.Name):
        yield target, node.value
    elif isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
        pairs = zip(target.elts, node.value.elts, strict=True)
        yield from ((name, value) for name, value in pairs if isinstance(name, ast.Name))


EXPRESSIONS = list(expressions())


def test_all_are_found() -> None:
    """Files of all rooms are searched, with the names that expressions have there."""
    assert len(EXPRESSIONS) > 100
    assert {"_HEADING", "_LAID_OUT", "_COMMENT"} <= {name for _, _, name in EXPRESSIONS}


@pytest.mark.parametrize(
    ("path", "call", "name"),
    EXPRESSIONS,
    ids=[f"{p.relative_to(SOURCE)}:{call.lineno}" for p, call, _ in EXPRESSIONS],
)
def test_time_grows_no_faster_than_the_text(path: Path, call: ast.Call, name: str | None) -> None:
    """Each expression is tried by the methods with which the package uses it."""
    pattern = compiled(path, call)
    used = {call.func.attr} if call.func.attr != "compile" else uses(path, name)  # type: ignore[attr-defined]
    for method in used or {"search"}:
        check_growth(pattern, method)


@pytest.mark.parametrize(
    ("method", "text"),
    [
        ("search", r"[ \t]+$"),
        ("fullmatch", r"#+[ \t]+(.*?)[ \t]*"),
        ("match", r"\S.* {3,}\S"),
        ("match", r"(a|aa)+b"),
        ("search", r"<x[^>]*>"),
    ],
)
def test_those_that_grow_faster_are_found(method: str, text: str) -> None:
    with pytest.raises(AssertionError, match=r"times as long|is slow"):
        check_growth(re.compile(text), method)


def compiled(path: Path, call: ast.Call) -> Any:
    """Return the pattern of a call, by the values that its module's names have.

    In a cached function without arguments, it is what the function returns.
    """
    module = ".".join(("birchbark", *path.relative_to(SOURCE).with_suffix("").parts))
    names = LOCALS | vars(importlib.import_module(module.removesuffix(".__init__")))
    for function in names.values():
        if inner := getattr(function, "__wrapped__", None):
            code = inner.__code__
            lines = {line for _, _, line in code.co_lines()}
            if call.lineno in lines and code.co_filename == str(path) and not code.co_argcount:
                return function()
    flags = [k for k in call.keywords if k.arg == "flags"]
    is_compile = call.func.attr == "compile"  # type: ignore[attr-defined]
    arguments = call.args if is_compile else call.args[:1]
    make = ast.Call(
        ast.Attribute(call.func.value, "compile", ast.Load()),  # type: ignore[attr-defined]
        arguments,
        flags,
    )
    expression = ast.fix_missing_locations(ast.Expression(ast.copy_location(make, call)))
    return eval(compile(expression, str(path), "eval"), names)


def uses(path: Path, name: str | None) -> set[str]:
    """Return the methods by which a pattern is used in the files of its folder.

    A pattern without a name of its own may be called `regex`.
    """
    call = re.compile(rf"\b{name or 'regex'}\.({'|'.join(METHODS)})\(")
    files = path.parent.glob("*.py") if name else [path]
    return {found for file in files for found in call.findall(file.read_text())}


def check_growth(pattern: Any, method: str) -> None:
    """Raise AssertionError if a text takes more than proportionally longer when it is longer."""
    run = runner(pattern, method)
    for begin, unit, end in hostile(pattern):
        few = seconds(run, begin + unit * FEW + end, 2)
        assert few < NOTABLE_SECONDS, f"{method} of {pattern.pattern!r} is slow for {FEW} {unit!r}"
        short, long = (begin + unit * n + end for n in (SIZE, LARGER))
        ratio = growth(run, short, long)
        assert ratio < FASTER_THAN_SQUARE, (
            f"{method} of {pattern.pattern!r} takes {ratio:.0f} times as long for {unit!r} "
            f"{LARGER:,} times after {begin!r} as for {SIZE:,} times"
        )


def runner(pattern: Any, method: str) -> Callable[[str], object]:
    encode = (lambda text: text.encode()) if isinstance(pattern.pattern, bytes) else str
    if method in ("match", "fullmatch", "search"):
        return lambda text: getattr(pattern, method)(encode(text))
    return lambda text: deque(pattern.finditer(encode(text)), 0)


def hostile(pattern: Any) -> Iterator[tuple[str, str, str]]:
    """Yield a beginning, what is repeated after it, and an end."""
    source = pattern.pattern
    source = source.decode("latin-1") if isinstance(source, bytes) else source
    try:
        tree = parser.parse(source, pattern.flags & ~re.UNICODE)
    except re.error:  # of the library regex
        tree = parser.parse("a")
    sample, characters = matching(tree), [*dict.fromkeys([*" a", *alphabet(tree), *"0\n-"])]
    begins = dict.fromkeys(sample[:n] for n in (0, 1, len(sample) - 1, len(sample)))
    units = [*characters[:8], *map("".join, product(characters[:5], repeat=2))]
    yield from product(begins, dict.fromkeys(units), ("", "\0"))


def alphabet(tree: Any) -> Iterator[str]:
    """Yield characters that an expression names or that belong to its classes."""
    for kind, value in tree:
        if kind in (kinds.LITERAL, kinds.NOT_LITERAL):
            yield chr(value)
        elif kind is kinds.CATEGORY:
            yield {kinds.CATEGORY_SPACE: " ", kinds.CATEGORY_DIGIT: "0"}.get(value, "a")
        elif kind is kinds.RANGE:
            yield chr(value[0])
        elif kind is kinds.IN:
            yield from alphabet(value)
        else:
            yield from chain.from_iterable(map(alphabet, subtrees(value)))


def subtrees(value: Any) -> Iterator[Any]:
    if isinstance(value, parser.SubPattern):
        yield value
    elif isinstance(value, (tuple, list)):
        yield from chain.from_iterable(map(subtrees, value))


def matching(tree: Any) -> str:
    """Return a text that the expression matches, or nearly: each repeated part is there once."""
    text = ""
    for kind, value in tree:
        if kind is kinds.LITERAL:
            text += chr(value)
        elif kind is kinds.IN:
            text += next(alphabet([(k, v) for k, v in value if k is not kinds.NEGATE]), "a")
        elif kind in (kinds.MAX_REPEAT, kinds.MIN_REPEAT, kinds.POSSESSIVE_REPEAT):
            text += matching(value[2]) * max(1, min(value[0], 500))
        elif kind is kinds.BRANCH:
            text += matching(value[1][0])
        elif kind in (kinds.ANY, kinds.NOT_LITERAL):
            text += "x"
        elif kind in (kinds.SUBPATTERN, kinds.ATOMIC_GROUP):
            text += "".join(map(matching, subtrees(value)))
    return text
