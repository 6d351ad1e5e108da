"""The client of the service: against the real service, and against a server that answers what a
test needs.
"""

from __future__ import annotations

import json
import socket
import textwrap
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy
import pandas
import pytest

import neardup
from neardup import client as client_module
from neardup.client import Client, ServiceError
from neardup.errors import InputError, SettingError
from neardup.settings.service import ServiceSettings
from reference.service import RunningService
from reference.signed import fingerprint_of

pytest.importorskip("uvicorn", reason="the extra serve is not installed")
TEXT = "the client of the service sends documents and returns the answers as records with types"


@pytest.fixture
def client(service: RunningService) -> Iterator[Client]:
    with Client(service.url) as opened:
        yield opened


def test_answers_hits_and_documents_are_typed(client):
    before = datetime.now(timezone.utc)
    [kept] = client.add_if_new([{"id": "typed/1", "text": TEXT, "payload": [1, 2]}])
    [removed] = client.add_if_new([{"id": "typed/2", "text": f"{TEXT}!"}])
    assert (kept.kept, kept.payload, kept.distance) == (True, [1, 2], None)
    assert (removed.kept, removed.kept_id, removed.distance, removed.exact) == (
        False,
        "typed/1",
        0,
        True,
    )
    assert kept.first_seen is not None
    assert before <= kept.first_seen <= datetime.now(timezone.utc)
    [[hit]] = client.query([TEXT])
    assert (hit.id, hit.distance, hit.payload) == ("typed/1", 0, [1, 2])
    document = client.get("typed/1")
    assert document is not None
    assert (document.text, document.sketch) == (TEXT, f"{fingerprint_of(TEXT):016x}")
    compared = client.compare(TEXT, f"{TEXT}!")
    assert (compared.duplicate, compared.measures.distance) == (True, 0)
    assert client.remove("typed/1")
    assert not client.remove("typed/1")
    assert client.get("typed/1") is None


def test_more_documents_than_fit_a_request_are_sent_in_several(client):
    documents = ({"id": f"many/{i}", "text": f"document {i} {i * i} {i**3}"} for i in range(1500))
    assert [answer.id for answer in client.add(documents)] == [f"many/{i}" for i in range(1500)]
    large = [{"id": f"large/{i}", "text": f"{i} " + "x y " * 500_000} for i in range(4)]
    assert len(client.add(large)) == 4
    assert len(client.query(["a"] * 1500)) == 1500


def test_a_problem_is_raised_with_its_details(client):
    with pytest.raises(ServiceError, match="There is no open import 'nothing'") as caught:
        client.commit_import("nothing")
    error = caught.value
    assert (error.status, error.title, error.setting) == (404, "Not Found", None)
    assert error.request_id


GOOD = {"id": "a", "text": TEXT}
NO_LIST = "must be a list: got .*Put a single one in a list"
REFUSED = {
    "add": [
        ((TEXT,), NO_LIST),
        ((GOOD,), NO_LIST),
        ((None,), NO_LIST),
        (([TEXT],), "A document must be a dictionary with id and text: got str"),
        (([{"id": 7, "text": TEXT}],), "id must be a string: got int 7"),
        (([{"text": TEXT}],), "id must be a string: got NoneType"),
        (([{"id": "a", "text": b"bytes"}],), "text must be a string: got bytes"),
        (
            ([{"id": "a", "text": "\ud800"}],),
            "text must be Unicode text: .*Replace lone surrogates",
        ),
        (([GOOD | {"payload": {1, 2}}],), "A payload must be a value of JSON: .*set"),
        (([GOOD | {"payload": float("nan")}],), "A payload must be a value of JSON"),
        (([GOOD | {"payload": "\ud800"}],), "A payload must be a value of JSON"),
    ],
    "query": [
        ((TEXT,), NO_LIST),
        ((b"bytes",), NO_LIST),
        ((pandas.DataFrame({"text": [TEXT]}),), NO_LIST),
        (({TEXT},), NO_LIST),
        ((7,), NO_LIST),
        (([7],), "text must be a string: got int 7"),
        ((["\ud800"],), "text must be Unicode text"),
    ],
    "compare": [
        ((TEXT, None), "right must be a string: got None"),
        ((7, TEXT), "left must be a string: got int 7"),
    ],
    "get": [
        ((7,), "id must be a string: got int 7"),
        ((None,), "id must be a string"),
        (("\ud800",), "Unicode"),
    ],
    "open_import": [
        ((7,), "The name of an import must be a str"),
        (("",), "The name of an import must not be"),
    ],
}
REFUSED["add_if_new"], REFUSED["remove"] = REFUSED["add"], REFUSED["get"]
REFUSED["commit_import"] = REFUSED["cancel_import"] = REFUSED["remove_import"] = REFUSED[
    "open_import"
]
REFUSED["stage"] = [(("run", *arguments), message) for arguments, message in REFUSED["add"]]
REFUSED["stage"] += [
    ((*arguments, [GOOD]), message) for arguments, message in REFUSED["open_import"]
]
WITHOUT_ARGUMENTS = {"close", "imports", "stats", "is_ready"}


