"""Shared set-up: fixed random choices, real texts, a browser."""

from __future__ import annotations

import gc
import gzip
import io
import json
import os
import random
import shutil
import sys
from collections.abc import Callable, Iterator
from functools import cache, partial
from itertools import compress
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

import neardup
from reference.browser import Browser
from reference.places import SHARED_DATA, TESTS
from reference.service import METHOD, RunningService
from servers import postgres_server, redis_server, server  # noqa: F401 - fixtures of all tests
from spark_session import spark  # noqa: F401

for profile, max_examples in (("fixed", 25), ("nightly", 100)):
    settings.register_profile(
        profile,
        # Each night draws new examples; a failing one is printed with the line that repeats it.
        derandomize=profile != "nightly",
        print_blob=True,
        deadline=None,
        max_examples=max_examples,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
    )


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--thorough",
        action="store_true",
        help=("the slow tests too, and the larger data of ../shared where it is"),
    )
    parser.addoption(
        "--nightly", action="store_true", help="new random examples of each property, 100 of each"
    )
    parser.addoption(
        "--passed",
        help="a JUnit file: what passed there is left out, unless --thorough gives it more to do",
    )
    parser.addoption(
        "--examples",
        type=int,
        help="how many examples of each property, instead of those of the profile",
    )
    parser.addoption(
        "--load-seconds", default="10", help="how long the test of the service under load takes"
    )


def pytest_configure(config: pytest.Config) -> None:
    gc.set_threshold(
        20_000, 10, 10
    )  # of the time of compiling, a tenth goes to collections that find nothing
    settings.load_profile("nightly" if config.getoption("--nightly") else "fixed")
    if config.getoption("--examples"):
        settings.register_profile("chosen", settings(), max_examples=config.getoption("--examples"))
        settings.load_profile("chosen")


LONG = [
    "engines/test_spark_cluster",
    "engines/test_spark_files",
    "index/test_sequences",
    "engines/test_spark",
    "stores/test_embedded_faults",
    "stores/test_servers_index",
    "engines/test_spark_commands",
    "stores/test_servers_killed",
    "methods/test_given_vectors",
    "kernels/test_modes",
    "index/test_daily_job",
    "api/test_contamination",
]
"""Files of minutes, which begin first, so that no process is left with one at the end."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the slow tests and those of times, unless they are asked for."""
    if config.getoption("--thorough"):
        names = [item.path.relative_to(TESTS).with_suffix("").as_posix() for item in items]
        order = {name: LONG.index(name) if name in LONG else len(LONG) for name in names}
        items[:] = [
            item
            for _, item in sorted(zip(names, items, strict=True), key=lambda pair: order[pair[0]])
        ]
    if config.getoption("-m"):
        return
    names = ["timing"] if config.getoption("--thorough") else ["timing", "slow"]
    passed = _passed(config.getoption("--passed")) if config.getoption("--passed") else ()
    left_out = [
        any(map(item.get_closest_marker, names)) or (item.nodeid in passed and not _gains(item))
        for item in items
    ]
    config.hook.pytest_deselected(items=list(compress(items, left_out)))
    items[:] = [item for item, is_left_out in zip(items, left_out, strict=True) if not is_left_out]


def _passed(file: str) -> set[str]:
    """Return the tests that passed in a run."""
    cases = [case for case in ElementTree.parse(file).iter("testcase") if not len(case)]
    return {
        f"{case.get('classname', '').replace('.', '/')}.py::{case.get('name')}" for case in cases
    }


def _gains(item: pytest.Item) -> bool:
    """Return whether --thorough may give a test more to do: larger data."""
    return "pytestconfig" in item.fixturenames


@pytest.fixture(autouse=True)
def _silence_overflow_of_interpreted_kernels():
    """Without the compiler, NumPy warns where the arithmetic modulo 2^64 wraps around, as it
    should.
    """
    if os.environ.get("NUMBA_DISABLE_JIT", "0") in ("", "0"):
        yield
    else:
        with np.errstate(over="ignore"):
            yield


def _read_lines(path: Path) -> list[bytes]:
    if path.suffix == ".gz":
        return gzip.decompress(path.read_bytes()).splitlines()
    import pyarrow as pa

    with pa.CompressedInputStream(pa.OSFile(str(path)), "zstd") as stream:
        return stream.read().splitlines()


@cache
def _records(name: str, large: bool) -> list[dict]:
    """Return the records of a set, those of one cluster side by side, clusters in a fixed random
    order.
    """
    folder = SHARED_DATA / name
    files = sorted([*folder.glob("*.gz"), *folder.glob("*.zst")]) if large else []
    files = files or [TESTS / "data" / f"{name}.jsonl.gz"]
    records = [json.loads(line) for file in files for line in _read_lines(file)]
    clusters: dict[str, list[dict]] = {}
    for record in records:
        clusters.setdefault(
            str(record["cluster"]) if record["cluster"] else record["id"], []
        ).append(record)
    names = sorted(clusters)
    random.Random(name).shuffle(names)
    return [record for cluster in names for record in clusters[cluster]]


def _texts(name: str, max_bytes: int, large: bool) -> list[str]:
    """Return texts of a set up to about so many bytes, mixed, so that the members of a cluster
    stand apart.
    """
    texts = []
    size = 0
    for record in _records(name, large):
        length = len(record["text"].encode())
        if length > max_bytes // 8:
            continue
        if size + length > max_bytes:
            break
        texts.append(record["text"])
        size += length
    random.Random(name).shuffle(texts)
    return texts


@pytest.fixture(scope="session")
def real_texts(pytestconfig: pytest.Config):
    """Return a function (set, max_bytes) -> texts: of tests/data; in thorough runs of
    ../shared/data if it is there.
    """
    return partial(_texts, large=pytestconfig.getoption("--thorough"))


@pytest.fixture
def pipe(monkeypatch: pytest.MonkeyPatch) -> Callable[[bytes], None]:
    """Return a function that makes some bytes the standard input."""
    return lambda data: monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """Return a service without tokens; its index stores texts, and has the documents of all tests
    before.
    """
    pytest.importorskip("uvicorn", reason="the extra serve is not installed")
    path = tmp_path_factory.mktemp("service") / "news.index"
    neardup.Index.create(path, method=METHOD, storage="text").close()
    with RunningService(path) as running:
        yield running
        assert running.stop() == 0


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """Return a browser for the pages that are written; skip the test where there is none."""
    found = filter(
        None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))
    )
    program = next(found, None)
    if program is None:
        pytest.skip("no Chromium on the path: install chromium to test the page in a browser")
    driven = Browser(program, tmp_path_factory.mktemp("profile"))
    yield driven
    driven.session = ""
    driven.call("Browser.close")
    driven.process.wait(timeout=30)
    os.close(driven.to)
    os.close(driven.back)
