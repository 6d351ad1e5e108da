"""Addresses of indexes on servers: the server, and the name of an index there."""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import SplitResult, parse_qsl, quote, urlencode, urlsplit

from neardup.errors import StoreError

DEFAULT_INDEX = "index"
_NAME = re.compile(r"[A-Za-z0-9_-]{1,48}")


class ServerAddress(NamedTuple):
    """server : the URL of the server, for its client. name : of the index. shown : for messages, without passwords."""

    server: str
    name: str
    shown: str


def parse_server_address(address: str) -> ServerAddress:
    """Split an address such as postgresql://user@host/database?index=news.

    Raises
    ------
    StoreError
        If the name of the index is not made of 1 to 48 letters, digits, underscores and hyphens.
    """
    parts = urlsplit(address)
    options = parse_qsl(parts.query, keep_blank_values=True)
    index = next((value for option, value in reversed(options) if option == "index"), DEFAULT_INDEX)
    user, _, place = parts.netloc.rpartition("@")
    public = f"{user.partition(':')[0]}@{place}" if user else place
    shown = _url(parts, public, [(option, "..." if "password" in option else value) for option, value in options])
    if not _NAME.fullmatch(index):
        raise StoreError(
            f"The name of the index is not valid: got index={index!r} in {shown}. A name has 1 to 48 letters, "
            "digits, underscores and hyphens. Choose such a name, as in ?index=news."
        )
    return ServerAddress(_url(parts, parts.netloc, [each for each in options if each[0] != "index"]), index, shown)


def _url(parts: SplitResult, netloc: str, options: list[tuple[str, str]]) -> str:
    """Return the URL; without a host too it has two slashes, which `urlunsplit` leaves out."""
    query = urlencode(options, quote_via=quote, safe="/")
    return f"{parts.scheme}://{netloc}{parts.path}" + (f"?{query}" if query else "")
