"""The HTTP service: a real process answers what the library answers, and refuses what it should."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import quote

import pytest

import neardup
from neardup.client import Client
from neardup.service.log import Log
from neardup.service.openapi import openapi_document
from neardup.service.operations import OPERATIONS
from neardup.settings.service import ServiceSettings
from reference.service import METHOD, RunningService
from reference.signed import fingerprint_of

pytest.importorskip("uvicorn", reason="the extra serve is not installed")
FOX = "the quick brown fox jumps over the lazy dog while the cat looks on from the garden wall"
FOX_AGAIN = FOX.replace("lazy", "sleeping")
SECURITY_HEADERS = {
    "content-security-policy",
    "cross-origin-opener-policy",
    "cross-origin-resource-policy",
    "referrer-policy",
    "x-content-type-options",
}


@pytest.fixture
def client(service: RunningService) -> Iterator[Client]:
    with Client(service.url) as opened:
        yield opened


def add(service: RunningService, *documents: dict, mode: str = "add-if-new") -> list[dict]:
    response = service.request(
        "POST", "/v1/documents", {"documents": list(documents), "mode": mode}
    )
    assert response.status == 200, response
    return response.json["answers"]


# Answers.


def test_a_near_duplicate_is_answered_with_the_kept_document_its_measures_and_its_payload(service):
    [first] = add(
        service, {"id": "near/1", "text": FOX, "payload": {"url": "https://example.org/1"}}
    )
    [second] = add(service, {"id": "near/2", "text": FOX_AGAIN})
    assert (first["kept"], first["repeated"], first["kept_id"], first["similarity"]) == (
        True,
        False,
        None,
        None,
    )
    similarity = neardup.compare(FOX_AGAIN, FOX, method=METHOD).similarity
    assert (second["kept"], second["kept_id"], second["similarity"]) == (
        False,
        "near/1",
        similarity,
    )
    assert second["payload"] == {"url": "https://example.org/1"}
    assert second["first_seen"] == first["first_seen"]
    [[hit]] = service.request("POST", "/v1/query", {"texts": [FOX_AGAIN]}).json["results"]
    assert (hit["id"], hit["similarity"], hit["payload"]) == (
        "near/1",
        similarity,
        {"url": "https://example.org/1"},
    )


def test_a_document_that_is_sent_again_gets_the_same_answer_and_changes_nothing(service):
    message = {
        "id": "again",
        "text": "a text that is sent twice because the answer to the first was lost",
    }
    [first] = add(service, message)
    [second] = add(service, message)
    assert (first["repeated"], second["repeated"]) == (False, True)
    assert {**second, "repeated": False, "last_seen": None} == {**first, "last_seen": None}


def test_the_mode_add_keeps_similar_documents(service):
    add(
        service,
        {"id": "mode/1", "text": "seven ships sailed south on a stormy sunday in september"},
    )
    [answer] = add(
        service,
        {"id": "mode/2", "text": "seven ships sailed south on a stormy sunday in september"},
        mode="add",
    )
    assert answer["kept"]


@pytest.mark.parametrize(
    "payload", [{"a": [1, None, "x"]}, "plain", '{"looks": "like JSON"}', "1", 1.5, True, [], ""]
)
def test_a_payload_comes_back_as_it_was_sent(service, payload):
    id = f"payload {payload!r}"
    add(service, {"id": id, "text": f"the text of a payload {id}", "payload": payload}, mode="add")
    assert service.request("GET", f"/v1/documents/{quote(id, safe='')}").json["payload"] == payload


@pytest.mark.parametrize(
    "id",
    [
        "a/b/c",
        "/",
        "//",
        "https://example.org/?q=1&r=%20#top",
        "日本語 😀",
        " ",
        "..",
        "a%2Fb",
        "a\nb\x00c",
        '"<&>',
    ],
)
def test_an_id_may_have_any_character(service, id):
    add(
        service,
        {"id": id, "text": f"a text with a special id of {len(id)} characters {id}"},
        mode="add",
    )
    path = f"/v1/documents/{quote(id, safe='')}"
    assert service.request("GET", path).json["id"] == id
    assert service.request("DELETE", path).json == {"removed": 1}
    assert service.request("GET", path).status == 404
    assert service.request("DELETE", path).status == 404


def test_the_slashes_of_an_id_need_not_be_encoded(service):
    add(service, {"id": "2026/11/a", "text": "an id like a path of folders and files"}, mode="add")
    assert service.request("GET", "/v1/documents/2026/11/a").json["id"] == "2026/11/a"


def test_a_thousand_documents_in_a_request_are_decided_in_their_order(service):
    texts = [
        f"report {i // 2} of the weather station on hill {i // 2} in the year {1900 + i // 2}"
        for i in range(1000)
    ]
    answers = add(service, *({"id": f"batch/{i}", "text": text} for i, text in enumerate(texts)))
    expected = neardup.Index.create("memory:", method=METHOD).add_many_if_new(texts)
    assert [(answer["kept"], answer["similarity"]) for answer in answers] == list(
        zip(expected["kept"].to_pylist(), expected["similarity"].to_pylist(), strict=True)
    )


def test_a_request_that_replaces_a_document_and_repeats_others_is_decided_as_one_by_one(service):
    old = " ".join(f"orchard{number}" for number in range(40))
    copy = f"{old} tail"
    other = " ".join(f"harbour{number}" for number in range(40))
    add(service, {"id": "replaced/a", "text": old})
    texts = {"replaced/x": copy, "replaced/a": other, "replaced/y": copy, "replaced/z": copy}
    answers = add(service, *({"id": id, "text": text} for id, text in texts.items()))
    assert [(answer["kept"], answer["kept_id"]) for answer in answers] == [
        (False, "replaced/a"),
        (True, None),
        (True, None),
        (False, "replaced/y"),
    ]


def test_an_import_is_decided_when_it_is_committed(client):
    client.open_import("monday")
    assert (
        client.stage(
            "monday", [{"id": "run/1", "text": "the staged text of a run on monday morning"}]
        )
        == 1
    )
    assert client.imports() == {"monday": 1}
    assert client.get("run/1") is None
    committed = client.commit_import("monday")
    assert (committed.kept, committed.removed, committed.repeated) == (1, 0, 0)
    stored = client.get("run/1")
    assert stored is not None
    assert (stored.import_name, stored.kept) == ("monday", True)
    assert client.remove_import("monday") == 1
    assert client.get("run/1") is None


def test_a_cancelled_import_leaves_nothing(client):
    client.open_import("tuesday")
    client.stage("tuesday", [{"id": "run/2", "text": "the staged text of a run that is cancelled"}])
    client.cancel_import("tuesday")
    assert client.imports() == {}
    assert client.get("run/2") is None


def test_two_texts_are_compared_side_by_side(service):
    found = service.request("POST", "/v1/compare", {"left": FOX, "right": FOX_AGAIN}).json
    expected = neardup.compare(FOX, FOX_AGAIN, method=METHOD)
    assert (found["duplicate"], found["similarity"]) == (expected.duplicate, expected.similarity)
    assert "".join(stretch["left"] for stretch in found["stretches"]) == FOX
    assert "".join(stretch["right"] for stretch in found["stretches"]) == FOX_AGAIN
    assert [stretch["shared"] for stretch in found["stretches"]] == [True, False, True]
    assert found["left_fingerprint"] == f"{fingerprint_of(FOX):016x}"


@pytest.mark.slow
def test_the_answers_of_concurrent_requests_are_those_of_the_sieve_in_the_order_of_decision(
    tmp_path,
):
    path = tmp_path / "concurrent.index"
    neardup.Index.create(path, method=METHOD).close()
    texts = [
        f"notice {i % 40} of the harbour office about pier {i % 40} and the tide"
        for i in range(120)
    ]
    with RunningService(path) as running:
        with Client(running.url) as client, ThreadPoolExecutor(12) as threads:
            sent = list(
                threads.map(
                    lambda i: client.add_if_new([{"id": str(i), "text": texts[i]}])[0], range(120)
                )
            )
        assert running.stop() == 0
    given = {answer.id: (answer.kept, answer.kept_id, answer.similarity) for answer in sent}
    with neardup.Index.open(path, read_only=True) as index:
        order = [id for table in index.documents() for id in table["id"].to_pylist()]
    assert sorted(order) == sorted(given)
    sieve = neardup.Index.create("memory:", method=METHOD)
    for id in order:
        answer = sieve.add_if_new(texts[int(id)], id=id)
        assert given[id] == (answer.kept, answer.kept_id, answer.similarity)


# The state of the service.


def test_health_readiness_and_statistics(service):
    assert service.request("GET", "/healthz").json == {"status": "ok"}
    assert service.request("GET", "/readyz").json == {"status": "ok"}
    add(
        service,
        {"id": "stats", "text": "a text to be counted by the statistics of the service"},
        mode="add",
    )
    stats = service.request("GET", "/v1/stats").json
    assert stats["index"]["documents"]["kept"] >= 1
    assert stats["growth"][-1]["documents"] >= 1
    assert stats["queued"] == {"writes": 0, "reads": 0, "analyses": 0}


def test_the_metrics_are_in_the_format_of_prometheus(service):
    add(
        service,
        {"id": "metrics", "text": "a text to be counted by the metrics of the service"},
        mode="add",
    )
    response = service.request("GET", "/metrics")
    assert response.headers["content-type"].startswith("text/plain; version=0.0.4")
    values = {}
    for line in response.content.decode().splitlines():
        if not line.startswith("#"):
            name, value = re.fullmatch(
                r'([a-z_]+(?:{[a-z_]+="[^"]*"(?:,[a-z_]+="[^"]*")*})?) (\S+)', line
            ).groups()
            values[name] = float(value)
    assert values['neardup_requests_total{operation="add_documents",status="200"}'] >= 1
    assert values['neardup_documents{decision="kept"}'] >= 1
    buckets = [
        values[f'neardup_batch_size_bucket{{queue="writes",le="{le}"}}']
        for le in ("1", "1000", "+Inf")
    ]
    assert buckets == sorted(buckets)
    assert buckets[-1] == values['neardup_batch_size_count{queue="writes"}']


TIME = {"type": "string", "format": "date-time"}


@pytest.mark.parametrize(
    ("kind", "name", "schema"),
    [
        ("Answer", "first_seen", {"anyOf": [TIME, {"type": "null"}]}),
        ("Hit", "last_seen", {"anyOf": [TIME, {"type": "null"}]}),
        ("Document", "first_seen", {"anyOf": [TIME, {"type": "null"}]}),
        ("Import", "opened", {"anyOf": [TIME, {"type": "null"}]}),
        ("Growth", "time", TIME),
    ],
)
def test_times_of_the_openapi_document_have_the_format_of_times(service, kind, name, schema):
    schemas = service.request("GET", "/openapi.json").json["components"]["schemas"]
    found = schemas[kind]["properties"][name]
    assert {key: found[key] for key in schema} == schema


def test_the_openapi_document_lists_every_operation_and_every_reference_resolves(service):
    found = service.request("GET", "/openapi.json").json
    assert found == json.loads(
        json.dumps(openapi_document(OPERATIONS, neardup.__version__, ServiceSettings()))
    )
    assert {(m.upper(), path) for path, methods in found["paths"].items() for m in methods} == {
        (operation.method, operation.path) for operation in OPERATIONS
    }
    names = set(re.findall(r'"#/components/schemas/(\w+)"', json.dumps(found)))
    assert names == set(found["components"]["schemas"])


def test_each_request_is_a_line_of_the_log_and_carries_its_id(service):
    response = service.request("GET", "/healthz", X_Request_ID="from-the-caller.1")
    assert response.headers["x-request-id"] == "from-the-caller.1"
    line = service.wait("request", request_id="from-the-caller.1")
    assert (line["method"], line["path"], line["status"], line["level"]) == (
        "GET",
        "/healthz",
        200,
        "info",
    )
    refused = service.request("GET", "/healthz", X_Request_ID="bad id {}")
    assert re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]+", refused.headers["x-request-id"])


def test_the_log_is_json_or_text_or_nothing(capfdbinary):
    for form in ("json", "text", "none"):
        Log(form).event("stopped", level="info", requests=3, detail=None)
    first, second = capfdbinary.readouterr().err.decode().splitlines()
    assert {**json.loads(first), "time": ""} == {
        "time": "",
        "level": "info",
        "event": "stopped",
        "requests": 3,
        "detail": None,
    }
    assert second.endswith("Z info stopped requests=3")


def test_the_page_is_cached_by_digest(service):
    page = service.request("GET", "/")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert service.request("GET", "/", If_None_Match=page.headers["etag"]).status == 304
    paths = re.findall(rb'"(/static/[^"]+)"', page.content)
    assert len(paths) == 3
    for path in paths:
        asset = service.request("GET", path.decode())
        assert asset.status == 200
        assert "immutable" in asset.headers["cache-control"]
    assert service.request("GET", "/static/page.0000.js").status == 404
    assert service.request("HEAD", "/").content == b""


# Refusals.


def test_a_problem_has_the_sentence_of_the_library_and_the_id_of_the_request(service):
    response = service.request("POST", "/v1/imports/nowhere/commit")
    assert response.status == 404
    assert response.headers["content-type"] == "application/problem+json"
    problem = response.json
    assert problem["detail"].startswith("There is no open import 'nowhere'")
    assert (problem["status"], problem["title"]) == (404, "Not Found")
    assert problem["request_id"] == response.headers["x-request-id"]


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "commit"),
        ("POST", "cancel"),
        ("POST", "documents"),
        ("DELETE", ""),
    ],
)
def test_an_import_that_is_not_open_is_not_found(service, method, path):
    documents = {"documents": [{"id": "a", "text": "b"}]}
    body = documents if path == "documents" else None
    response = service.request(method, f"/v1/imports/nowhere/{path}".rstrip("/"), body)
    assert (response.status, "'nowhere'" in response.json["detail"]) == (404, True)


def test_the_openapi_document_has_the_limits_of_the_service(service):
    found = service.request("GET", "/openapi.json").json
    schemas = found["components"]["schemas"]
    settings = ServiceSettings()
    limit = schemas["QueryRequest"]["properties"]["limit"]
    assert (limit["minimum"], limit["maximum"]) == (1, settings.max_hits)
    assert schemas["AddRequest"]["properties"]["documents"]["maxItems"] == settings.max_documents
    name = schemas["ImportRequest"]["properties"]["name"]
    [parameter] = found["paths"]["/v1/imports/{name}/commit"]["post"]["parameters"]
    assert parameter["schema"] == name
    assert {"404", "422"} <= found["paths"]["/v1/imports/{name}/documents"]["post"][
        "responses"
    ].keys()


@pytest.mark.parametrize("wrong", ["", "a/b", "x" * 201, "a\n", "\x1f"], ids=ascii)
def test_a_name_that_the_openapi_document_excludes_is_refused(service, wrong):
    schemas = service.request("GET", "/openapi.json").json["components"]["schemas"]
    name = schemas["ImportRequest"]["properties"]["name"]
    assert not (re.search(name["pattern"], wrong) and len(wrong) <= name["maxLength"])
    assert service.request("POST", "/v1/imports", {"name": wrong}).status == 422


def test_an_empty_id_is_an_id(service):
    documents = {
        "documents": [{"id": "", "text": "the only document here without any characters in its id"}]
    }
    [answer] = service.request("POST", "/v1/documents", documents | {"mode": "add"}).json["answers"]
    assert (answer["id"], answer["kept"]) == ("", True)
    assert service.request("GET", "/v1/documents/").json["id"] == ""
    assert service.request("DELETE", "/v1/documents/").json == {"removed": 1}


def test_there_is_nothing_at_an_unknown_path_and_methods_are_named(service):
    assert service.request("GET", "/v2/documents").status == 404
    assert service.request("GET", "/v1/imports/").status == 404
    response = service.request("PUT", "/v1/documents", {})
    assert (response.status, response.headers["allow"]) == (405, "POST")
    assert service.request("POST", "/v1/documents/x", {}).headers["allow"] == "DELETE, GET"


@pytest.mark.parametrize(
    ("body", "status", "part"),
    [
        (b"{", 400, "not valid JSON"),
        (b'{"documents": [{"id": "a", "text": "\xff"}]}', 400, "not valid JSON in UTF-8"),
        (
            b'{"documents": [{"id": "a", "text": "\\ud800"}]}',
            400,
            "a lone surrogate such as \\ud800",
        ),
        (b'{"documents": [{"id": "a", "text": "\\ud800 x"}]}', 400, "surrogate"),
        (b'{"documents": [{"id": "a", "text": "b", "payload": ' + b"[" * 100_000, 400, "levels"),
        (b"[]", 422, "Expected `object`"),
        (b'{"documents": []}', 422, "$.documents"),
        (b'{"documents": [{"id": 1, "text": "a"}]}', 422, "$.documents[0].id"),
        (b'{"documents": [{"id": "a"}]}', 422, "`text`"),
        (b'{"documents": [{"id": "a", "text": "b", "txt": "c"}]}', 422, "`txt`"),
        (b'{"documents": [{"id": "a", "text": "b"}], "mode": "replace"}', 422, "$.mode"),
    ],
)
def test_a_body_of_another_form_is_refused_with_the_place(service, body, status, part):
    response = service.request("POST", "/v1/documents", body=body)
    assert (response.status, part in response.json["detail"]) == (status, True), response.json


def test_of_a_repeated_key_the_last_one_counts(service):
    body = (
        b'{"documents": [{"id": "first", "id": "last", "text": "a key of the object is '
        b'repeated"}], "mode": "add"}'
    )
    [answer] = service.request("POST", "/v1/documents", body=body).json["answers"]
    assert answer["id"] == "last"


@pytest.mark.parametrize(
    "headers",
    [
        {"Content_Type": "text/plain"},
        {"Content_Type": ""},
        {"Content_Encoding": "gzip"},
    ],
)
def test_a_body_must_be_plain_json(service, headers):
    assert service.request("POST", "/v1/query", body=b'{"texts": ["a"]}', **headers).status == 415


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:{port}",
        "127.0.0.1.evil.example",
        "[::2]:80",
        "127.0.0.1:{port}@evil.example",
        "localhost@evil.example",
        "localhost:80:80",
        "[::1]evil.example",
    ],
)
def test_another_host_name_is_refused_as_in_dns_rebinding(service, host):
    response = service.request("GET", "/v1/stats", Host=host.format(port=service.port))
    assert (response.status, "--token-file" in response.json["detail"]) == (421, True)


@pytest.mark.parametrize("host", ["localhost", "localhost:{port}", "[::1]:80"])
def test_the_names_of_this_machine_are_accepted(service, host):
    assert service.request("GET", "/healthz", Host=host.format(port=service.port)).status == 200


def test_pages_of_other_sites_cannot_write(service):
    path = "/v1/imports/x/cancel"
    assert service.request("POST", path, Origin="https://evil.example").status == 403
    assert service.request("POST", path, Origin="null").status == 403
    assert service.request("POST", path, Sec_Fetch_Site="cross-site").status == 403
    assert (
        service.request("POST", path, Origin=service.url, Sec_Fetch_Site="same-origin").status
        == 404
    )
    assert (
        "A proxy must pass the Host header on"
        in service.request("POST", path, Origin="null").json["detail"]
    )
    answer = service.request("GET", "/v1/stats", Origin="https://evil.example")
    assert not [name for name in answer.headers if name.startswith("access-control")]


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/"), ("GET", "/healthz"), ("GET", "/nothing"), ("PUT", "/"), ("POST", "/v1/query")],
)
def test_every_response_has_the_security_headers(service, method, path):
    assert set(service.request(method, path).headers) >= SECURITY_HEADERS


def test_the_answer_to_other_protocols_has_the_security_headers(service):
    with socket.create_connection((service.host, service.port)) as connection:
        connection.sendall(b"this is no HTTP\r\n\r\n")
        answer = connection.makefile("rb").read().decode()
    assert answer.startswith("HTTP/1.1 400 ")
    assert set(re.findall(r"^([a-z-]+):", answer, re.M)) >= SECURITY_HEADERS
    assert '"detail":"The request is not valid HTTP/1.1' in answer


def test_a_client_that_leaves_does_no_harm(service):
    for head in (
        b"",
        b"POST /v1/documents HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n",
    ):
        with socket.create_connection((service.host, service.port)) as connection:
            connection.sendall(head + (b"Content-Length: 100\r\n\r\n{" if head else b""))
    assert service.request("GET", "/healthz").status == 200
    assert not [line for line in service.log if line["level"] == "error"]
