"""Stores on servers: their addresses, how they are created and opened, and their errors."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import SplitResult, unquote, urlsplit

from neardup.errors import StoreError
from neardup.files import public_address
from neardup.stores.base import (
    LAYOUT,
    META,
    SCHEMA,
    Store,
    StoreSettings,
    attachment_name,
    decode_settings,
)

if TYPE_CHECKING:
    from typing_extensions import Self

DEFAULT_INDEX = "index"
REPEATED = (
    "repeat the call; a change that was not acknowledged is either complete or absent, and "
    "documents that are there already are not added twice."
)
# Settings of a store, besides the settings of an index.
_FORMAT = "format"
_INCOMPLETE = "incomplete"
_VERSION = b"1"
_NAME = re.compile(r"[A-Za-z0-9_-]{1,48}")


class ServerAddress(NamedTuple):
    """The address of an index.

    server : the URL of the server, for its client. name : of the index. shown : the whole address
    without passwords, for messages.
    """

    server: str
    name: str
    shown: str


def parse_server_address(address: str) -> ServerAddress:
    """Split an address such as postgresql://user@host/database?index=news.

    Raises
    ------
    StoreError
        If it is no URL, or the name of the index is not made of 1 to 48 letters, digits,
        underscores and hyphens.
    """
    scheme, _, _ = address.partition("://")
    # Not shown: the # is perhaps part of a password.
    if "#" in address:
        raise StoreError(
            f"The address {scheme}://... contains a #, which begins a fragment, and a server has "
            "none. Write %23 for a # in a name or a password."
        )
    shown = public_address(address)
    try:
        parts = urlsplit(address)
    except ValueError as error:
        raise StoreError(
            f"The address is no URL: got {shown}: {error}. An address is like "
            f"{scheme}://host/0?index=news. Correct it."
        ) from error
    names = []
    of_server = []
    # Other options stay as they are: PostgreSQL takes a + literally, Redis takes it for a space.
    for option in parts.query.split("&"):
        key, _, value = option.partition("=")
        if key == "index":
            names.append(unquote(value))
        elif option:
            of_server.append(option)
    name = names[-1] if names else DEFAULT_INDEX
    if not _NAME.fullmatch(name):
        raise StoreError(
            f"The name of the index is not valid: got index={name!r} in {shown}. A name has 1 to "
            "48 letters, digits, underscores and hyphens. Choose such a name, as in ?index=news."
        )
    return ServerAddress(_url(parts, of_server), name, shown)


def _url(parts: SplitResult, options: list[str]) -> str:
    """Return a URL with these options. `urlunsplit` would omit the slashes of an empty host."""
    url = f"{parts.scheme}://{parts.netloc}{parts.path}"
    return "?".join([url, "&".join(options)]) if options else url


class Explanation(NamedTuple):
    """An explanation of errors of a client.

    causes : types of errors, and words of their reasons. sentence : the message, which names the
    {reason}, {where} the server is, and the {name} of the index.
    """

    causes: tuple[type[Exception] | str, ...]
    sentence: str

    def explains(self, error: Exception, reason: str) -> bool:
        """Return whether an error has one of the causes."""
        for cause in self.causes:
            if cause in reason if isinstance(cause, str) else isinstance(error, cause):
                return True
        return False


def explain_error(
    explanations: Iterable[Explanation], error: Exception, reason: str, address: ServerAddress
) -> StoreError:
    """Return the error to raise for an error of a client, by the first explanation of it."""
    for explanation in explanations:
        if explanation.explains(error, reason):
            where = f"at {address.shown}"
            return StoreError(
                explanation.sentence.format(reason=reason, where=where, name=address.name)
            )
    raise error


class ServerStore(Store):
    """An index on a server. Many hosts may write; they take turns.

    Parameters
    ----------
    address : the server and the index, as in `parse_server_address`; the index is "index" by
        default.
    read_only : whether `writing` is refused.
    new : the settings of an index to create; None opens one.
    fill : writes the first documents of a new index, which cannot be opened before `fill` returns.

    Raises
    ------
    StoreError
        If a new index exists; if there is no index to open, or it is incomplete or of another
        format; or if the server cannot be reached.
    """

    def __init__(
        self,
        address: str,
        read_only: bool = False,
        new: StoreSettings | None = None,
        fill: Callable[[Store], None] | None = None,
    ) -> None:
        self.server_address = parse_server_address(address)
        super().__init__(address, self.server_address.shown, read_only)
        self._connect()
        try:
            if new is not None:
                encoded = new.encode() | {_FORMAT: _VERSION}
                # The index is created with the mark, so an interrupted `fill` never leaves an index
                # that looks complete.
                if fill is not None:
                    encoded[_INCOMPLETE] = b""
                if not self._create(new, encoded):
                    raise StoreError(
                        f"The index exists already: {self.shown}. A new index needs a name that is "
                        f"free. Open it, choose another name with ?index=NAME, or {self._deletion}"
                    )
            stored = self._stored((_FORMAT, META, LAYOUT, SCHEMA, _INCOMPLETE))
            self._check(stored, is_filled=fill is not None)
            self.settings = decode_settings(stored.__getitem__)
            self.durable, self.promise = self._promise()
            if fill is not None:
                fill(self)
                self._drop_setting(_INCOMPLETE)
        except BaseException:
            self.close()
            raise

    @classmethod
    def create(
        cls, address: str, settings: StoreSettings, fill: Callable[[Store], None] | None = None
    ) -> Self:
        """Create an index, and open it for writing; parameters as of the class."""
        return cls(address, False, settings, fill)

    def _check(self, stored: dict[str, bytes], is_filled: bool) -> None:
        """Raise StoreError if there is no usable index. is_filled : whether `fill` is called."""
        if not stored:
            names = ", ".join(sorted(map(repr, self._names()))) or "none"
            raise StoreError(
                f"There is no index {self.server_address.name!r} at {self.shown}. Indexes there: "
                f"{names}. Name one of them with ?index=NAME, or create it with `neardup index "
                "create`."
            )
        if stored.get(_FORMAT, _VERSION) != _VERSION:
            raise StoreError(
                f"The index is of another format: version {stored[_FORMAT].decode()} at "
                f"{self.shown}. This neardup reads version {_VERSION.decode()}. Use the version of "
                "neardup that made it, or create the index again."
            )
        missing = sorted({_FORMAT, META, LAYOUT, SCHEMA} - stored.keys())
        if missing:
            raise StoreError(
                f"The index is damaged at {self.shown}: the setting {missing[0]} is missing. "
                f"Restore it from a backup; or {self._deletion.rstrip('.')}, and create it again."
            )
        if _INCOMPLETE in stored and not is_filled:
            raise StoreError(
                f"The index {self.shown} is incomplete: the process that filled it is not done, or "
                f"was interrupted. Wait for it; or {self._deletion.rstrip('.')}, and run the "
                "command again."
            )

    def attachment(self, name: str) -> bytes | None:
        """Return a file that was stored when the index was created, or None."""
        self.require_open()
        setting = attachment_name(name)
        return self._stored((setting,)).get(setting)

    def backup(self, path: str) -> None:
        """Raise StoreError: the server's own tools copy it."""
        raise StoreError(
            f"neardup does not back up a server: got {path!r} for {self.shown}. The server's own "
            f"tools do, while the index is in use. Run: {self._backup_command(path)}"
        )

    @property
    @abstractmethod
    def _deletion(self) -> str:
        """The end of a sentence, about how to delete the index."""

    @abstractmethod
    def _backup_command(self, path: str) -> str:
        """Return the command that copies the index to a path."""

    @abstractmethod
    def _connect(self) -> None:
        """Prepare connections to the server."""

    @abstractmethod
    def _create(self, new: StoreSettings, encoded: dict[str, bytes]) -> bool:
        """Create an index without documents, all or nothing; return False if it exists.

        encoded : all settings.
        """

    @abstractmethod
    def _stored(self, names: Collection[str]) -> dict[str, bytes]:
        """Return the settings of these names that exist."""

    @abstractmethod
    def _drop_setting(self, name: str) -> None:
        """Delete a setting."""

    @abstractmethod
    def _names(self) -> Iterable[str]:
        """Return the names of the indexes on the server."""

    @abstractmethod
    def _promise(self) -> tuple[bool, str]:
        """Return `durable` and `promise`."""
