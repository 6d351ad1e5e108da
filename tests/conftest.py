"""Shared set-up: a cache of compiled kernels that notices every edit, fixed random choices, real texts."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import random
import shutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path

TESTS = Path(__file__).parent
REPOSITORY = TESTS.parent
SHARED_DATA = REPOSITORY.parent / "shared" / "data"


def _kernel_cache() -> Path:
    """Return a folder for compiled code, named by what it was compiled from.

    Numba's cache sees an edit of the caller's file only, and does not know whether bounds were checked.
    """
    digest = hashlib.sha256()
    for file in sorted((REPOSITORY / "src" / "neardup" / "kernels").glob("*.py")):
        digest.update(file.read_bytes())
    checked = "-boundscheck" if os.environ.get("NUMBA_BOUNDSCHECK", "0") not in ("", "0") else ""
    return REPOSITORY / ".cache" / f"numba-{digest.hexdigest()[:16]}{checked}"


# Before anything imports Numba.
os.environ["NUMBA_CACHE_DIR"] = str(_kernel_cache())

import numpy as np  # noqa: E402
import pytest  # noqa: E402
from hypothesis import HealthCheck, settings  # noqa: E402

from reference.browser import Browser  # noqa: E402

settings.register_profile(
    "neardup",
    derandomize=True,
    deadline=None,
    max_examples=40,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("neardup")


@pytest.fixture(autouse=True)
def _silence_overflow_of_interpreted_kernels():
    """Without the compiler, NumPy warns where the arithmetic modulo 2^64 wraps around, as it should."""
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
def _records(name: str) -> list[dict]:
    """Return the records of a set, those of one cluster side by side, clusters in a fixed random order."""
    folder = SHARED_DATA / name
    files = sorted([*folder.glob("*.gz"), *folder.glob("*.zst")]) or [TESTS / "data" / f"{name}.jsonl.gz"]
    records = [json.loads(line) for file in files for line in _read_lines(file)]
    clusters: dict[str, list[dict]] = {}
    for record in records:
        clusters.setdefault(str(record["cluster"]) if record["cluster"] else record["id"], []).append(record)
    names = sorted(clusters)
    random.Random(name).shuffle(names)
    return [record for cluster in names for record in clusters[cluster]]


def _texts(name: str, max_bytes: int) -> list[str]:
    """Return texts of a set up to about so many bytes, mixed, so that the members of a cluster stand apart."""
    texts, size = [], 0
    for record in _records(name):
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
def real_texts():
    """Return a function (set, max_bytes) -> texts: from ../shared/data when it is there, else from tests/data."""
    return _texts


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """Return a browser for the pages that are written; skip the test where there is none."""
    found = filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome")))
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