NO_SERVER = "http://127.0.0.1:1"  # a request to it raises another error


def test_every_method_that_takes_values_has_cases_of_refused_ones():
    methods = {name for name in vars(Client) if not name.startswith("_")}
    assert methods == REFUSED.keys() | WITHOUT_ARGUMENTS


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        pytest.param(name, *case, id=f"{name}-{number}")
        for name, cases in REFUSED.items()
        for number, case in enumerate(cases)
    ],
)
def test_values_of_another_kind_are_refused_before_anything_is_sent(name, arguments, message):
    """A string is iterable: each of its characters would be looked up as a text."""
    with Client(NO_SERVER) as client, pytest.raises(InputError, match=message):
        getattr(client, name)(*arguments)


@pytest.mark.parametrize("limit", [0, True, 1.5, "10"])
def test_a_limit_that_is_no_number_of_hits_is_refused_before_anything_is_sent(limit):
    message = "limit must be a whole number of 1 or more"
    with Client(NO_SERVER) as client, pytest.raises(SettingError, match=message):
        client.query([TEXT], limit=limit)


def test_the_index_refuses_the_same_values_in_the_same_words():
    with neardup.Index.create("memory:") as index:
        calls = [
            (lambda value: index.add_if_new(value, id="a"), "text"),
            (lambda value: index.add(TEXT, id=value), "id"),
            (lambda value: index.add(TEXT, payload=value), "payload"),
            (index.query, "text"),
            (index.get, "id"),
            (lambda value: index.remove([value]), "id"),
        ]
        for call, name in calls:
            with pytest.raises(InputError, match=f"{name} must be a string: got int 7"):
                call(7)
            with pytest.raises(
                InputError, match=f"{name} must be Unicode text: .*Replace lone surrogates"
            ):
                call("\ud800")
        for call in (
            index.open_import,
            index.commit_import,
            index.cancel_import,
            index.remove_import,
        ):
            for [value], message in REFUSED["open_import"]:
                with pytest.raises(InputError, match=message):
                    call(value)
        with pytest.raises(SettingError, match="limit must be a whole number of 1 or more"):
            index.query(TEXT, 0)


def test_threads_share_a_client_and_its_connections_stay_open(service):
    with Client(service.url) as client, ThreadPoolExecutor(4) as threads:
        assert all(threads.map(lambda _: client.is_ready(), range(40)))
        assert 1 <= len(client._idle) <= 4


def test_a_service_that_is_not_there_is_named():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    with Client(url) as client:
        assert not client.is_ready()
        with pytest.raises(ServiceError, match=f"{url} does not answer: ") as caught:
            client.stats()
    assert caught.value.status == 0


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"retries": -1}, r"^retries must be a whole number of 0 or more: got -1"),
        ({"retries": 1.5}, r"^retries must be a whole number"),
        ({"timeout_s": 0}, r"^timeout_s must be a number of seconds above 0 .*: got 0\. Change"),
        ({"timeout_s": "60"}, r"^timeout_s must be a number of seconds"),
        ({"timeout_s": float("nan")}, r"^timeout_s must be a number of seconds"),
        ({"token": "a\nX-Other: b"}, r"^token must be a string of printable ASCII"),
        ({"token": "é"}, r"^token must be a string of printable ASCII"),
        (
            {"url": "http://127.0.0.1:99999"},
            r"^url must be the address of a service: got .*: Port out of range",
        ),
        ({"url": "http://127.0.0.1:port"}, r"^url must be the address of a service"),
        ({"url": "http://[::1"}, r"^url must be the address of a service"),
        ({"url": None}, r"^url must "),
        ({"url": "http://127.0.0.1/\xe9"}, r"^url must be .*other characters than printable ASCII"),
        ({"url": "http://127.0.0.1/a b"}, r"^url must be .*or a space"),
        ({"url": "http://a\0b"}, r"^url must be the address of a service"),
        ({"url": "http://a..b"}, r"^url must be the address of a service"),
        ({"url": "http://me:secret@host"}, r"^url must have no name before the host: got one"),
    ],
)
def test_settings_that_cannot_be_are_refused_when_the_client_is_made(settings, message):
    with pytest.raises(SettingError, match=message):
        Client(**settings)


