"""tools/make_kinds.py writes labelled collections that `evaluate` reads; the same sources give the
same files.
"""

from __future__ import annotations

import gzip
import json
import runpy
import sys
import zipfile
from pathlib import Path

import pytest

import neardup

TOOL = Path(__file__).resolve().parent.parent / "tools" / "make_kinds.py"
SENTENCES = " ".join(f"This is the sentence number {i} of a long manual page." for i in range(8))


@pytest.fixture
def sources(tmp_path: Path) -> list[str]:
    """Return the arguments of two releases of each source."""
    for release in ("1", "2"):
        man = tmp_path / f"man{release}" / "man1"
        lib = tmp_path / f"lib{release}"
        man.mkdir(parents=True)
        lib.mkdir()
        for page in range(30):
            own = " ".join(f"Sentence {number} of the page {page}." for number in range(9))
            text = (
                f'.TH "p{page}" 1 "{release}"\n.SH NAME\n\\fBp{page}\\fR \\- {SENTENCES}\n\n{own}\n'
            )
            (man / f"p{page}.1.gz").write_bytes(gzip.compress(text.encode()))
        (lib / "module.py").write_text(f'"""{SENTENCES}\n\n{release}"""\n')
        (lib / "broken.py").write_text("def (")
        with zipfile.ZipFile(tmp_path / f"some_name-{release}-py3-none-any.whl", "w") as wheel:
            wheel.writestr(
                f"some_name-{release}.dist-info/METADATA",
                f"Name: Some.Name\n\n{SENTENCES} {release}\n",
            )
    (tmp_path / "doc" / "package").mkdir(parents=True)
    lines = "\n".join(f"package ({version}) {SENTENCES}" for version in range(40, 0, -1))
    (tmp_path / "doc" / "package" / "changelog.gz").write_bytes(gzip.compress(lines.encode()))
    packages = "\n\n".join(
        f"Package: {name}\nVersion: {version}\nSHA256: 0{version}\nDescription: {SENTENCES}"
        for name in ("some-name", "other")
        for version in (1, 2)
    )
    (tmp_path / "Packages").write_text(packages)
    folders = {
        "apt": ("Packages",),
        "man": ("man1", "man2"),
        "python": ("lib1", "lib2"),
        "wheels": (".",),
        "doc": ("doc",),
    }
    return [
        word
        for name, paths in folders.items()
        for word in (f"--{name}", *(str(tmp_path / each) for each in paths))
    ]


def make(
    folder: Path, arguments: list[str], monkeypatch: pytest.MonkeyPatch
) -> dict[str, list[dict[str, str]]]:
    """Run the tool; return the documents of each kind."""
    monkeypatch.syspath_prepend(str(TOOL.parent))
    monkeypatch.setattr(sys, "argv", ["make_kinds.py", str(folder), *arguments])
    runpy.run_path(str(TOOL), run_name="__main__")
    return {
        path.stem: [json.loads(line) for line in path.read_text().splitlines()]
        for path in folder.glob("*.jsonl")
    }


@pytest.mark.slow
def test_releases_share_a_label_and_every_kind_can_be_evaluated(
    sources, tmp_path, monkeypatch
) -> None:
    kinds = make(tmp_path / "kinds", sources, monkeypatch)
    assert sorted(kinds) == [
        "adverts",
        "changelogs",
        "contracts",
        "docstrings",
        "editions",
        "forms",
        "letters",
        "manuals",
        "minutes",
        "notices",
        "products",
        "readmes",
        "records",
        "reports",
        "revisions",
        "subtitles",
        "threads",
        "verses",
    ]
    assert {row["cluster"] for row in kinds["records"]} == {"some-name", "other"}
    assert [row["cluster"] for row in kinds["readmes"]] == ["some-name"] * 2
    assert [row["cluster"] for row in kinds["docstrings"]] == ["module.py"] * 2
    assert len({row["cluster"] for row in kinds["changelogs"]}) == 1
    pages = [row for row in kinds["manuals"] if row["cluster"] == "p7.1"]
    assert len(pages) == 2
    assert pages[0]["text"].startswith('"p7" 1 "1"\nNAME\np7 - This is')
    for name, rows in kinds.items():
        assert len({row["id"] for row in rows}) == len(rows), name
        assert neardup.evaluate(tmp_path / "kinds" / f"{name}.jsonl").report["counts"][
            "read"
        ] == len(rows)
    assert make(tmp_path / "again", sources, monkeypatch) == kinds


def test_a_reply_quotes_its_message_under_another_label(sources, tmp_path, monkeypatch) -> None:
    rows = make(tmp_path / "kinds", sources, monkeypatch)["threads"]
    replies = [row for row in rows if "Re: " in row["text"]]
    assert replies
    assert all("\n> " in row["text"] and not row["cluster"].endswith("-0") for row in replies)


def test_few_documents_are_whole_clusters(sources, tmp_path, monkeypatch) -> None:
    rows = make(tmp_path / "kinds", [*sources, "--most", "21"], monkeypatch)["manuals"]
    assert len(rows) == 20
    assert len({row["cluster"] for row in rows}) == 10
