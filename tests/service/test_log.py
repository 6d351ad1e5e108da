"""The log of the service: every line once, from any thread, and no fault of a library is ours."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator
from threading import Thread

import pytest

from neardup.service.log import LibraryHandler, Log


@pytest.fixture
def fast_switches() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("fast_switches")
def test_no_line_is_lost_if_several_threads_log(capfdbinary):
    log = Log("json")

    def write() -> None:
        for number in range(5000):
            log.event("library", number=number)

    threads = [Thread(target=write) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert capfdbinary.readouterr().err.count(b"\n") == 4 * 5000


def test_a_library_that_logs_badly_fails_no_request(capfdbinary):
    record = logging.LogRecord("redis", logging.WARNING, "redis.py", 1, "%d keys", ("many",), None)
    LibraryHandler(Log("json")).emit(record)
    event = json.loads(capfdbinary.readouterr().err)
    assert (event["level"], event["message"]) == ("warning", "%d keys")
