"""The Scrapy item pipeline, in a real crawl of a local site."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace

import pytest

import neardup
from neardup import Index, MinHash
from neardup.errors import SettingError, StoreError
from neardup.integrations.scrapy import SeenBeforePipeline
from reference.service import RunningService

SOURCE = Path(neardup.__file__).parent.parent
FOX = "the quick brown fox jumps over the lazy dog near the river bank"
PAGES = {
    "a.html": f"<p>{FOX}</p>",
    "b.html": f"<p>{FOX}, again</p>",
    "c.html": "<p>an entirely different sentence about databases and their journals</p>",
}
SPIDER = """
import sys, scrapy
from scrapy.crawler import CrawlerProcess

class Pages(scrapy.Spider):
    name = "pages"
    start_urls = sys.argv[1].split(",")
    def parse(self, response):
        yield {"url": response.url, "text": response.css("p::text").get(), "title": "t"}

settings = {
    "ITEM_PIPELINES": {"neardup.integrations.scrapy.SeenBeforePipeline": 300},
    "FEEDS": {"items.jsonl": {"format": "jsonlines", "overwrite": True}},
    "CONCURRENT_REQUESTS": 1, "LOG_LEVEL": "ERROR", "TELNETCONSOLE_ENABLED": False, "RETRY_ENABLED": False,
    "NEARDUP_PAYLOAD": ["title"],
}
settings |= dict(pair.split("=", 1) for pair in sys.argv[2:])
process = CrawlerProcess(settings)
crawler = process.create_crawler(Pages)
process.crawl(crawler)
process.start()
stats = crawler.stats.get_stats()
print({name: count for name, count in sorted(stats.items()) if name.startswith("neardup/")})
"""  # noqa: E501


@pytest.fixture
def site(tmp_path: Path) -> Iterator[str]:
    """Serve the pages, and return their address."""
    folder = tmp_path / "site"
    folder.mkdir()
    for name, page in PAGES.items():
        (folder / name).write_text(page)

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def index(tmp_path: Path) -> Path:
    Index.create(tmp_path / "pages.index", method=MinHash(threshold=0.6, ngram=2)).close()
    return tmp_path / "pages.index"


def crawl(site: str, folder: Path, *settings: str, spider: str = SPIDER) -> tuple[list[dict], str]:
    """Crawl the pages in order; return the items that passed, and the stats."""
    pytest.importorskip("scrapy")
    (folder / "spider.py").write_text(spider)
    urls = ",".join(f"{site}/{name}" for name in PAGES)
    done = subprocess.run(
        [sys.executable, "spider.py", urls, *settings],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": str(SOURCE)},
    )
    assert done.returncode == 0, done.stderr
    items = [json.loads(line) for line in (folder / "items.jsonl").read_text().splitlines()]
    return items, done.stdout.splitlines()[-1] + done.stderr


@pytest.mark.slow
def test_a_crawl_drops_what_was_seen_before_in_it_and_in_the_last_one(site, index, tmp_path):
    items, stats = crawl(site, tmp_path, f"NEARDUP_INDEX={index}")
    assert len(items) == 2
    assert "{'neardup/new': 2, 'neardup/seen': 1}" in stats
    items, stats = crawl(site, tmp_path, f"NEARDUP_INDEX={index}", "NEARDUP_ONLY_NEW=True")
    assert items == []
    assert "{'neardup/seen': 3}" in stats
    with Index.open(index, read_only=True) as opened:
        assert len(opened) == 2
        assert json.loads(opened.query(FOX)[0].payload) == {"title": "t"}


KILLER = """
import os, signal

class Killer:
    seen = 0
    def process_item(self, item, spider=None):
        Killer.seen += 1
        if Killer.seen == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        return item

