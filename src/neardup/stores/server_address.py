"""Addresses of indexes on servers: the server, and the name of an index there."""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from neardup.errors import StoreError

DEFAULT_INDEX = "index"
_NAME = re.compile(r"[A-Za-z0-9_-]{1,48}")


class ServerAddress(NamedTuple):
    """server : the URL of the server, for its client. index : the name of the index. shown : for messages, without the
    password."""

    server: str
    index: str
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
    index = next((value for name, value in reversed(options) if name == "index"), DEFAULT_INDEX)
    rest = urlencode([(name, value) for name, value in options if name != "index"])
    user, _, place = parts.netloc.rpartition("@")
    shown = f"{user.partition(':')[0]}@{place}" if user else place
    shown_options = urlencode([(name, "..." if "password" in name else value) for name, value in options])
    found = ServerAddress(
        urlunsplit(parts._replace(query=rest, fragment="")), index, urlunsplit(parts._replace(netloc=shown, query=shown_options))
    )  # fmt: skip
    if not _NAME.fullmatch(index):
        raise StoreError(
            f"The name of the index is not valid: got index={index!r} in {found.shown}. A name has 1 to 48 letters, "
            "digits, underscores and hyphens. Choose such a name, as in ?index=news."
        )
    return found
