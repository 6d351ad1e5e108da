"""Write docs/http.md from the OpenAPI document of the service.

`python tools/make_http_docs.py` writes it; with `--check` it fails if the page is not what the code
says now.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from neardup.service.operations import OPERATIONS, document
from neardup.settings.service import ServiceSettings
from neardup.version import __version__

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "http.md"
TEXT = ROOT / "tools" / "http_docs.md"


def render() -> str:
    """Return the page: the written part, then what the code says."""
    api = document(OPERATIONS, __version__, ServiceSettings())
    operations = [
        _operation(method.upper(), path, record, api["components"]["schemas"])
        for path, methods in api["paths"].items()
        for method, record in methods.items()
    ]
    messages = [
        _message(name, schema) for name, schema in sorted(api["components"]["schemas"].items())
    ]
    return "\n".join(
        [
            TEXT.read_text(encoding="utf-8"),
            "## Operations\n",
            *operations,
            "## Messages\n",
            *messages,
        ]
    )


def _operation(method: str, path: str, record: dict[str, Any], schemas: dict[str, Any]) -> str:
    role = record.get("x-role", "none: open to everybody")
    [status, *errors] = [code for code in record["responses"] if code != "default"]
    lines = [f"### {method} {path}\n", f"{record['summary']}\n", f"- Role: {role}."]
    if "requestBody" in record:
        lines.append(
            f"- Body: {_link(record['requestBody']['content']['application/json']['schema'])}."
        )
    media_type, content = next(iter(record["responses"][status]["content"].items()))
    shown = _link(content["schema"]) if "$ref" in content["schema"] else f"`{media_type}`"
    lines.append(f"- Answer: {status}, {shown}.")
    if errors:
        lines.append(f"- Problems: {', '.join(errors)}.")
    return "\n".join(lines) + "\n"


def _link(schema: dict[str, Any]) -> str:
    name = schema["$ref"].rpartition("/")[2]
    return f"[{name}](#{name.lower()})"


def _message(name: str, schema: dict[str, Any]) -> str:
    lines = [
        f"### {name}\n",
        f"{' '.join(schema.get('description', '').split())}\n",
        "| field | type | meaning |",
        "|---|---|---|",
    ]
    required = set(schema.get("required", ()))
    for field, kind in schema["properties"].items():
        meaning = kind.get("description", "")
        if field not in required and "default" in kind:
            meaning = f"{meaning} Default: `{json.dumps(kind['default'])}`.".strip()
        lines.append(f"| `{field}` | {_type(kind)} | {meaning} |")
    return "\n".join(lines) + "\n"


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
    return "time (RFC 3339)" if schema.get("format") == "date-time" else str(kind)


def main() -> None:
    """Write the page, or compare it."""
    page = render()
    if "--check" not in sys.argv:
        PAGE.write_text(page, encoding="utf-8")
    elif not PAGE.exists() or PAGE.read_text(encoding="utf-8") != page:
        sys.exit(f"{PAGE} is not what the code says now. Run tools/make_http_docs.py.")


if __name__ == "__main__":
    main()
