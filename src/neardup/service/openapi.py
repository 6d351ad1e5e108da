"""The OpenAPI document of the service, made from its operations and their messages."""

from __future__ import annotations

import inspect
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from neardup.answers import Answer, Committed, Document, Hit
from neardup.files import JsonObject
from neardup.service.messages import Id, Name, ProblemDetails
from neardup.service.problems import phrase
from neardup.settings.service import ServiceSettings

if TYPE_CHECKING:
    from neardup.service.operations import Operation

_REF = "#/components/schemas/{name}"
_ARGUMENTS = {"id": msgspec.json.schema(Id), "name": msgspec.json.schema(Name)}
"""Schemas of the names in a path."""
_FILE = {"type": "string"}
"""The schema of a name in the path of a file, which is open to everybody."""
# Statuses that any operation of a role may answer, before it reads a body.
_COMMON_ERRORS: dict[str, set[int]] = {"open": set(), "read": {401, 503}, "write": {401, 403, 503}}
_BODY_ERRORS = {400, 413, 415, 422, 429}


def openapi_document(
    operations: Sequence[Operation], version: str, settings: ServiceSettings
) -> JsonObject:
    """Return the document, OpenAPI 3.1.

    operations : all operations of the service. version : the version of the package. settings : the
    limits of the service.
    """
    bodies = [kind for operation in operations for kind in (operation.request, operation.response)]
    # Without media types, and each once.
    kinds = dict.fromkeys([ProblemDetails, *(kind for kind in bodies if isinstance(kind, type))])
    # All kinds at once: messages that contain each other then share their components.
    schemas, components = msgspec.json.schema_components(list(kinds), ref_template=_REF)
    # Limits of this service: a client that is generated from the document knows them.
    components["QueryRequest"]["properties"]["limit"]["maximum"] = settings.max_hits
    for message, name in (
        ("QueryRequest", "texts"),
        ("AddRequest", "documents"),
        ("StageRequest", "documents"),
    ):
        components[message]["properties"][name]["maxItems"] = settings.max_documents
    for kind in (Answer, Committed, Document, Hit):
        _describe_fields(components[kind.__name__], kind.__doc__ or "")
    references = dict(zip(kinds, schemas, strict=True))
    paths: dict[str, JsonObject] = {}
    for operation in operations:
        methods = paths.setdefault(operation.path, {})
        methods[operation.method.lower()] = _describe_operation(operation, references)
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
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _describe_fields(component: JsonObject, docstring: str) -> None:
    """Describe the fields of a record as its docstring does, `name, name : meaning.`"""
    # Records of the library describe their fields in docstrings, not in the way of msgspec.
    component["description"], _, fields = inspect.cleandoc(docstring).partition("\n\n")
    field = r"([\w, ]+) : (.+?\.)(?= [\w, ]+ : |$)"
    for names, meaning in re.findall(field, " ".join(fields.split())):
        for name in names.strip().split(", "):
            component["properties"][name]["description"] = meaning[0].upper() + meaning[1:]
    # Times of the library are UTC without `tz` in their types, which msgspec needs for the format.
    for name in {"first_seen", "last_seen"} & component["properties"].keys():
        component["properties"][name]["anyOf"][0]["format"] = "date-time"


def _describe_operation(operation: Operation, references: dict[type, Any]) -> JsonObject:
    """Return the object of an operation."""
    names = re.findall(r"{(\w+)}", operation.path)
    is_open = operation.role == "open"
    parameters = [
        {
            "name": name,
            "in": "path",
            "required": True,
            "schema": _FILE if is_open else _ARGUMENTS[name],
        }
        for name in names
    ]
    record: JsonObject = {
        "operationId": operation.name,
        "summary": operation.summary,
        "parameters": parameters,
    }
    if not is_open:
        # Either a token or none: whether it is needed depends on the start of the service.
        record["security"] = [{"token": []}, {}]
        record["x-role"] = operation.role
    if operation.request is not None:
        content = {"application/json": {"schema": references[operation.request]}}
        record["requestBody"] = {"required": True, "content": content}
    record["responses"] = _responses(operation, references, takes_names=bool(names))
    return record


def _responses(
    operation: Operation, references: dict[type, Any], *, takes_names: bool
) -> JsonObject:
    """Return the responses of an operation: its answer, and the problems that it may report."""
    if isinstance(operation.response, type):
        answer = {"application/json": {"schema": references[operation.response]}}
    else:
        schema = {"type": "object"} if "json" in operation.response else {}
        answer = {operation.response: {"schema": schema}}
    responses = {str(operation.status): {"description": "Done.", "content": answer}}
    problem = {"application/problem+json": {"schema": references[ProblemDetails]}}
    statuses = _COMMON_ERRORS[operation.role] | ({404} if takes_names else set())
    if operation.request is not None:
        statuses = statuses | _BODY_ERRORS
    for status in sorted(statuses):
        responses[str(status)] = {"description": phrase(status) + ".", "content": problem}
    responses["default"] = {"description": "A problem.", "content": problem}
    return responses
