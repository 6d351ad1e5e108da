"""Write docs/http.md from the OpenAPI document of the service.

`python tools/make_http_docs.py` writes it; with `--check` it fails if the page is not what the code
says now. A message of one field has no section: the table of operations shows it. The records of an
index are described in docs/api.md; here are the types of their fields.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from neardup.service.openapi import openapi_document
from neardup.service.operations import OPERATIONS
from neardup.settings.service import ServiceSettings
from neardup.version import __version__

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "http.md"
TEXT = ROOT / "tools" / "http_docs.md"
OF_INDEX = ("Answer", "Document", "Hit")
MESSAGES = """
## Messages

Times are as in RFC 3339. [The API](api.md#answer) describes the fields of Answer, Document and Hit.
"""


def render() -> str:
    """Return the page: the written part, then what the code says."""
    api = openapi_document(OPERATIONS, __version__, ServiceSettings())
    schemas = api["components"]["schemas"]
    operations = [
        _operation(method.upper(), path, record, schemas)
        for path, methods in api["paths"].items()
        for method, record in methods.items()
        if not path.startswith("/static/")  # files of the page
    ]
    messages = [
        _message(name, schema) for name, schema in sorted(schemas.items()) if not _is_small(schema)
    ]
    text = TEXT.read_text(encoding="utf-8")
    return "\n".join([text, *operations, MESSAGES, *messages])


def _operation(
    method: str, path: str, record: dict[str, Any], schemas: dict[str, dict[str, Any]]
) -> str:
    """Return the item of an operation."""
    body = ""
    if "requestBody" in record:
        schema = record["requestBody"]["content"]["application/json"]["schema"]
        body = f"{_shown(schema, schemas)} → "
    status = next(iter(record["responses"]))
    media_type, content = next(iter(record["responses"][status]["content"].items()))
    schema = content["schema"]
    answer = _shown(schema, schemas) if "$ref" in schema else f"`{media_type}`"
    if status != "200":
        answer = f"{status}, {answer}"
    role = f" ({record['x-role']})" if "x-role" in record else ""
    return f"- `{method} {path}`{role}: {body}{answer}. {record['summary']}"


def _is_small(schema: dict[str, Any]) -> bool:
    """Return whether a message has one field, which needs no section."""
    return len(schema["properties"]) == 1


def _shown(schema: dict[str, Any], schemas: dict[str, dict[str, Any]]) -> str:
    """Return the link to a message, or its only field and the type of it."""
    message = schemas[schema["$ref"].rpartition("/")[2]]
    if not _is_small(message):
        return _link(schema)
    [(field, kind)] = message["properties"].items()
    return f"`{field}`: {_type(kind)}"


def _link(schema: dict[str, Any]) -> str:
    name = schema["$ref"].rpartition("/")[2]
    return f"[{name}](#{name.lower()})"


def _message(name: str, schema: dict[str, Any]) -> str:
    """Return the section of a message; fields of one type and meaning share a line."""
    described = " ".join(schema.get("description", "").split())
    fields: dict[str, list[str]] = {}
    required = set(schema.get("required", ()))
    for field, kind in schema["properties"].items():
        default = kind.get("default")
        meaning = "" if name in OF_INDEX else kind.get("description", "")
        if field not in required and default is not None:
            meaning = f"{meaning} Default: `{json.dumps(default)}`.".strip()
        text = f"{_type(kind)}. {meaning}".strip()
        fields.setdefault(text, []).append(f"`{field}`")
    lines = [f"- {', '.join(names)}: {text}" for text, names in fields.items()]
    return "\n".join([f"### {name}\n", f"{described}\n", *lines]) + "\n"


def _type(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        return _link(schema)
    if "anyOf" in schema:
        return " or ".join(_type(kind) for kind in schema["anyOf"])
    if "enum" in schema:
        return " or ".join(f"`{json.dumps(value)}`" for value in schema["enum"])
    kind = schema.get("type", "any JSON value")
    if kind == "array":
        return f"array of {_type(schema['items'])}"
    if isinstance(kind, list):
        return " or ".join(kind)
    return "time" if schema.get("format") == "date-time" else str(kind)


def main() -> None:
    """Write the page, or compare it."""
    page = render()
    if "--check" not in sys.argv:
        PAGE.write_text(page, encoding="utf-8")
    elif not PAGE.exists() or PAGE.read_text(encoding="utf-8") != page:
        sys.exit(f"{PAGE} is not what the code says now. Run tools/make_http_docs.py.")


if __name__ == "__main__":
    main()
