"""Access: bearer tokens, the checks of a request's headers, and the headers of every response."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import os
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from neardup.errors import InputError, SettingError
from neardup.files import lines_of
from neardup.service.problems import Problem

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' "
    "data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = [
    ("content-security-policy", POLICY),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("referrer-policy", "no-referrer"),
    ("x-content-type-options", "nosniff"),
]
"""The headers of every response, refusals included."""
Headers = Mapping[bytes, bytes]
"""The headers of a request, by their names in lower case."""

ROLES = ("read", "write")
_MIN_LENGTH = 16  # characters of a token: 64 bits if they are hexadecimal
_COMMENT = re.compile(r"(^|\s)#.*")  # a "#" inside a token is part of it


class Tokens:
    """The tokens of a service, each with its role. `write` includes `read`.

    roles : the role of each token, by the SHA-256 digest of the token; tokens are not kept.
    """

    def __init__(self, roles: Mapping[bytes, str]) -> None:
        self._roles = dict(roles)

    def __bool__(self) -> bool:
        return bool(self._roles)

    def role_of(self, authorization: bytes) -> str | None:
        """Return the role of a header `Authorization: Bearer TOKEN`; None if the service does not
        know the token.

        Notes
        -----
        The digest is compared with the digest of every token, each time in constant time: the time
        of an answer reveals nothing about tokens.
        """
        scheme, _, token = authorization.partition(b" ")
        digest = hashlib.sha256(token.strip()).digest()
        found = None
        # No early return: its time would depend on the token. See the notes.
        for known, role in self._roles.items():
            if hmac.compare_digest(known, digest):
                found = role
        return found if scheme.lower() == b"bearer" else None


def read_tokens(paths: Sequence[str | Path]) -> Tokens:
    """Return the tokens of files of lines `read TOKEN` or `write TOKEN`; `#` begins a comment.

    Raises
    ------
    InputError
        If a file cannot be read, other users can write to it, or it has a line of another form, a
        token of fewer than 16 characters, or no token; or if a token has two roles.
    """
    roles: dict[bytes, str] = {}
    for path in paths:
        found = list(_read_token_file(path))
        if not found:
            raise InputError(f"{path} has no token. Write a line `write TOKEN` in it.")
        for digest, role in found:
            if roles.setdefault(digest, role) != role:
                raise InputError(
                    f"A token has the roles read and write: the second is in {path}. Write one "
                    "line for each token."
                )
    return Tokens(roles)


def _read_token_file(path: str | Path) -> Iterator[tuple[bytes, str]]:
    """Yield the digests of the tokens in a file, with their roles."""
    try:
        with Path(path).open("rb") as file:
            # Of the opened file: another one may have its path a moment later.
            mode = os.fstat(file.fileno()).st_mode
            lines = lines_of(file.read().decode("ascii"))
    # ValueError: another encoding, or a path with a null character.
    except (OSError, ValueError) as error:
        raise InputError(
            f"{path} cannot be read as a token file: {error}. Name a file of ASCII lines."
        ) from error
    # A user who can write to the file can add a token with any role. Windows has no such permission
    # bits.
    if hasattr(os, "getuid") and mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise InputError(
            f"{path} can be changed by other users, who could add a token. Run `chmod 600 {path}`."
        )
    for number, line in enumerate(lines, 1):
        words = _COMMENT.sub("", line).split()
        if not words:
            continue
        # The error omits the line, which may contain a token.
        if len(words) != 2 or words[0] not in ROLES or len(words[1]) < _MIN_LENGTH:
            raise InputError(
                f"Line {number} of {path} is no token. Write `read TOKEN` or `write TOKEN`, with a "
                f"token of {_MIN_LENGTH} characters or more, for example of `openssl rand -hex 32`."
            )
        role, token = words
        yield hashlib.sha256(token.encode("ascii")).digest(), role


def is_loopback(host: str) -> bool:
    """Return whether an address or name is reached from this host only."""
    try:
        # Every address of 127.0.0.0/8, and ::1.
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def check_exposure(host: str, tokens: Tokens) -> None:
    """Raise SettingError if other hosts reach the service and no token protects it."""
    if not tokens and not is_loopback(host):
        raise SettingError(
            f"host={host!r} is reached from other hosts, and no token protects the index. Pass "
            "--token-file FILE, or --host 127.0.0.1."
        )


class Gate:
    """The checks of requests: tokens, or, in a service without tokens, the name of this host."""

    def __init__(self, host: str, tokens: Tokens) -> None:
        check_exposure(host, tokens)
        self._tokens = tokens
        self._names = {"127.0.0.1", "localhost", "::1", host.lower()}

    def check(self, method: str, headers: Headers, role: str) -> None:
        """Raise Problem unless a request is allowed.

        Parameters
        ----------
        method : the HTTP method, in upper case.
        headers : the headers, by their names in lower case.
        role : the role that the operation needs: open, read or write.

        Notes
        -----
        A page of another site can send requests here from a browser on this host. It cannot send
        JSON (the service never gives the consent that CORS requires for it), and its `Origin`
        differs. If its own name resolves to this address (DNS rebinding), the `Host` header has
        that name.
        """
        self._check_host(headers)
        # Reading changes nothing, and a browser shows the answer to no page of another site.
        if method not in ("GET", "HEAD"):
            self._check_origin(headers)
        if self._tokens and role != "open":
            self._check_role(headers, role)

    def _check_host(self, headers: Headers) -> None:
        """Raise Problem if a service without tokens is reached by another name."""
        host = _read_header(headers, b"host")
        if not self._tokens and _name_of(host) not in self._names:
            raise Problem(
                421,
                f"The Host header is {host!r:.100}, and this service without tokens answers to "
                f"{', '.join(sorted(self._names))} only. Use one of these names, or start it with "
                "--token-file.",
            )

    def _check_origin(self, headers: Headers) -> None:
        """Raise Problem if a page of another site sends the request."""
        host = _read_header(headers, b"host")
        origin = _read_header(headers, b"origin")
        # Clients other than browsers send neither header; a browser sends "none" for an address
        # that its user typed.
        site = headers.get(b"sec-fetch-site", b"none")
        # A page of this service has the address of the service itself as its origin.
        is_other_origin = bool(origin) and origin.partition("://")[2] != host
        is_other_site = site not in (b"none", b"same-origin")
        if is_other_origin or is_other_site:
            raise Problem(
                403,
                "Pages of other sites may not use this service: the origin is "
                f"{origin!r:.100}, the Host header {host!r:.100}. A proxy must pass the Host "
                "header on.",
            )

    def _check_role(self, headers: Headers, role: str) -> None:
        """Raise Problem unless the token of the request has a role."""
        found = self._tokens.role_of(headers.get(b"authorization", b""))
        if found is None:
            raise Problem(
                401,
                "The request has no token that this service knows. Send the header "
                "`Authorization: Bearer TOKEN`.",
                headers={"www-authenticate": 'Bearer realm="neardup"'},
            )
        # 403, not 401: the service knows the token, and its role does not suffice.
        if role == "write" and found != "write":
            raise Problem(403, "This token may only read. Use a token with the role write.")


def _read_header(headers: Headers, name: bytes) -> str:
    """Return a header in lower case, "" if it is missing."""
    return headers.get(name, b"").decode("latin-1").lower()


# A name, an IPv4 address, or an IPv6 address in brackets; then a port.
_HOST = re.compile(r"(?:\[([0-9a-f:.]+)\]|([a-z0-9._-]+))(?::[0-9]{1,5})?")


def _name_of(host: str) -> str:
    """Return the name in a Host header, without port and brackets; the header if it has no name."""
    found = _HOST.fullmatch(host)
    return host if found is None else found[1] or found[2]
