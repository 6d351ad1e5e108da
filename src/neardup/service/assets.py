"""The page and its files, served under names with their digests."""

from __future__ import annotations

import hashlib
from importlib.resources import files
from typing import NamedTuple

_FILES = (
    ("neardup.report", "report.css", "text/css; charset=utf-8"),
    ("neardup.service", "page.css", "text/css; charset=utf-8"),
    ("neardup.service", "page.js", "text/javascript; charset=utf-8"),
)


class Asset(NamedTuple):
    """A file of the page."""

    content: bytes
    media_type: str


class Assets:
    """The page, and the files that it needs, by path.

    A path has a digest of its file, so a browser may keep it for ever: another version has another path.
    """

    def __init__(self) -> None:
        page = files("neardup.service").joinpath("page.html").read_text(encoding="utf-8")
        self.files: dict[str, Asset] = {}
        for package, name, media_type in _FILES:
            content = files(package).joinpath(name).read_bytes()
            stem, _, suffix = name.rpartition(".")
            path = f"/static/{stem}.{hashlib.sha256(content).hexdigest()[:16]}.{suffix}"
            self.files[path] = Asset(content, media_type)
            page = page.replace(f"/static/{name}", path)
        self.page = Asset(page.encode(), "text/html; charset=utf-8")
        self.tag = f'"{hashlib.sha256(self.page.content).hexdigest()[:16]}"'
