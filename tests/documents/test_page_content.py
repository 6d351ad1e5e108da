"""Threads that want the main content of pages at once get the texts that one gets, from processes
of their own.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest

from neardup.documents import page_content
from neardup.documents.child_process import ChildProcess
from neardup.documents.page_content import PageParts, contents_of
from neardup.documents.page_text import texts_of_pages
from reference.warc_files import info, page

SENTENCE = (
    "The river &amp; the lake rose by {} metres in the night, and the bridge in the old town was "
    "closed. "
)
PAGES = [
    f"<title>{n}</title><nav><a href=/>Home</a></nav><article><h1>Flood "
    f"{n}</h1><p>{SENTENCE.format(n) * 6}</p></article><footer>Imprint</footer>"
    for n in range(60)
] + [
    "",
    "no element",
    "<p>&#xD800; &lt;b&gt;",
    "<div>" * 400 + "deep",
    f"<p>{'龍' * 700}</p><footer>x</footer>",
]
BATCHES = [pa.array(PAGES[n::9]) for n in range(9)]


@pytest.fixture
def started(monkeypatch):
    """Let every call be one of several at once; yield the processes that are started."""
    processes = []

    class Popen(subprocess.Popen):
        def __init__(self, *args, **options):
            super().__init__(*args, **options)
            processes.append(self)

    monkeypatch.setattr(subprocess, "Popen", Popen)
    monkeypatch.setattr(page_content, "_callers", [None])
    return processes


def main_texts(batch: pa.Array) -> list[str]:
    return texts_of_pages(batch, main=True).to_pylist()


def in_a_thread(work):
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(work).result()


def test_a_caller_that_is_alone_starts_no_process(started, monkeypatch):
    monkeypatch.setattr(page_content, "_callers", [])
    assert main_texts(BATCHES[0])
    assert not started


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_processes_find_the_same_texts_and_end_with_their_threads(started, monkeypatch, threads):
    with ThreadPoolExecutor(threads) as pool:
        found = list(pool.map(main_texts, BATCHES))
        assert 1 <= len(started) <= threads
    assert [process.returncode is not None for process in started] == [True] * len(started)
    monkeypatch.setattr(page_content, "_callers", [])
    assert found == [main_texts(batch) for batch in BATCHES]


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize("stopped", [False, True])
def test_a_process_that_is_killed_loses_no_page(started, stopped):
    with ThreadPoolExecutor(1) as pool:
        expected = pool.submit(main_texts, BATCHES[0]).result()
        (process,) = started
        if stopped:  # it does not answer, so that it is killed while it is asked
            process.send_signal(signal.SIGSTOP)
        else:
            process.kill()
            process.wait()
        answer = pool.submit(main_texts, BATCHES[0])
        process.kill()
        assert answer.result() == expected
        assert pool.submit(main_texts, BATCHES[1]).result() == main_texts(BATCHES[1])
    assert len(started) == 2, (
        "the thread whose process was killed has no second one; this thread has one"
    )
    page_content._forget()


def test_an_error_of_the_extraction_reaches_the_caller(started):
    with pytest.raises(IndexError):
        in_a_thread(lambda: contents_of(PageParts(b"", b"", b"", b"", b"\1")))
    assert started[0].returncode is not None


def test_without_processes_the_thread_extracts(started, monkeypatch):
    expected = main_texts(BATCHES[0])
    page_content._forget()
    monkeypatch.setattr(sys, "executable", "/no/such/interpreter")
    assert in_a_thread(lambda: main_texts(BATCHES[0])) == expected


@pytest.mark.skipif(sys.platform == "win32", reason="sessions")
def test_a_process_ends_with_its_input_alone_and_is_not_interrupted_by_the_terminal(started):
    first = ChildProcess(page_content._CODE)
    second = ChildProcess(page_content._CODE)
    assert os.getsid(started[0].pid) != os.getsid(0)
    started[0].stdin.close()  # as the system does when this process is killed
    assert started[0].wait(timeout=60) == 0
    assert started[1].poll() is None
    del first, second
    assert started[1].returncode is not None


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_process_does_not_speak_to_the_processes_of_its_parent(started):
    expected = main_texts(BATCHES[0])
    forked = os.fork()
    if forked == 0:
        os._exit(0 if not page_content._local.__dict__ and main_texts(BATCHES[1]) else 1)
    assert os.waitpid(forked, 0)[1] == 0
    assert main_texts(BATCHES[0]) == expected
    assert len(started) == 1
    page_content._forget()


@pytest.mark.slow
def test_a_script_without_a_main_guard_reads_pages_on_several_threads(tmp_path):
    pages = [f"<article><p>{SENTENCE.format(n) * 400}</p></article>".encode() for n in range(400)]
    (tmp_path / "a.warc").write_bytes(
        info() + b"".join(page(html, f"http://a/{n}") for n, html in enumerate(pages))
    )
    (tmp_path / "run.py").write_text(
        "import neardup\n"
        "from neardup.documents import page_content\n"
        "ask, asked = page_content.ChildProcess.ask, []\n"
        "def counted(self, parts, **options):\n"
        "    asked.append(parts)\n"
        "    return ask(self, parts, **options)\n"
        "page_content.ChildProcess.ask = counted\n"
        "for threads in (1, 4):\n"
        "    neardup.dedup(['a.warc'], output=f'out{threads}', threads=threads, tables=False)\n"
        "    print(len(asked) > 0)\n"
    )
    run = subprocess.run(
        [sys.executable, "run.py"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (run.stdout.split(), run.stderr) == (["False", "True"], "")
    assert (tmp_path / "out1/removed.parquet").read_bytes() == (
        tmp_path / "out4/removed.parquet"
    ).read_bytes()
