"""The page of `neardup cluster`: complete, escaped, without script; in a real browser where there
is one.
"""

from __future__ import annotations

import base64
import re
from pathlib import Path
from typing import Any

import pytest

from neardup.report.clusters_html import render_clusters
from neardup.report.rows import headline
from neardup.report.sections import notebook
from reference.browser import Browser
from reference.page import Page
from reference.reports import HOSTILE, report, simhash_report


def groups_report(**changes: Any) -> dict[str, Any]:
    """Return the report of `neardup cluster`."""
    counts = {
        "read": 84_426,
        "clusters": 14_439,
        "clustered": 31_307,
        "single": 53_119,
        "largest": 513,
        "rejected": 12,
        "without_features": 37,
        "compared": 412_903,
        "confirmed": 96_214,
    }
    return report(
        **{"command": "cluster", "counts": counts, "largest_clusters": rows(3), **changes}
    )


def rows(count: int, **changes: Any) -> list[dict[str, Any]]:
    """Return rows of clusters, the largest first."""
    return [
        {
            "cluster": number,
            "size": 2_000 - number,
            "name": f"body > div#n{number}",
            "first_id": f"first-{number}",
            "example_ids": [f"other-{number}-{i}" for i in range(2)],
            "places": [["in.jsonl", 7 + number], ["in.jsonl", 500], ["more.jsonl", 501]],
            **changes,
        }
        for number in range(count)
    ]


def test_every_count_and_every_group_is_on_the_page() -> None:
    body = Page(render_clusters(groups_report(), rows(60))).texts["body"][0]
    for count in groups_report()["counts"].values():
        assert f"{count:,}" in body
    for said in (
        "body > div#n59",
        "first-59",
        "other-59-1",
        "1,941",
        "Shown: 60 of 14,439 clusters",
        "35 smaller clusters",
    ):
        assert said in body


@pytest.mark.parametrize(
    ("counts", "sentence"),
    [
        ({"read": 0}, "No documents read"),
        (
            {"read": 1, "clusters": 0, "clustered": 0, "single": 1},
            "1 document read, no two similar",
        ),
        (
            {"read": 3, "clusters": 1, "clustered": 2, "single": 1},
            "3 documents read, 1 cluster (2 in clusters, 1 single)",
        ),
    ],
)
def test_the_headline_says_the_result_in_plain_words(counts: dict[str, int], sentence: str) -> None:
    assert headline({"command": "cluster", "counts": counts}) == sentence
    assert Page(render_clusters(report(command="cluster", counts=counts), [])).texts["h1"] == [
        sentence
    ]


@pytest.mark.parametrize("absent", sorted(groups_report()))
def test_any_part_of_the_report_may_be_absent_or_null(absent: str) -> None:
    partial = {key: value for key, value in groups_report().items() if key != absent}
    for given in (partial, partial | {absent: None}):
        Page(render_clusters(given, rows(2)))
        Page(notebook(given))


@pytest.mark.parametrize("settings", [{"linkage": "connected", "threshold": 0.8}, {}])
@pytest.mark.parametrize("given", [groups_report, simhash_report])
def test_the_page_says_what_joins_a_group(given: Any, settings: dict[str, Any]) -> None:
    record = given()
    meaning = Page(render_clusters(record | {"settings": record["settings"] | settings}, [])).texts[
        "dd"
    ][0]
    assert ("chains of links" in meaning) == bool(settings)
    assert "removed" not in meaning


def test_hostile_names_and_ids_are_shown_and_never_become_markup() -> None:
    evil = rows(
        2,
        name=HOSTILE,
        first_id=HOSTILE,
        example_ids=[HOSTILE],
        places=[[HOSTILE, 0], [HOSTILE, 1]],
    )
    html = render_clusters(groups_report(), evil)
    page = Page(html)
    assert [page.count(tag) for tag in ("script", "style", "img", "textarea")] == [0, 1, 0, 0]
    assert page.texts["body"][0].count("onerror=\"document.title='pwned'\">") >= 2
    fragment = notebook(groups_report() | {"largest_clusters": evil})
    assert [Page(fragment).count(tag) for tag in ("script", "style", "img")] == [0, 0, 0]
    for written in (html, fragment):
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202e\ufeff\ud800]", written)


def test_the_policy_allows_no_script() -> None:
    page = Page(render_clusters(groups_report(), rows(2)))
    (policy,) = (
        a["content"] for _, a in page.elements if a.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy is not None
    assert "script-src 'none'" in policy
    assert not [
        name
        for _, a in page.elements
        for name in a
        if name.startswith("on") or name in {"style", "src"}
    ]


def test_a_group_without_a_name_is_known_by_its_first_document() -> None:
    assert (
        "first-0"
        in Page(notebook(groups_report(largest_clusters=rows(1, name=None)))).texts["li"][0]
    )


@pytest.mark.slow
def test_the_browser_shows_the_groups_on_a_desk_and_on_a_phone(
    browser: Browser, tmp_path: Path
) -> None:
    path = tmp_path / "report.html"
    evil = rows(40)
    evil[1] |= {
        "name": HOSTILE,
        "first_id": HOSTILE * 5,
        "example_ids": [HOSTILE],
        "places": [[HOSTILE, 0], [HOSTILE, 1]],
    }
    path.write_text(render_clusters(groups_report(), evil), encoding="utf-8")
    for width in (390, 1280):
        browser.show(path, "#clusters", width=width)
        browser.run("document.querySelectorAll('details').forEach((e) => { e.open = true; })")
        assert browser.run("document.documentElement.scrollWidth") <= width
        assert browser.run("document.querySelectorAll('#clusters tbody tr').length") == 40
        assert browser.run("document.title").startswith("84,426 documents read")
        bars = (
            "[...document.querySelectorAll('#clusters rect')].slice(0, 2).map((e) => "
            "e.getBoundingClientRect().width)"
        )
        first, second = browser.run(bars)
        assert first > second > 0
        assert base64.b64decode(
            browser.call("Page.captureScreenshot", format="png")["data"]
        ).startswith(b"\x89PNG")
    assert browser.errors == []
