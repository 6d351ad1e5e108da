"""Bearer tokens: who may read, and who may write."""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path

from neardup.errors import InputError

ROLES = ("read", "write")
_SHORTEST = 16
_COMMENT = re.compile(r"(^|\s)#.*")


class Tokens:
    """The tokens of a service, by role. `write` includes `read`.

    roles : the SHA-256 digest of each token -> its role. The tokens themselves are not kept.
    """

    def __init__(self, roles: Mapping[bytes, str]) -> None:
        self._roles = dict(roles)

    def __bool__(self) -> bool:
        return bool(self._roles)

    def role_of(self, authorization: bytes) -> str | None:
        """Return the role of a header `Authorization: Bearer TOKEN`; None if it is no token of this service.

        Notes
        -----
        Digests are compared, each with every token's, in constant time, so that the time depends on no token.
        """
        scheme, _, token = authorization.partition(b" ")
        digest = hashlib.sha256(token.strip()).digest()
        found = None
        for known, role in self._roles.items():
            if hmac.compare_digest(known, digest):
                found = role
        return found if scheme.lower() == b"bearer" else None


def read_tokens(paths: Sequence[str | Path]) -> Tokens:
    """Return the tokens of files of lines `read TOKEN` or `write TOKEN`; `#` begins a comment.

    Raises
    ------
    InputError
        If a file cannot be read, others than its owner can write to it, or it has a line of another form, a token of
        fewer than 16 characters, or no token.
    """
    roles: dict[bytes, str] = {}
    for path in paths:
        try:
            lines = Path(path).read_text(encoding="ascii").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"{path} cannot be read as a token file: {error}. Name a file of ASCII lines.") from error
        if hasattr(os, "getuid") and os.stat(path).st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise InputError(f"{path} can be changed by other users, who could add a token. Run `chmod 600 {path}`.")
        texts = {number: _COMMENT.sub("", line) for number, line in enumerate(lines, 1)}
        words = {number: text.split() for number, text in texts.items() if text.strip()}
        for number, parts in words.items():
            if len(parts) != 2 or parts[0] not in ROLES or len(parts[1]) < _SHORTEST:
                raise InputError(
                    f"Line {number} of {path} is no token. Write `read TOKEN` or `write TOKEN`, with a token of "
                    f"{_SHORTEST} characters or more, for example of `openssl rand -hex 32`."
                )
            roles[hashlib.sha256(parts[1].encode("ascii")).digest()] = parts[0]
        if not words:
            raise InputError(f"{path} has no token. Write a line `write TOKEN` in it.")
    return Tokens(roles)
