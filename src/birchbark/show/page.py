"""How is a page of HTML filled in that needs nothing but itself?"""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from birchbark.errors import MissingPackageError
from birchbark.show.figures import difference, interval, mark, written
from birchbark.show.table import Style


def template(package: str, name: str) -> Any:
    """The page called `name` beside the modules of `package`, to be filled in.

    Raises MissingPackageError without Jinja2.
    """
    try:
        from jinja2 import Environment, StrictUndefined
    except ImportError:
        raise MissingPackageError(
            "reports need Jinja2", remedy="pip install 'birchbark[study]'"
        ) from None
    pages = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    pages.globals.update(
        written=written,
        mark=mark,
        interval=interval,
        difference=difference,
        unbroken=_unbroken,
        measure_style=Style.MEASURE,
    )
    return pages.from_string(files(package).joinpath(name).read_text("utf-8"))


def _unbroken(text: str) -> str:
    """A difference whose lines may break before its interval and after it, nowhere else."""
    return text.replace(" ", "\u00a0").replace("\u00a0[", " [").replace("],\u00a0", "], ")
