"""The limits of the service: each is a setting, and is named in its error; tokens and their
roles.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from click.testing import CliRunner

import neardup
from neardup.cli.main import cli
from neardup.client import Client, ServiceError
from neardup.errors import InputError, MissingExtraError
from neardup.service import security
from neardup.service.security import read_tokens
from neardup.settings.service import ServiceSettings
from reference.service import Response, RunningService

pytestmark = pytest.mark.slow

pytest.importorskip("uvicorn", reason="the extra serve is not installed")
READER = "a-token-that-may-read"
WRITER = "a-token-that-may-write"
LIMITS = {
    "max_body_bytes": 20_000,
    "max_text_bytes": 1000,
    "max_payload_bytes": 100,
    "max_id_bytes": 50,
    "max_header_bytes": 2000,
    "max_documents": 20,
    "max_hits": 200,
    "max_connections": 64,
    "max_queued_documents": 30,
    "max_pending_bytes": 30_000,
    "read_timeout_s": 0.4,
    "idle_timeout_s": 0.4,
}

needs_modes = pytest.mark.skipif(
    not hasattr(os, "getuid"), reason="modes of files are those of POSIX"
)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    folder = tmp_path_factory.mktemp("limits")
    tokens = folder / "tokens"
    tokens.write_text(f"# the tokens of a test\nread {READER}\nwrite {WRITER}  \n")
    neardup.Index.create(folder / "an.index", method="minhash", storage="text").close()
    options = [f"--{name.replace('_', '-')}={value}" for name, value in LIMITS.items()]
    with RunningService(folder / "an.index", "--token-file", str(tokens), *options) as running:
        yield running
        errors = [line for line in running.log if line["level"] == "error"]
        assert not errors, errors[0]["traceback"]


def post(
    service: RunningService, path: str, message: object, token: str = WRITER, **headers: str
) -> Response:
    return service.request("POST", path, message, Authorization=f"Bearer {token}", **headers)


def one(text: str = "a text", id: str = "a", payload: object = None) -> dict:
    return {"documents": [{"id": id, "text": text, "payload": payload}]}


# Sizes and numbers.


@pytest.mark.parametrize(
    ("setting", "status", "path", "message"),
    [
        ("max_body_bytes", 413, "/v1/documents", one("x" * 20_001)),
        ("max_text_bytes", 422, "/v1/documents", one("x" * 1001)),
        ("max_text_bytes", 422, "/v1/documents", one("é" * 501)),
        ("max_text_bytes", 422, "/v1/query", {"texts": ["a", "x" * 1001]}),
        ("max_text_bytes", 422, "/v1/compare", {"left": "a", "right": "x" * 1001}),
        ("max_payload_bytes", 422, "/v1/documents", one(payload={"a": "x" * 100})),
        ("max_id_bytes", 422, "/v1/documents", one(id="é" * 26)),
        (
            "max_documents",
            422,
            "/v1/documents",
            {"documents": [{"id": str(i), "text": "a"} for i in range(21)]},
        ),
        ("max_documents", 422, "/v1/query", {"texts": ["a"] * 21}),
        ("max_hits", 422, "/v1/query", {"texts": ["a"], "limit": 201}),
    ],
)
def test_what_is_too_large_is_refused_and_the_setting_named(
    service, setting, status, path, message
):
    response = post(service, path, message)
    problem = response.json
    assert (response.status, problem["setting"]) == (status, setting)
    assert f"more than {setting}={LIMITS[setting]:,}. " in problem["detail"]
    assert f"or raise --{setting.replace('_', '-')}." in problem["detail"]


def test_what_is_just_small_enough_is_accepted(service):
    documents = [{"id": f"{i:050}", "text": "x" * 300, "payload": "y" * 98} for i in range(20)]
    assert post(service, "/v1/documents", {"documents": documents}).status == 200
    assert post(service, "/v1/documents", one("x" * 1000)).status == 200
    assert post(service, "/v1/query", {"texts": ["x" * 1000] * 15, "limit": 10}).status == 200


def test_a_body_of_unknown_size_is_refused_as_soon_as_it_is_too_large(service):
    def parts() -> Iterator[bytes]:
        for _ in range(30):
            yield b"x" * 1000

    connection = Client(service.url)._connect()
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {WRITER}"}
    connection.request("POST", "/v1/documents", parts(), headers, encode_chunked=True)
    response = connection.getresponse()
    assert (response.status, json.loads(response.read())["setting"]) == (413, "max_body_bytes")
    connection.close()


def test_large_headers_are_refused(service):
    response = service.request("GET", "/healthz", X_Long="x" * 2000)
    assert (response.status, response.json["setting"]) == (431, "max_header_bytes")
    with connected(service) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nX-Endless: " + b"x" * 3000)
        assert_problem(service, connection, 431, "max_header_bytes")


@pytest.mark.slow
def test_a_body_that_could_never_be_in_memory_is_too_large_rather_than_too_early(tmp_path):
    neardup.Index.create(tmp_path / "an.index").close()
    with RunningService(tmp_path / "an.index", "--max-pending-bytes", "5000") as small:
        assert small.request("POST", "/v1/documents", one("x" * 4000)).status == 200
        response = small.request("POST", "/v1/documents", one("x" * 5000))
        assert (response.status, response.json["setting"]) == (413, "max_pending_bytes")


def test_what_is_no_http_is_refused(service):
    with connected(service) as connection:
        connection.sendall(b"\x16\x03\x01 is no request\r\n\r\n")
        assert_problem(service, connection, 400, None)


# Time.


def connected(service: RunningService) -> socket.socket:
    return socket.create_connection((service.host, service.port), timeout=30)


def assert_problem(
    service: RunningService, connection: socket.socket, status: int, setting: str | None
) -> None:
    with connection.makefile("rb") as answer:
        head, _, body = answer.read().partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 %d " % status)
    assert json.loads(body).get("setting") == setting
    request_id = json.loads(body)["request_id"]
    assert b"x-request-id: %s\r\n" % request_id.encode() in head + b"\r\n"
    assert service.wait("request", request_id=request_id)["status"] == status


def test_headers_that_drip_are_cut_off(service):
    with connected(service) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Slow:")
        assert_problem(service, connection, 408, "read_timeout_s")


def test_headers_that_drip_on_are_cut_off_although_bytes_arrive(service):
    with connected(service) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nX-Slow: ")
        connection.settimeout(0.05)
        received = b""
        for _ in range(100):
            try:
                connection.sendall(b"x")
                received = connection.recv(100)
            except TimeoutError:
                continue
            except OSError:
                break
            break
        assert received.startswith(b"HTTP/1.1 408 ")


def test_a_body_that_does_not_arrive_is_cut_off(service):
    with connected(service) as connection:
        head = (
            "POST /v1/query HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer "
            f"{READER}\r\nContent-Type: application/json"
        )
        connection.sendall(f"{head}\r\nContent-Length: 100\r\n\r\n{{".encode())
        assert_problem(service, connection, 408, "read_timeout_s")


@pytest.mark.parametrize("begun", [b"", b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"])
def test_an_idle_connection_is_closed(service, begun):
    with connected(service) as connection:
        connection.sendall(begun)
        with connection.makefile("rb") as answer:
            assert bool(answer.read()) == bool(begun)  # to the end of the connection


@pytest.mark.slow
def test_a_client_that_does_not_read_is_cut_off(service):
    with connected(service) as connection:
        connection.sendall(b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n" * 1000)
        while num_connections(service) < 2:
            pass
        while num_connections(service) > 1:
            pass


def num_connections(service: RunningService) -> int:
    """Return the number of open connections, the one that asks included."""
    page = service.request("GET", "/metrics", Authorization=f"Bearer {READER}").content.decode()
    return int(page.split("\nneardup_connections ")[1].split()[0])


# Too much at a time.


def test_connections_beyond_the_limit_are_refused(service):
    opened = [connected(service) for _ in range(LIMITS["max_connections"])]
    try:
        for connection in opened:  # each is accepted before the next ones come
            connection.sendall(b"G")
        with connected(service) as refused:
            assert_problem(service, refused, 503, "max_connections")
    finally:
        for connection in opened:
            connection.close()


def test_a_uvicorn_that_cannot_be_limited_is_not_used(monkeypatch):
    """A later one may drop a name; the protocol of h11 is slower than that of httptools."""
    pytest.importorskip("httptools", reason="no httptools")
    from uvicorn.protocols.http import h11_impl, httptools_impl

    from neardup.service.connections import guarded

    def refuse(problem, client):
        return b"", ""

    settings = ServiceSettings()
    assert issubclass(guarded(settings, refuse), httptools_impl.HttpToolsProtocol)
    monkeypatch.delattr(httptools_impl.HttpToolsProtocol, "send_400_response")
    with pytest.warns(
        RuntimeWarning,
        match="uvicorn's HttpToolsProtocol lacks send_400_response, so it is not used",
    ):
        assert issubclass(guarded(settings, refuse), h11_impl.H11Protocol)
    monkeypatch.setattr(h11_impl.RequestResponseCycle, "__init__", lambda self: None)
    with (
        pytest.warns(RuntimeWarning),
        pytest.raises(
            MissingExtraError,
            match=r"cannot limit .* of uvicorn .* lacks more_body, response_complete\.",
        ),
    ):
        guarded(settings, refuse)


def test_bodies_beyond_the_limit_of_memory_are_refused(service):
    head = (
        f"POST /v1/query HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {READER}\r\nContent-Type: "
        "application/json"
    )
    with connected(service) as first, connected(service) as second:
        for connection in (first, second):
            connection.sendall(f"{head}\r\nContent-Length: 19000\r\n\r\n".encode() + b" " * 18_000)
        answers = []
        for connection in (first, second):
            with connection.makefile("rb") as answer:
                answers.append(answer.read())
    refused = [answer for answer in answers if answer.startswith(b"HTTP/1.1 429 ")]
    assert len(refused) == 1
    assert b'"setting":"max_pending_bytes"' in refused[0]


def test_a_full_queue_answers_429_with_the_time_to_wait(service):
    documents = [
        {"id": f"queue/{i}", "text": f"a text about the length of queue {i}"} for i in range(20)
    ]
    with ThreadPoolExecutor(16) as threads:
        responses = list(
            threads.map(
                lambda _: post(service, "/v1/documents", {"documents": documents}), range(64)
            )
        )
    statuses = {response.status for response in responses}
    assert statuses == {200, 429}
    refused = next(response for response in responses if response.status == 429)
    assert refused.headers["retry-after"] == "1"
    assert refused.json["setting"] in ("max_queued_documents", "max_pending_bytes")


# Tokens.


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": "Bearer wrong"},
        {"Authorization": f"Basic {WRITER}"},
        {"Authorization": ""},
    ],
    ids=["none", "unknown", "basic", "empty"],
)
def test_without_a_token_the_request_is_refused(service, headers):
    response = service.request("POST", "/v1/query", {"texts": ["a"]}, **headers)
    assert response.status == 401
    assert response.headers["www-authenticate"] == 'Bearer realm="neardup"'


@pytest.mark.parametrize("path", ["/v1/stats", "/metrics", "/v1/documents/a"])
def test_without_a_token_nothing_is_shown(service, path):
    assert service.request("GET", path).status == 401


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/v1/documents"),
        ("DELETE", "/v1/documents/a"),
        ("POST", "/v1/imports/a/commit"),
    ],
)
def test_a_token_that_may_read_cannot_write(service, method, path):
    assert post(service, "/v1/query", {"texts": ["a"]}, READER).status == 200
    assert service.request("GET", "/metrics", Authorization=f"Bearer {READER}").status == 200
    response = service.request(method, path, one(), Authorization=f"Bearer {READER}")
    assert (response.status, "may only read" in response.json["detail"]) == (403, True)


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/openapi.json", "/"])
def test_health_and_the_page_need_no_token(service, path):
    assert service.request("GET", path).status == 200


def test_with_tokens_any_host_name_is_answered(service):
    assert service.request("GET", "/healthz", Host="news.example").status == 200


def test_no_token_and_no_text_is_in_the_log(service):
    post(service, "/v1/documents", one("a text that is secret"))
    assert not [
        line for line in service.log if WRITER in str(line) or "that is secret" in str(line)
    ]


def test_the_client_sends_its_token_and_names_the_limit(service):
    with (
        Client(service.url, token=READER, retries=0) as client,
        pytest.raises(ServiceError) as caught,
    ):
        client.query(["a"], limit=201)
    assert (caught.value.status, caught.value.setting) == (422, "max_hits")


# The start.


def run(*arguments: str) -> str:
    """Return the error of the command `serve`."""
    result = CliRunner().invoke(cli, ["serve", *arguments])
    assert result.exit_code == 2
    return result.output


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "news.example"])
def test_beyond_this_host_the_service_does_not_start_without_tokens(tmp_path, host):
    output = run(str(tmp_path / "an.index"), "--host", host)
    assert output.count("\n") == 1
    assert "no token protects the index. Pass --token-file FILE, or --host 127.0.0.1." in output


def test_a_port_in_use_is_named(service, tmp_path):
    assert f"127.0.0.1:{service.port} cannot be listened on" in run(
        str(tmp_path), "--port", str(service.port)
    )


@pytest.mark.parametrize(
    ("content", "part"),
    [
        ("", "has no token"),
        ("# read a\n\n", "has no token"),
        ("read short", "Line 1 of"),
        ("read " + "x" * 16 + "\nadmin " + "x" * 16, "Line 2 of"),
        ("x" * 32, "Line 1 of"),
        ("write " + "x" * 16 + "\nread " + "x" * 16, "the roles read and write"),
        ("read " + "é" * 16, "cannot be read"),
    ],
)
def test_a_token_file_is_checked(tmp_path: Path, content: str, part: str):
    file = tmp_path / "tokens"
    file.write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=part) as caught:
        read_tokens([file])
    assert "x" * 16 not in str(caught.value)


def test_a_token_file_of_a_name_that_no_file_has_is_refused():
    with pytest.raises(InputError, match="cannot be read as a token file: embedded null byte"):
        read_tokens(["a\0b"])


def test_a_comment_may_stand_behind_a_token(tmp_path: Path):
    file = tmp_path / "tokens"
    token = "x" * 15 + "#"
    file.write_text(
        f"# for the crawler\nwrite {token} # until May\n\t# the rest\nread {'y' * 16}\t#\n"
    )
    tokens = read_tokens([file])
    assert tokens.role_of(f"Bearer {token}".encode()) == "write"
    assert tokens.role_of(b"Bearer " + b"y" * 16) == "read"


@pytest.mark.slow
@needs_modes
@pytest.mark.parametrize(
    ("mode", "is_safe"),
    [
        (0o666, False),
        (0o620, False),
        (0o602, False),
        (0o600, True),
        (0o444, True),
    ],
)
def test_a_token_file_that_others_can_change_is_refused(tmp_path: Path, mode, is_safe):
    file = tmp_path / "tokens"
    file.write_text("write " + "x" * 16)
    file.chmod(mode)
    if is_safe:
        assert read_tokens([file])
    else:
        with pytest.raises(
            InputError, match=rf"can be changed by other users.* Run `chmod 600 {file}`"
        ):
            read_tokens([file])


@needs_modes
def test_the_mode_is_that_of_the_file_whose_tokens_are_read(tmp_path: Path, monkeypatch):
    file = tmp_path / "tokens"
    file.write_text("write " + "x" * 16)
    file.chmod(0o666)
    safe = tmp_path / "safe"
    safe.write_text("write " + "y" * 16)
    safe.chmod(0o600)

    def lines_then_another_file(text: str) -> list[str]:
        safe.replace(file)
        return text.splitlines()

    monkeypatch.setattr(security, "lines_of", lines_then_another_file)
    with pytest.raises(InputError, match="can be changed by other users"):
        read_tokens([file])
