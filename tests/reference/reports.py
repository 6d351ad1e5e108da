"""Reports and removed documents for the tests of the page, hostile ones among them."""

from __future__ import annotations

import re
from typing import Any

from neardup.report.dedup_html import render_report
from neardup.report.items import Example, MarkedPair
from neardup.report.sections import notebook
from neardup.runs.locations import Place
from reference.page import Page

HOSTILE = (
    "<script>document.title='pwned'</script> </textarea></style></script> --> ]]> \" ' &amp; "
    "<img src=x onerror=\"document.title='pwned'\"> NUL\0 ESC\x1b[31m bidi \u202egnp.exe "
    "\r\n\ufeff\ud800 مرحبا 你好"
)


def report(**changes: Any) -> dict[str, Any]:
    """Return a report as report.json holds it."""
    counts = {
        "read": 84_426,
        "kept": 53_120,
        "removed": 31_306,
        "removed_exact": 8_201,
        "removed_near": 23_105,
        "rejected": 12,
        "without_features": 37,
        "against": 1_200,
        "compared": 412_903,
        "confirmed": 96_214,
    }
    source = {
        "name": "part-0.parquet",
        "format": "parquet",
        "documents": 84_426,
        "rejected": 12,
        "role": "source",
    }
    return {
        "version": "0.1.0",
        "command": "dedup",
        "scheme": {"name": "minhash", "version": 1, "seed": 1, "tokens": "words", "ngram": 5},
        "settings": {
            "threshold": 0.8,
            "recall": 0.99,
            "similarity": "jaccard",
            "keep": "first",
            "nfkc": True,
        },
        "inputs": [
            source,
            {**source, "name": "held-out.jsonl", "documents": 1_200, "role": "against"},
        ],
        "counts": counts,
        "bands": {"num_bands": 20, "rows_per_band": 9},
        "recall": {"estimated": 0.9968, "low": 0.9951, "high": 0.9992},
        "recall_sample": {
            "documents": 1_001,
            "pairs": 318,
            "found": 316,
            "recall": 0.9937,
            "low": 0.977,
            "high": 0.9989,
        },
        "bound": {"max_bucket_size": 1_002, "documents": 4_120},
        "similarities": {"edges": [0.8, 0.9, 1.0], "counts": [10_001, 13_104]},
        "cluster_sizes": [[2, 12_030], [3, 2_400], [5, 7], [8, 1], [513, 1]],
        "timings": [
            {"stage": "read and sign", "seconds": 1.72},
            {"stage": "confirm", "seconds": 0.71},
        ],
        "seconds": 3.1,
        "bytes": 520_000_000,
        "megabytes_per_second": 167.7,
        "documents_per_second": 27_234.2,
        "peak_memory_bytes": 412_000_000,
        "warnings": ["12 documents could not be read; see rejected.jsonl."],
        **changes,
    }


def simhash_report(**changes: Any) -> dict[str, Any]:
    """Return the report of a run by Hamming distance."""
    plain = report()
    return {
        **plain,
        "scheme": {
            "name": "simhash",
            "version": 1,
            "tokens": "words",
            "ngram": 1,
            "bits": 64,
            "scheme": "native",
            "hash": "native",
            "weights": "tf",
            "max_features": 0,
            "weight_levels": False,
        },
        "settings": {
            "max_distance": 3,
            "confirm": "hamming",
            "threshold": 0.5,
            "keep": "first",
            "linkage": "sieve",
        },
        "counts": {**plain["counts"], "confirmed_exact": 8_201, "collisions": 0},
        "bands": None,
        "samples": None,
        "fingerprints": {
            "max_distance": 3,
            "distinct": 75_313,
            "near_pairs": 40_007,
            "collisions": 0,
            "short": 1_004,
        },
        "recall": None,
        "recall_sample": None,
        "bound": {"max_bucket_size": 1_002, "documents": 0},
        "similarities": None,
        "distances": [9_001, 6_002, 5_003, 3_099],
        **changes,
    }


def example(**changes: Any) -> Example:
    """Return a near-duplicate whose last word differs."""
    removed = {"id": "b", "file": "in.jsonl", "row": 7}
    kept = {"kept_id": "a", "kept_file": "in.jsonl", "kept_row": 3}
    pair = {
        "text": "one two three",
        "kept_text": "one two four",
        "passages": [(0, 8, True), (8, 13, False)],
        "kept_passages": [(0, 8, True), (8, 12, False)],
        "truncated": False,
    }
    for part in (removed, kept, pair):
        part |= {name: changes.pop(name) for name in list(changes) if name in part}
    changes = {"similarity": 0.85, "exact": False} | changes
    return Example(
        Place(*removed.values()), Place(*kept.values()), MarkedPair(*pair.values()), **changes
    )


def hostile(number: int = 0) -> Example:
    """Return an example whose every string attacks the page."""
    return example(
        id=f"{number}\"'>{HOSTILE}",
        file=HOSTILE,
        text=HOSTILE,
        kept_id=HOSTILE,
        kept_text=HOSTILE + "!",
    )


def assert_nothing_becomes_markup(record: dict[str, Any], example: Example) -> None:
    """Assert that the page and the notebook fragment show hostile values of a report and an example
    as text.
    """
    html = render_report(record, [example])
    page = Page(html)
    assert [page.count(tag) for tag in ("script", "style", "img", "textarea")] == [1, 1, 0, 0]
    assert page.texts["body"][0].count("onerror=\"document.title='pwned'\">") >= 9
    fragment = Page(notebook(record))
    assert [fragment.count(tag) for tag in ("script", "style", "img")] == [0, 0, 0]
    for written in (html, notebook(record)):
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202e\ufeff\ud800]", written)
        written.encode()
