"""Which English prose lies on this machine, and which of it reads like text?

Without a name from the user: the docstrings, read-mes, manuals and licences of the running Python
and of what is installed beside it. That is real English with topics (a file is about something),
and every machine that runs the benchmark has some.
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
    """The words of each paragraph of prose, in the order of the files; each paragraph once.

    source: a text, Markdown, JSONL (`text`) or Python file, or a folder of such. None: this Python.
    """
    seen: set[int] = set()
    for text in _texts(_files(source)):
        for paragraph in re.split(r"\n\s*\n", text):
            words = [word for word in paragraph.split() if _WORD.fullmatch(word)]
            total = len(paragraph.split())
            if len(words) >= FEWEST_WORDS and len(words) >= 0.85 * total:
                mark = hash(tuple(words))
                if mark not in seen:
                    seen.add(mark)
                    yield words


def _files(source: Path | None) -> list[Path]:
    if source is None:
        roots = [Path(sysconfig.get_path(name)) for name in ("stdlib", "purelib")]
        return [path for root in roots for path in _below(root, root == roots[0])]
    return _below(source, False) if source.is_dir() else [source]


def _below(root: Path, library: bool) -> list[Path]:
    """Files with text in them below `root`. library: without the packages installed there."""
    wanted = PLAIN | {".py", ".jsonl"}
    found = (p for p in root.rglob("*") if p.suffix in wanted or p.name == "METADATA")
    kept = (p for p in found if not (library and "site-packages" in p.parts))
    return sorted(p for p in kept if p.is_file())


def _texts(paths: Iterable[Path]) -> Iterator[str]:
    for path in paths:
        if path.suffix == ".jsonl":
            with path.open(encoding="utf-8") as lines:
                for line in lines:
                    yield str(json.loads(line).get("text", ""))
            continue
        text = path.read_text("utf-8", errors="ignore")
        yield "\n\n".join(_DOCSTRING.findall(text)) if path.suffix == ".py" else text
