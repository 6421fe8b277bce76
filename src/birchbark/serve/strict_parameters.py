"""Which parameters may the URL of a request have? Those that /openapi.json lists for its route.

A parameter that a route does not know would have no effect, and of a repeated one only the last
would count; both are refused. The check runs in the event loop, since the description that it reads
is made at its first use.
"""

from __future__ import annotations

from collections import Counter

from fastapi import Request

from birchbark.errors import InputError


async def check_parameters(request: Request) -> None:
    """Raise InputError for unknown parameters, and for repeated ones that are not lists."""
    route = request.scope["route"]
    operations = request.app.openapi()["paths"].get(route.path_format)
    if operations is None:  # the page, whose parameters its scripts read
        return
    described = operations.get(request.method.lower(), {}).get("parameters", ())
    repeatable = {p["name"]: "array" in str(p["schema"]) for p in described if p["in"] == "query"}
    for name, count in Counter(name for name, _ in request.query_params.multi_items()).items():
        if name not in repeatable:
            raise InputError(
                f"unknown parameter {name!r} in the URL",
                wanted=" or ".join(repeatable) or "no parameters",
            )
        if count > 1 and not repeatable[name]:
            raise InputError(f"the parameter {name!r} is given {count} times", wanted="once")
