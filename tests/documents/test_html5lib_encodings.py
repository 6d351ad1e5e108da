"""The encodings of pages are those of html5lib's suite, where it is beside the repository.

The suite is html5lib/html5lib-tests (MIT), the folder `encoding`, in `../shared/data/suites`.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest

from neardup.documents.page_charset import decode_page

SUITE = Path(__file__).parents[3] / "shared/data/suites/html5lib-encoding/encoding"
CASE = re.compile(rb"(?:^|\n)#data\n(.*?)\n#encoding\n([^\n]+)", re.DOTALL)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not SUITE.is_dir(), reason="html5lib's suite is not beside the repository"),
]


class Case(NamedTuple):
    """A page, and the name of its encoding."""

    page: bytes
    encoding: str


def cases() -> dict[str, Case]:
    """Return the cases of all files, by file and number."""
    found = {}
    for path in sorted(SUITE.rglob("*.dat")):
        for number, (page, name) in enumerate(CASE.findall(path.read_bytes())):
            found[f"{path.relative_to(SUITE)}-{number}"] = Case(page, name.decode().lower())
    return found


CASES = cases()


def deviation(case: Case) -> str | None:
    """Return the reason why a page has another encoding here, None if it has not."""
    charset = decode_page(case.page).charset
    if charset == case.encoding:
        return None
    if (case.encoding, charset) == ("windows-1252", "utf-8") and case.page.isascii():
        return "a page of ASCII that declares nothing: its text is the same in both"
    if b"document.write" in case.page:
        return "scripts are not run"
    return f"unknown: {charset} for {case.encoding}"


def test_pages_have_the_encodings_of_the_suite_except_where_it_makes_no_difference() -> None:
    assert Counter(map(deviation, CASES.values())) == {
        None: 50,
        "a page of ASCII that declares nothing: its text is the same in both": 32,
        "scripts are not run": 1,
    }