@pytest.mark.parametrize(
    "documents",
    [
        [{"id": str(number), "text": "é漢" * 400_000} for number in range(9)],
        [{"id": str(number), "text": '"\n' * 900_000} for number in range(9)],
        [{"id": "long" * 500_000 + str(number), "text": "a"} for number in range(9)],
        [
            {"id": str(number), "text": "a", "payload": {"url": "x" * 2_000_000}}
            for number in range(9)
        ],
        pytest.param(
            [{"id": str(number), "text": [0.1234567890123] * 200_000} for number in range(9)],
            marks=pytest.mark.slow,
        ),
    ],
    ids=["characters of several bytes", "escapes", "ids", "payloads", "vectors"],
)
def test_no_request_is_larger_than_half_of_what_a_service_accepts(monkeypatch, documents):
    bodies: list[bytes] = []
    sent = Client()

    def send(method, path, body):
        bodies.append(body)
        answer = {"staged": len(json.loads(body)["documents"])}
        return client_module._Response(200, 0.0, json.dumps(answer).encode())

    monkeypatch.setattr(sent, "_send", send)
    assert sent.stage("name", documents) == len(documents)
    assert max(map(len, bodies)) <= ServiceSettings().max_body_bytes // 2 + 1000
    assert len(bodies) < 9
    assert [document for body in bodies for document in json.loads(body)["documents"]] == documents


@pytest.mark.parametrize("url", ["", "127.0.0.1:8765", "ftp://example.org", "http://"])
def test_an_address_that_is_no_url_is_refused(url):
    with pytest.raises(SettingError, match="url must begin with http://"):
        Client(url)


