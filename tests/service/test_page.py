"""The page of the service in a real browser: paste, hit, difference; hostile documents stay
text.
"""

from __future__ import annotations

import json
import re

import pytest

import neardup
from neardup.client import Client
from reference.browser import Browser
from reference.service import METHOD, RunningService

pytestmark = pytest.mark.slow

pytest.importorskip("uvicorn", reason="the extra serve is not installed")
NEWS = (
    "The harbour authority said on Tuesday that the old lighthouse at the northern mole will be "
    "taken out of service next spring, after one hundred and twelve years of operation. A new "
    "automatic beacon is to take over."
)
HOSTILE = (
    "<img src=x onerror=document.title='taken'> \u202eevil <script>document.title='taken'</script>"
)


@pytest.fixture(scope="module", autouse=True)
def news(service: RunningService) -> None:
    with Client(service.url) as client:
        client.add([{"id": "news/1", "text": NEWS, "payload": "https://example.org/1"}])
        client.add([{"id": f"news/2 {HOSTILE}", "text": f"{NEWS} {HOSTILE}", "payload": HOSTILE}])


def show(
    browser: Browser, service: RunningService, width: int = 1280, scheme: str = "light"
) -> None:
    """Open the page, and wait until it shows the index."""
    browser.resize(width, scheme)
    browser.go(f"{service.url}/")
    browser.wait("!document.getElementById('index').hidden")


def paste(browser: Browser, text: str) -> None:
    """Put a text in the field as a user would, and press Ctrl+Enter."""
    browser.run("document.getElementById('text').select()")
    browser.call("Input.insertText", text=text)
    browser.call(
        "Input.dispatchKeyEvent", type="keyDown", key="Enter", windowsVirtualKeyCode=13, modifiers=2
    )
    browser.wait("/^(Yes|No)/.test(document.getElementById('status').textContent)")


def test_a_pasted_text_finds_its_near_duplicate_and_the_difference_is_marked(browser, service):
    show(browser, service)
    assert browser.run("document.activeElement.id") == "text"
    paste(browser, NEWS.replace("Tuesday", "Wednesday"))
    assert browser.run("document.getElementById('status').textContent").startswith(
        "Yes: 2 near-duplicates in "
    )
    browser.wait("document.querySelectorAll('#hits .texts').length === 1")
    assert browser.run("document.querySelector('#hits .id').textContent") == "news/1"
    assert browser.run(
        "[...document.querySelectorAll('#hits del')].map(e => e.textContent.trim())"
    ) == ["Wednesday"]
    assert browser.run(
        "[...document.querySelectorAll('#hits ins')].map(e => e.textContent.trim())"
    ) == ["Tuesday"]
    distance = int(browser.run("document.querySelector('#hits .kind').textContent").split()[0])
    assert browser.run("document.querySelectorAll('.left .bits rect').length") == 64
    for side in ("left", "right"):
        assert (
            browser.run(f"document.querySelectorAll('.{side} .bits .differs').length") == distance
        )
    assert not browser.errors


def test_a_text_without_near_duplicate_is_answered_with_no(browser, service):
    show(browser, service)
    paste(browser, "an entirely different text about a garden with apple trees and a small pond")
    assert browser.run("document.getElementById('status').textContent").startswith("No: ")
    assert browser.run("document.getElementById('found').hidden")


def test_a_hostile_document_stays_text(browser, service):
    show(browser, service)
    paste(browser, f"{NEWS} {HOSTILE}")
    browser.run("document.querySelectorAll('#hits details').forEach((e) => { e.open = true; })")
    browser.wait("document.querySelectorAll('#hits .texts').length === 2")
    assert browser.run("document.title") == "Have we seen this? – neardup"
    assert browser.run("document.querySelectorAll('#hits img, #hits script').length") == 0
    shown = browser.run("document.getElementById('hits').textContent")
    assert "onerror=document.title='taken'" in shown
    assert "\u202e" not in shown
    assert "[U+202E]" in shown
    assert not browser.errors


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_on_a_phone_nothing_is_wider_than_the_screen(browser, service, scheme):
    show(browser, service, 360, scheme)
    paste(browser, f"{NEWS} {HOSTILE} {'x' * 300}")
    browser.wait("document.querySelectorAll('#hits .texts').length === 1")
    assert browser.run("document.documentElement.scrollWidth") == 360


def test_a_dropped_page_is_decoded_by_the_charset_it_names(browser, service):
    show(browser, service)
    content = f"<meta charset='windows-1252'><p>caf\u00e9 {NEWS}".encode("cp1252")
    browser.run(f"""(() => {{
      const data = new DataTransfer();
      data.items.add(new File([new Uint8Array({json.dumps(list(content))})], "page.html"));
      document.getElementById("lookup").dispatchEvent(new DragEvent("drop", {{ dataTransfer: data, bubbles: true }}));
    }})()""")  # noqa: E501
    browser.wait("/^(Yes|No)/.test(document.getElementById('status').textContent)")
    assert "café" in browser.run("document.getElementById('text').value")


@pytest.mark.slow
def test_the_growth_of_the_index_is_drawn(browser, service):
    show(browser, service)
    label = browser.run("document.querySelector('#growth svg').getAttribute('aria-label')")
    assert re.match(r"The index has grown to [\d,]+ documents since ", label)
    assert (
        browser.run("document.querySelector('#numbers td').textContent").replace(",", "").isdigit()
    )


@pytest.mark.slow
def test_without_stored_texts_the_fingerprints_are_still_shown(browser, tmp_path):
    with neardup.Index.create(tmp_path / "an.index", method=METHOD) as index:
        index.add(NEWS, id="news/1")
    with RunningService(tmp_path / "an.index") as running:
        show(browser, running)
        paste(browser, NEWS.replace("Tuesday", "Wednesday"))
        browser.wait("document.querySelectorAll('#hits .texts').length === 1")
        assert "--storage text" in browser.run("document.getElementById('hits').textContent")
        distance = int(browser.run("document.querySelector('#hits .kind').textContent").split()[0])
        assert browser.run("document.querySelectorAll('.right .bits .differs').length") == distance
        assert not browser.errors


@pytest.mark.slow
def test_a_token_is_asked_for_and_not_stored(browser, tmp_path):
    neardup.Index.create(tmp_path / "an.index").close()
    (tmp_path / "tokens").write_text("read a-token-that-may-read\n")
    with RunningService(tmp_path / "an.index", "--token-file", str(tmp_path / "tokens")) as running:
        browser.resize(1280, "light")
        browser.go(f"{running.url}/")
        browser.wait("!document.getElementById('token-form').hidden")
        browser.call("Input.insertText", text="a-token-that-may-read")
        browser.press("Enter")
        browser.wait("!document.getElementById('index').hidden")
        assert browser.run("document.getElementById('token').value") == ""
        assert (
            browser.run("localStorage.length + sessionStorage.length + document.cookie.length") == 0
        )
        with Client(running.url, token="a-token-that-may-read") as client:
            assert client.stats()["index"]["documents"]["kept"] == 0
