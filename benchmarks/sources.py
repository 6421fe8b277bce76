"""Where does the English prose for synthetic documents come from?

By default, it comes from the docstrings, readmes, manuals and licences of the running Python and of
installed packages. They are real English, with about one topic per file, and exist on every machine
that runs the benchmark.
"""

from __future__ import annotations

import json
import re
import sysconfig
from collections.abc import Iterable, Iterator
from pathlib import Path

PLAIN = {".txt", ".rst", ".md"}
FEWEST_WORDS = 12
_DOCSTRING = re.compile(r'"""(.*?)"""', re.S)
_WORD = re.compile(r"[(\"“]?[A-Za-z]+(?:['’-][A-Za-z]+)*[)\"”]?[.,;:!?]?[)\"”]?|[0-9][0-9.,]*")


def paragraphs(source: Path | None) -> Iterator[list[str]]:
    """Yield the words of each distinct paragraph of prose, in the order of the files.

    source: a text, Markdown, JSONL (`text`) or Python file, or a folder of them; None for this
    Python.
    """
    seen: set[int] = set()
    for text in _texts(_files(source)):
        for paragraph in re.split(r"\n\s*\n", text):
            words = [word for word in paragraph.split() if _WORD.fullmatch(word)]
            total = len(paragraph.split())
            if len(words) >= FEWEST_WORDS and len(words) >= 0.85 * total:
                digest = hash(tuple(words))
                if digest not in seen:
                    seen.add(digest)
                    yield words


def _files(source: Path | None) -> list[Path]:
    if source is None:
        roots = [Path(sysconfig.get_path(name)) for name in ("stdlib", "purelib")]
        return [path for root in roots for path in _below(root, root == roots[0])]
    return _below(source, False) if source.is_dir() else [source]


def _below(root: Path, library: bool) -> list[Path]:
    """Return the text files below `root`. library: whether to leave out installed packages."""
    suffixes = PLAIN | {".py", ".jsonl"}
    paths = (p for p in root.rglob("*") if p.suffix in suffixes or p.name == "METADATA")
    wanted = (p for p in paths if not (library and "site-packages" in p.parts))
    return sorted(p for p in wanted if p.is_file())


def _texts(paths: Iterable[Path]) -> Iterator[str]:
    for path in paths:
        if path.suffix == ".jsonl":
            with path.open(encoding="utf-8") as lines:
                for line in lines:
                    yield str(json.loads(line).get("text", ""))
            continue
        text = path.read_text("utf-8", errors="ignore")
        yield "\n\n".join(_DOCSTRING.findall(text)) if path.suffix == ".py" else text
