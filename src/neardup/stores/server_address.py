"""Addresses of indexes on servers: the server, and the name of an index there."""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

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
    rest = urlencode([(option, value) for option, value in options if option != "index"], quote_via=quote)
    user, _, place = parts.netloc.rpartition("@")
    shown = urlunsplit(
        parts._replace(
            netloc=f"{user.partition(':')[0]}@{place}" if user else place,
            query=urlencode(
                [(option, "..." if "password" in option else value) for option, value in options], quote_via=quote
            ),
        )
    )
    if not _NAME.fullmatch(index):
        raise StoreError(
            f"The name of the index is not valid: got index={index!r} in {shown}. A name has 1 to 48 letters, "
            "digits, underscores and hyphens. Choose such a name, as in ?index=news."
        )
    return ServerAddress(urlunsplit(parts._replace(query=rest, fragment="")), index, shown)
