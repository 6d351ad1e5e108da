"""The service as a process: it stops without losing a document, keeps its promises under load, and
survives fuzzing.
"""

from __future__ import annotations

import asyncio
import signal
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

import neardup
from neardup.client import Client, ServiceError
from neardup.service.operations import OPERATIONS
from reference.load import Load, texts
from reference.service import RunningService

pytest.importorskip("uvicorn", reason="the extra serve is not installed")
pytestmark = pytest.mark.slow
METHOD = neardup.SimHash()


class Writers:
    """Threads that add documents one by one until the service is gone, and note what was
    acknowledged.
    """

    def __init__(self, url: str, number: int) -> None:
        self.acknowledged: dict[str, str] = {}
        self.errors: list[ServiceError] = []
        self._client = Client(url, retries=0)
        self._threads = [threading.Thread(target=self._write, args=(i,)) for i in range(number)]
        for thread in self._threads:
            thread.start()

    def _write(self, number: int) -> None:
        for position, text in enumerate(texts(5000, number)):
            id = f"{number}/{position}"
            try:
                self._client.add_if_new([{"id": id, "text": text}])
            except ServiceError as error:
                self.errors.append(error)
                return
            self.acknowledged[id] = text

    def wait_for(self, number: int) -> None:
        while len(self.acknowledged) < number:
            threading.Event().wait(0.002)

    def join(self) -> None:
        for thread in self._threads:
            thread.join(timeout=60)
        self._client.close()


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT])
def test_it_stops_under_load_and_no_acknowledged_document_is_lost(
    tmp_path: Path, sent: signal.Signals
) -> None:
    path = tmp_path / "an.index"
    neardup.Index.create(path, method=METHOD).close()
    with RunningService(path) as running:
        writers = Writers(running.url, 8)
        writers.wait_for(300)
        running.process.send_signal(sent)
        assert running.ended() == 0
        writers.join()
        events = [line["event"] for line in running.log if line["event"] != "request"]
        assert events == ["listening", "stopping", "stopped"]
        assert not [line for line in running.log if line.get("status", 200) not in (200, 503)]
    assert {error.status for error in writers.errors} <= {0, 503}
    with neardup.Index.open(path) as index:
        assert not [id for id in writers.acknowledged if id not in index]
        assert index.verify() == []


def test_it_is_killed_under_load_and_no_acknowledged_document_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "an.index"
    neardup.Index.create(path, method=METHOD).close()
    for number in range(3):
        with RunningService(path) as running:
            writers = Writers(running.url, 8)
            writers.wait_for(50 + 100 * number)
            running.process.kill()
            running.ended()
            writers.join()
        with neardup.Index.open(path) as index:
            assert not [id for id in writers.acknowledged if id not in index]


def test_a_request_under_way_is_answered_although_the_service_stops(tmp_path: Path) -> None:
    path = tmp_path / "an.index"
    neardup.Index.create(path, method=METHOD).close()
    with RunningService(path) as running, Client(running.url, retries=0) as client:
        documents = [{"id": str(i), "text": text} for i, text in enumerate(texts(1000))]
        answers: list[int] = []
        thread = threading.Thread(target=lambda: answers.append(len(client.add(documents))))
        thread.start()
        while (
            'queue="writes"} 1000' not in running.request("GET", "/metrics").content.decode()
            and thread.is_alive()
        ):
            pass
        assert running.stop() == 0
        thread.join()
        assert answers == [1000]


def test_a_second_service_of_an_index_is_refused_in_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "an.index"
    neardup.Index.create(path).close()
    with RunningService(path) as running:
        with pytest.raises(AssertionError, match="error: ") as caught:
            RunningService(path)
        assert str(running.process.pid) in str(caught.value)


# Pages.


@pytest.mark.timing
def test_a_page_that_takes_long_delays_no_other_queue(tmp_path: Path) -> None:
    path = tmp_path / "pages.index"
    neardup.Index.create(path, method=neardup.method("structure", boost_rare=False)).close()
    page = "<table>" + "<tr><td><b><i><p>" * 100_000
    with RunningService(path, "--answer-timeout-s", "0.5", "--read-timeout-s", "0.5") as running:
        slow = threading.Thread(
            target=lambda: running.request(
                "POST", "/v1/compare", {"left": page, "right": page + "<td>" * 1000}
            )
        )
        slow.start()
        times = []
        while slow.is_alive() or not times:
            begun = time.perf_counter()
            assert running.request("GET", "/healthz").status == 200
            assert running.request("POST", "/v1/query", {"texts": ["<p>a"]}).status == 200
            times.append(time.perf_counter() - begun)
        slow.join()
        assert max(times) < 0.5
        [answer] = running.request(
            "POST", "/v1/documents", {"documents": [{"id": "a", "text": page}]}
        ).json["answers"]
        assert answer["kept"]
        again = {"documents": [{"id": "b", "text": page.replace("<p>", "<p>text")}]}
        [answer] = running.request("POST", "/v1/documents", again).json["answers"]
        assert (answer["kept"], answer["kept_id"], answer["similarity"]) == (False, "a", 1.0)


