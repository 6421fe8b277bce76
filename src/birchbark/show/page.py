"""How is a self-contained HTML page rendered from a template?"""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from birchbark.errors import MissingPackageError
from birchbark.show.differences import difference_table
from birchbark.show.format_numbers import format_interval, format_value, significance_mark
from birchbark.show.table import Style


def load_template(package: str, name: str) -> Any:
    """Load a Jinja2 template. Raises MissingPackageError without Jinja2.

    name: the file name of the template, stored beside the modules of `package`.
    """
    try:
        from jinja2 import Environment, StrictUndefined
    except ImportError:
        raise MissingPackageError(
            "reports need Jinja2", remedy="pip install 'birchbark[study]'"
        ) from None
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.globals.update(
        format_value=format_value,
        significance_mark=significance_mark,
        format_interval=format_interval,
        difference_table=difference_table,
        measure_style=Style.MEASURE,
    )
    return environment.from_string(files(package).joinpath(name).read_text("utf-8"))