class Scripted(ThreadingHTTPServer):
    """Answers requests by a list of (status, headers, body); None closes the connection without an
    answer.
    """

    daemon_threads = True

    def __init__(self, *answers: tuple[int, dict[str, str], bytes] | None) -> None:
        self.answers = list(answers)
        self.requests: list[str] = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                server.requests.append(self.path)
                answer = server.answers.pop(0)
                if answer is None:
                    self.close_connection = True
                    return
                status, headers, body = answer
                self.send_response(status)
                for name, value in {**headers, "Content-Length": str(len(body))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            do_DELETE = do_GET

            def log_message(self, *_: object) -> None:
                pass

        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def __exit__(self, *arguments: object) -> None:
        self.shutdown()
        super().__exit__(*arguments)


IMPORTS = (200, {}, b'{"imports": []}')
BUSY = (
    429,
    {"Retry-After": "0"},
    json.dumps({"title": "Too Many Requests", "detail": "later"}).encode(),
)


def test_while_the_service_is_busy_the_request_is_repeated():
    with (
        Scripted(BUSY, (503, {"Retry-After": "0"}, b""), IMPORTS) as server,
        Client(server.url) as client,
    ):
        assert client.imports() == {}
        assert len(server.requests) == 3


def test_after_so_many_retries_the_problem_is_raised():
    with Scripted(*[BUSY] * 3) as server, Client(server.url, retries=2) as client:
        with pytest.raises(ServiceError, match="later") as caught:
            client.imports()
        assert (caught.value.status, len(server.requests)) == (429, 3)


def test_a_connection_that_the_service_closed_is_renewed():
    with Scripted(IMPORTS, None, IMPORTS) as server, Client(server.url) as client:
        assert client.imports() == {}
        assert client.imports() == {}
        assert len(server.requests) == 3


def test_an_answer_that_is_no_json_is_an_error():
    page = (502, {}, b"<html>bad gateway</html>")
    with Scripted(page, (200, {}, b"[]")) as server, Client(server.url) as client:
        for status in (502, 200):
            with pytest.raises(ServiceError, match="without JSON") as caught:
                client.imports()
            assert caught.value.status == status


def test_only_a_service_says_that_there_is_no_document(service):
    page = (404, {}, b"<html>not found</html>")
    with Scripted(page, page) as server, Client(server.url) as client:
        for ask in (client.get, client.remove):
            with pytest.raises(ServiceError, match="answered 404 Not Found, without JSON"):
                ask("a")
    with Client(f"{service.url}/wrong") as client:
        for ask in (client.get, client.remove):
            with pytest.raises(ServiceError, match="There is nothing at this path"):
                ask("a")


@pytest.mark.parametrize("url", ["http://[::1]:1", "http://my_service", "https://m\xfcnchen.de/a/"])
def test_hosts_of_every_kind_are_accepted(url):
    assert Client(url, timeout_s=numpy.float32(3))._timeout_s == 3.0


@pytest.mark.parametrize("text", ["nan", "-1", "inf", "tomorrow", None, "2"])
def test_the_time_before_the_next_attempt_is_a_number(text):
    assert 0.0 <= client_module._seconds(text) <= 30.0


def test_the_example_of_the_module_is_a_program():
    _, example = client_module.__doc__.split("::\n")
    compile(textwrap.dedent(example), "example", "exec")


def test_a_path_in_the_url_is_kept():
    with Scripted(IMPORTS) as server, Client(f"{server.url}/news/") as client:
        client.imports()
        assert server.requests == ["/news/v1/imports"]


def test_the_client_needs_the_standard_library_alone():
    import subprocess
    import sys

    code = (
        "import neardup.client, sys; print([m for m in ('numpy', 'pyarrow', 'msgspec', 'numba') if "
        "m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_documents_bring_sources_to_an_index_that_tracks_them(client, tmp_path):
    document = {"id": "sources/1", "text": TEXT, "source": "c4"}
    with pytest.raises(ServiceError, match=r"The source of documents\[0\] is where") as raised:
        client.add_if_new([document])
    assert raised.value.status == 422
    neardup.Index.create(tmp_path / "an.index", track_sources=True).close()
    with RunningService(tmp_path / "an.index") as running, Client(running.url) as opened:
        documents = [document, {**document, "id": "sources/2", "source": "hplt"}]
        answers = opened.add_if_new([*documents, {"id": "sources/3", "text": TEXT}])
        found = [(answer.sources, answer.num_sources) for answer in answers]
        assert found == [(["c4"], 1), (["c4", "hplt"], 2), (["c4", "hplt"], 2)]
        opened.open_import("monday")
        opened.stage("monday", [{**document, "id": "sources/4", "source": "web"}])
        opened.commit_import("monday")
        [answer] = opened.add_if_new([{**document, "payload": 7}])
        assert (answer.sources, answer.payload) == (["c4", "hplt", "web"], None)
        with pytest.raises(ServiceError, match="source of documents"):
            opened.add_if_new([{**document, "source": "x" * 3000}])
    assert client.get("sources/1") is None


def test_documents_bring_dates_to_an_index_that_tracks_them(client, tmp_path):
    document = {"id": "dates/1", "text": TEXT, "date": "2026-05-02"}
    with pytest.raises(ServiceError, match=r"The date of documents\[0\] is the date") as raised:
        client.add_if_new([document])
    assert raised.value.status == 422
    neardup.Index.create(tmp_path / "an.index", track_dates=True).close()
    with RunningService(tmp_path / "an.index") as running, Client(running.url) as opened:
        documents = [document, {**document, "id": "dates/2", "date": "2026-05-01"}]
        answers = opened.add_if_new([*documents, {"id": "dates/3", "text": TEXT}])
        assert [(answer.first_date, answer.last_date) for answer in answers] == [
            ("2026-05-02", "2026-05-02"),
            *[("2026-05-01", "2026-05-02")] * 2,
        ]
        for date in ("soon", "1" * 3000):
            with pytest.raises(ServiceError, match=r"date of documents\[0\]") as raised:
                opened.add_if_new([{**document, "date": date}])
            assert raised.value.status in (413, 422)
