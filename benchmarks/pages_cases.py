"""The cases of run_pages.py as data: which tools do which job, and with which settings."""

from __future__ import annotations

from simhash_cases import Case

PAIRS = 60
PARSED = 200


def runs() -> list[Case]:
    """Return the whole runs of neardup on a crawl. arguments : what follows the file and the
    output.
    """
    return [
        _run("sign", "--method tags", 2),
        _run("sign", "--method tags", 1),
        _run("sign", "--method decay", 2),
        _run("sign", "--method paths", 2),
        _run("dedup", "--method structure", 2),
        _run("dedup", "--method structure", 1),
        _run("dedup", "--method content", 2),
    ]


def _run(command: str, arguments: str, threads: int) -> Case:
    options = {"command": command, "arguments": arguments.split()}
    return Case("neardup", "neardup_pages", f"{command} {arguments}", threads, options)


PARTS = Case("neardup", "neardup_pages", "parts of fingerprint", 1)


def pairs() -> list[Case]:
    """Return who compares pairs of pages."""
    calls = ("similarity", "structural_similarity", "style_similarity")
    return [
        Case("neardup", "neardup_pages", "compare(left, right, method=structure())", 1),
        *(
            Case("html-similarity", "html_similarity", f"{call}(left, right)", 1, {"call": call})
            for call in calls
        ),
    ]


def parsers() -> list[Case]:
    """Return who parses pages and does no more."""
    return [
        Case("neardup", "neardup_pages", "tags and elements of a page", 1),
        Case("lxml", "lxml", "html.document_fromstring", 1),
        Case("selectolax", "selectolax", "LexborHTMLParser", 1),
    ]
