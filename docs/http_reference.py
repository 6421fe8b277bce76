"""How is the reference of the HTTP requests written? From the service's own OpenAPI description."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from birchbark import Searcher, build_index
from birchbark.serve.app import fastapi_app
from birchbark.serve.service import Service

Schema = Mapping[str, Any]
METHODS = ("get", "post", "delete")
LIMITS = {"maxLength": " characters", "maxItems": "", "maximum": ""}  # and their units


def openapi() -> Schema:
    """Return the description of a service without models."""
    with tempfile.TemporaryDirectory() as folder:
        index = Path(folder) / "index"
        build_index([{"id": "1", "text": "birch"}], index)
        described: Schema = fastapi_app(Service(Searcher(index, []))).openapi()
        return described


def markdown(spec: Schema) -> str:
    """Return the reference: a section for each request, then one for each object of the answers."""
    return "\n".join([*_requests(spec), *_objects(spec)])


def _requests(spec: Schema) -> Iterator[str]:
    for path, methods in spec["paths"].items():
        for method in METHODS:
            if method in methods:
                yield from _request(spec, f"{method.upper()} {path}", methods[method])


def _request(spec: Schema, name: str, operation: Schema) -> Iterator[str]:
    yield f"## {name}\n"
    summary = operation.get("description") or f"{operation['summary']}."
    yield f"{summary}\n"
    parameters = operation.get("parameters", [])
    if parameters:
        yield from _table(
            (p["name"], p["schema"], p.get("description", ""), p.get("required", False))
            for p in parameters
        )
    for content in operation.get("requestBody", {}).get("content", {}).values():
        yield from _fields(_resolved(spec, content["schema"]))
    answer = operation["responses"].get("200", {}).get("content", {})
    for kind, content in answer.items():
        schema = content.get("schema", {})
        if "$ref" in schema:
            yield f"Returns {_type(schema)}.\n"
        elif kind != "application/json":
            yield f"Returns `{kind}`.\n"


def _objects(spec: Schema) -> Iterator[str]:
    """Yield a section for each object in answers; those of requests are shown with them."""
    for name, schema in sorted(spec["components"]["schemas"].items()):
        if "properties" in schema and not name.endswith("Request"):
            yield f"## {name}\n"
            if schema.get("description"):
                yield f"{schema['description']}\n"
            yield from _fields(schema)


def _fields(schema: Schema) -> Iterator[str]:
    required = schema.get("required", [])
    yield from _table(
        (name, field, field.get("description", ""), name in required)
        for name, field in schema.get("properties", {}).items()
    )


def _table(rows: Iterator[tuple[str, Schema, str, bool]]) -> Iterator[str]:
    yield "| field | type | default | meaning |\n| --- | --- | --- | --- |"
    for name, schema, description, required in rows:
        default = "required" if required else _default(schema)
        text = description.replace("|", "\\|").replace("\n", " ").replace("*", "\\*")
        yield f"| `{name}` | {_type(schema)} | {default} | {text} |"
    yield ""


def _default(schema: Schema) -> str:
    default = schema.get("default")
    if default in (None, "", [], {}):
        return ""
    return f"`{default if isinstance(default, str) else json.dumps(default)}`"


def _type(schema: Schema) -> str:
    """Return a short name of a type and its upper limit, with a link if it has a section."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in schema:
        others = [_type(choice) for choice in schema["anyOf"] if choice.get("type") != "null"]
        return " or ".join(others)
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    if schema.get("type") == "array":
        return f"list{_most(schema)} of {_type(schema.get('items', {}))}"
    return f"{schema.get('type', 'any')}{_most(schema)}"


def _most(schema: Schema) -> str:
    """Return the upper limit of a type; none for lists that always have as many values."""
    limits = [key for key in LIMITS if key in schema and schema[key] != schema.get("minItems")]
    return "".join(f" (at most {schema[key]:,g}{LIMITS[key]})" for key in limits)


def _resolved(spec: Schema, schema: Schema) -> Schema:
    if "$ref" in schema:
        resolved: Schema = spec["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
        return resolved
    return schema