settings["ITEM_PIPELINES"][Killer] = 400
"""


@pytest.mark.slow
def test_a_crawl_that_is_killed_before_its_items_are_exported_loses_none(site, index, tmp_path):
    urls = [f"{site}/{name}" for name in PAGES]
    (tmp_path / "killed.py").write_text(SPIDER.replace("settings |=", KILLER + "settings |="))
    killed = subprocess.run(
        [sys.executable, "killed.py", ",".join(urls), f"NEARDUP_INDEX={index}"],
        cwd=tmp_path,
        check=False,
        env=os.environ | {"PYTHONPATH": str(SOURCE)},
    )
    assert killed.returncode == -signal.SIGKILL
    items, stats = crawl(site, tmp_path, f"NEARDUP_INDEX={index}")
    with Index.open(index, read_only=True) as opened:
        assert len(opened) == 2
        assert all(opened.get(item["url"]).kept for item in items)
    assert len({item["url"] for item in items}) == len(items) == 2
    assert "{'neardup/new': 2, 'neardup/seen': 1}" in stats


@pytest.mark.slow
def test_an_item_that_comes_twice_in_a_crawl_passes_once(site, index, tmp_path):
    again = SPIDER.replace(
        "def parse(self, response):", "def parse(self, response):\n      for _ in range(2):"
    )
    assert again != SPIDER
    items, _ = crawl(site, tmp_path, f"NEARDUP_INDEX={index}", spider=again)
    assert len({item["url"] for item in items}) == len(items) == 2


@pytest.mark.slow
def test_a_crawl_tags_what_was_seen_before(site, index, tmp_path):
    items, _ = crawl(
        site, tmp_path, f"NEARDUP_INDEX={index}", "NEARDUP_ACTION=tag", "NEARDUP_TAG=near"
    )
    tags = [item["near"] for item in items if item["near"] is not None]
    assert len(items) == 3
    assert len(tags) == 1
    assert tags[0]["id"].startswith(site)
    assert tags[0]["similarity"] >= 0.6
    assert tags[0]["payload"] == {"title": "t"}


@pytest.mark.slow
def test_items_without_the_field_pass(site, index, tmp_path):
    items, stats = crawl(site, tmp_path, f"NEARDUP_INDEX={index}", "NEARDUP_FIELD=body")
    assert len(items) == 3
    assert "{'neardup/without_text': 3}" in stats


def crawler(**settings: object) -> SimpleNamespace:
    values = {
        "getlist": lambda name: settings.get(name, []),
        "getbool": lambda name: bool(settings.get(name)),
    }
    return SimpleNamespace(
        settings=SimpleNamespace(
            get=lambda name, default=None: settings.get(name, default), **values
        )
    )


def test_the_module_is_imported_without_scrapy():
    code = "import sys; import neardup.integrations.scrapy; assert 'twisted' not in sys.modules"
    subprocess.run(
        [sys.executable, "-c", code], check=True, env=os.environ | {"PYTHONPATH": str(SOURCE)}
    )


def test_wrong_settings_are_refused(tmp_path):
    with pytest.raises(SettingError, match="NEARDUP_INDEX must name an index"):
        SeenBeforePipeline.from_crawler(crawler())
    with pytest.raises(SettingError, match="NEARDUP_ACTION must be one of drop, tag: got 'keep'"):
        SeenBeforePipeline.from_crawler(crawler(NEARDUP_INDEX="a", NEARDUP_ACTION="keep"))
    with pytest.raises(StoreError, match="There is no index"):
        SeenBeforePipeline.from_crawler(
            crawler(NEARDUP_INDEX=str(tmp_path / "none.index"))
        ).open_spider()


@pytest.mark.slow
def test_a_crawl_uses_the_service(site, index, tmp_path):
    pytest.importorskip("uvicorn", reason="the extra serve is not installed")
    with RunningService(index) as running:
        items, stats = crawl(site, tmp_path, f"NEARDUP_INDEX={running.url}", "NEARDUP_ACTION=tag")
    assert [item["seen_before"] is None for item in items].count(True) == 2
    assert "{'neardup/new': 2, 'neardup/seen': 1}" in stats
