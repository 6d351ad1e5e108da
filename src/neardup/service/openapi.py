"""The OpenAPI document: made from the operations and their messages."""

from __future__ import annotations

import inspect
import re
from collections.abc import Sequence
from typing import Any

import msgspec

from neardup.answers import Answer, Committed, Document, Hit
from neardup.service.messages import Id, Name, ProblemDetails
from neardup.service.operations import Operation
from neardup.service.problems import phrase
from neardup.settings.service import ServiceSettings

_REF = "#/components/schemas/{name}"
_ARGUMENTS = {"id": msgspec.json.schema(Id), "name": msgspec.json.schema(Name), False: {"type": "string"}}  # a file
_COMMON_ERRORS: dict[str, set[int]] = {"open": set(), "read": {401, 503}, "write": {401, 403, 503}}
_BODY_ERRORS = {400, 413, 415, 422, 429}


def document(operations: Sequence[Operation], version: str, settings: ServiceSettings) -> dict[str, Any]:
    """Return the document, OpenAPI 3.1.

    operations : those of the service. version : of the package. settings : the limits of the service.
    """
    kinds: list[type] = [ProblemDetails]
    for operation in operations:
        kinds += [kind for kind in (operation.request, operation.response) if isinstance(kind, type)]
    kinds = list(dict.fromkeys(kinds))
    schemas, components = msgspec.json.schema_components(kinds, ref_template=_REF)
    for message, name, limit, value in (
        ("QueryRequest", "limit", "maximum", settings.max_hits),
        ("QueryRequest", "texts", "maxItems", settings.max_documents),
        ("AddRequest", "documents", "maxItems", settings.max_documents),
        ("StageRequest", "documents", "maxItems", settings.max_documents),
    ):
        components[message]["properties"][name][limit] = value
    for kind in (Answer, Committed, Document, Hit):
        _describe(components[kind.__name__], kind.__doc__ or "")
    references = dict(zip(kinds, schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _operation(operation, references)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "neardup",
            "version": version,
            "summary": "Have we seen this? Near-duplicates of texts and web pages in an index.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "paths": paths,
        "components": {"schemas": components, "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
    }


def _describe(component: dict[str, Any], docstring: str) -> None:
    """Describe the fields of a record as its docstring does, `name, name : meaning.`; times have their format."""
    component["description"], _, fields = inspect.cleandoc(docstring).partition("\n\n")
    for names, meaning in re.findall(r"([\w, ]+) : (.+?\.)(?= [\w, ]+ : |$)", " ".join(fields.split())):
        for name in names.strip().split(", "):
            component["properties"][name]["description"] = meaning[0].upper() + meaning[1:]
    for name in {"first_seen", "last_seen"} & component["properties"].keys():
        component["properties"][name]["anyOf"][0]["format"] = "date-time"


def _operation(operation: Operation, references: dict[type, Any]) -> dict[str, Any]:
    """Return the object of an operation."""
    names = re.findall(r"{(\w+)}", operation.path)
    record: dict[str, Any] = {
        "operationId": operation.name,
        "summary": operation.summary,
        "parameters": [
            {"name": name, "in": "path", "required": True, "schema": _ARGUMENTS[operation.role != "open" and name]}
            for name in names
        ],
    }
    if operation.role != "open":
        record["security"] = [{"token": []}, {}]
        record["x-role"] = operation.role
    statuses = _COMMON_ERRORS[operation.role] | ({404} if names else set())
    if operation.request is not None:
        content = {"application/json": {"schema": references[operation.request]}}
        record["requestBody"] = {"required": True, "content": content}
        statuses |= _BODY_ERRORS
    if isinstance(operation.response, type):
        answer: dict[str, Any] = {"application/json": {"schema": references[operation.response]}}
    else:
        answer = {operation.response: {"schema": {"type": "object"} if "json" in operation.response else {}}}
    responses: dict[str, Any] = {str(operation.status): {"description": "Done.", "content": answer}}
    problem = {"application/problem+json": {"schema": references[ProblemDetails]}}
    for status in sorted(statuses):
        responses[str(status)] = {"description": phrase(status) + ".", "content": problem}
    responses["default"] = {"description": "A problem.", "content": problem}
    record["responses"] = responses
    return record