def test_pages_are_compared_by_their_outlines(tmp_path: Path) -> None:
    path = tmp_path / "pages.index"
    neardup.Index.create(path, method=neardup.method("structure", boost_rare=False)).close()
    left = "<body><main><h1>a</h1><p>b<p>c</main>"
    right = "<body><main><h2>a</h2><p>b<p>c</main>"
    with RunningService(path) as running:
        found = running.request("POST", "/v1/compare", {"left": left, "right": right}).json
    assert found["is_outline"]
    assert found["stretches"] == [
        {"left": "body\n  main\n", "right": "body\n  main\n", "shared": True},
        {"left": "    h1\n", "right": "    h2\n", "shared": False},
        {"left": "    p x2\n", "right": "    p x2\n", "shared": True},
    ]


# Fuzzing.


@pytest.mark.parametrize("mode", ["POSITIVE", "NEGATIVE"])
def test_fuzzing_the_operations_of_the_openapi_document_finds_no_server_error(
    tmp_path: Path, mode: str
) -> None:
    schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is not installed")
    from hypothesis import HealthCheck, given, settings
    from hypothesis.errors import Unsatisfiable

    path = tmp_path / "an.index"
    neardup.Index.create(path, method=METHOD, storage="text").close()
    checks = [
        getattr(schemathesis.checks, f"{name}_conformance")
        for name in ("content_type", "response_schema", "status_code")
    ]
    fuzzed = {("GET", "/openapi.json")}  # which schemathesis leaves out
    with RunningService(path) as running:
        schema = schemathesis.openapi.from_url(f"{running.url}/openapi.json")
        for result in schema.get_all_operations():
            operation = result.ok()

            @given(case=operation.as_strategy(generation_mode=schemathesis.GenerationMode[mode]))
            @settings(
                max_examples=60,
                deadline=None,
                suppress_health_check=list(HealthCheck),
                derandomize=True,
            )
            def fuzz(case) -> None:  # type: ignore[no-untyped-def]
                case.call_and_validate(checks=[schemathesis.checks.not_a_server_error, *checks])

            with suppress(Unsatisfiable):  # without parameters, nothing can be wrong
                fuzz()
            fuzzed.add((operation.method.upper(), operation.path))
        assert not [line for line in running.log if line["level"] == "error"]
    assert fuzzed == {(operation.method, operation.path) for operation in OPERATIONS}


# Load.


def test_under_load_no_answer_is_wrong_or_lost_and_memory_stays_flat(
    tmp_path: Path, pytestconfig
) -> None:
    """At a third of the rate of `benchmarks/run_service.py`, so that a busy machine passes too."""
    path = tmp_path / "an.index"
    seconds = float(pytestconfig.getoption("--load-seconds"))
    neardup.Index.create(path, method=METHOD).close()
    with RunningService(path) as running, Client(running.url) as client:
        sent = texts(int(1000 * seconds))
        load = Load(running.url, sent, 1000, 100)
        threading_run = threading.Thread(target=lambda: asyncio.run(load.run()))
        threading_run.start()
        memory = []
        while threading_run.is_alive():
            threading_run.join(seconds / 10)
            page = running.request("GET", "/metrics").content.decode()
            memory.append(int(page.split("\nprocess_resident_memory_bytes ")[1].split()[0]))
        assert client.stats()["requests"] >= len(sent)
        assert running.stop() == 0
    assert len(load.answers) == len(sent)
    half = memory[len(memory) // 2]
    assert memory[-1] - half < max(
        0.25 * half, 400 * len(sent)
    )  # bytes; the index itself grows with its documents
    with neardup.Index.open(path, read_only=True) as index:
        order = [id for table in index.documents() for id in table["id"].to_pylist()]
    sieve = neardup.Index.create("memory:", method=METHOD)
    answers = sieve.add_many_if_new([sent[int(id)] for id in order])
    expected = zip(order, answers["kept"].to_pylist(), answers["distance"].to_pylist(), strict=True)
    assert [(id, load.answers[id]["kept"], load.answers[id]["distance"]) for id in order] == list(
        expected
    )
