"""The report in a real browser: nothing hostile runs, and the list can be searched, sorted and
walked.
"""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from neardup.report.dedup_html import render_report
from reference.browser import Browser
from reference.reports import example, hostile, report

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "report.html"
    examples = [
        example(id="first", similarity=0.85),
        example(id="second", similarity=0.95, text="a Zebra ﬁnds water"),
        example(id="third", similarity=1.0, exact=True, kept_text="one two three"),
        hostile(4),
    ]
    path.write_text(render_report(report(), examples), encoding="utf-8")
    return path


def test_the_browser_shows_hostile_text_and_runs_none_of_it(browser: Browser, page: Path) -> None:
    browser.show(page, "#removed-4")
    assert browser.run("document.title").startswith("84,426 documents read")
    shown = browser.run("document.querySelector('#removed-4 .text').innerText")
    assert "<script>document.title='pwned'</script> </textarea></style></script> --> ]]>" in shown
    assert browser.run("document.images.length + document.scripts.length") == 1
    assert browser.errors == []


@pytest.mark.parametrize(
    ("scheme", "paper"), [("light", "rgb(255, 255, 255)"), ("dark", "rgb(18, 23, 29)")]
)
def test_the_page_is_styled_for_light_and_dark_and_fits_a_phone(
    browser: Browser, page: Path, scheme: str, paper: str
) -> None:
    for width in (390, 1280):
        browser.show(page, width=width, scheme=scheme)
        browser.run("document.querySelectorAll('details').forEach((e) => { e.open = true; })")
        assert browser.run("getComputedStyle(document.body).backgroundColor") == paper
        assert browser.run("document.documentElement.scrollWidth") <= width
        image = base64.b64decode(browser.call("Page.captureScreenshot", format="png")["data"])
        assert image.startswith(b"\x89PNG")
        assert len(image) > 15_000
    assert browser.errors == []


def test_typing_finds_text_in_closed_items_whatever_its_case_and_form(
    browser: Browser, page: Path
) -> None:
    browser.show(page)
    browser.press("/")
    assert browser.run("document.activeElement.name") == "q"
    browser.call("Input.insertText", text="zebra finds")
    browser.wait("document.querySelector('output').value === '1 of 4 shown'")
    assert browser.listed() == ["removed-2"]
    assert browser.run("location.hash") == "#q=zebra+finds"


def test_kinds_are_filtered_and_similarity_sorted(browser: Browser, page: Path) -> None:
    browser.show(page)
    browser.run("document.querySelector('[value=near]').click()")
    browser.wait("document.querySelector('output').value === '3 of 4 shown'")
    browser.run(
        "const s = document.querySelector('select'); s.value = 'high';s.dispatchEvent(new "
        "Event('input', { bubbles: true }))"
    )
    browser.wait("location.hash === '#kind=near&sort=high'")
    assert browser.listed() == ["removed-2", "removed-1", "removed-4"]


def test_the_fragment_restores_a_view_and_opens_an_item(browser: Browser, page: Path) -> None:
    browser.show(page, "#q=one%20two&kind=exact&sort=low")
    assert browser.listed() == ["removed-3"]
    browser.show(page, "#q=nowhere&kind=nonsense&sort=toString")
    assert browser.listed() == []
    assert browser.run("document.querySelector('output').value").startswith("None of 4 fits")
    browser.show(page, "#removed-2")
    assert browser.run(
        "[...document.querySelectorAll('#removed-list details')].map(e => e.open)"
    ) == [
        False,
        True,
        False,
        False,
    ]
    assert browser.errors == []


def test_the_list_is_walked_and_opened_with_the_keyboard(browser: Browser, page: Path) -> None:
    browser.show(page)
    browser.press("/")
    for key in ("ArrowDown", "ArrowDown", "ArrowDown", "ArrowUp", "Enter"):
        browser.press(key)
    assert browser.run("document.activeElement.closest('li').id") == "removed-2"
    assert browser.run("document.querySelector('#removed-2 details').open")


def test_everything_is_there_without_javascript(browser: Browser, page: Path) -> None:
    browser.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.show(page)
        assert len(browser.listed()) == 4
        assert browser.run("document.querySelector('form')") is None
    finally:
        browser.call("Emulation.setScriptExecutionDisabled", value=False)
