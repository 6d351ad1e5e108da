"""Stores on servers: their addresses, how they are created and opened, and their errors."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import SplitResult, parse_qsl, quote, urlencode, urlsplit

from neardup.errors import StoreError
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
_FORMAT, _INCOMPLETE = "format", "incomplete"
_VERSION = b"1"
_NAME = re.compile(r"[A-Za-z0-9_-]{1,48}")


class ServerAddress(NamedTuple):
    """server : the URL of the server, for its client. name : of the index. shown : for messages,
    without passwords.
    """

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
    shown = _url(
        parts,
        public,
        [(option, "..." if "password" in option else value) for option, value in options],
    )
    if not _NAME.fullmatch(index):
        raise StoreError(
            f"The name of the index is not valid: got index={index!r} in {shown}. A name has 1 to "
            "48 letters, digits, underscores and hyphens. Choose such a name, as in ?index=news."
        )
    return ServerAddress(
        _url(parts, parts.netloc, [each for each in options if each[0] != "index"]), index, shown
    )


def _url(parts: SplitResult, netloc: str, options: list[tuple[str, str]]) -> str:
    """Return the URL; without a host too it has two slashes, which `urlunsplit` leaves out."""
    query = urlencode(options, quote_via=quote, safe="/")
    return f"{parts.scheme}://{netloc}{parts.path}" + (f"?{query}" if query else "")


Sentences = Mapping[tuple[type[Exception] | str, ...], str]


def explain_error(
    sentences: Sentences, error: Exception, reason: str, address: ServerAddress
) -> StoreError:
    """Return the error to raise for one of a client: the first sentence that is about its type or a
    word of its reason.

    sentences : by types and words; they name the {reason}, {where} the server is, and the {name} of
    the index.
    """
    for causes, sentence in sentences.items():
        if any(
            cause in reason if isinstance(cause, str) else isinstance(error, cause)
            for cause in causes
        ):
            return StoreError(
                sentence.format(reason=reason, where=f"at {address.shown}", name=address.name)
            )
    raise error


class ServerStore(Store):
    """An index on a server. Many hosts may write; they take turns.

    Parameters
    ----------
    address : of the server and the index, as in `parse_server_address`. The default of the name is
        "index".
    read_only : whether `writing` is refused.
    new : the settings of an index to create; None opens one.
    fill : writes the first documents of a new index, which cannot be opened before it has returned.

    Raises
    ------
    StoreError
        If the index exists, or there is none, it is incomplete or of another format, or the server
        cannot be reached.
    """

    def __init__(
        self,
        address: str,
        read_only: bool = False,
        new: StoreSettings | None = None,
        fill: Callable[[Store], None] | None = None,
    ) -> None:
        self.place = parse_server_address(address)
        super().__init__(address, self.place.shown, read_only)
        self._connect()
        try:
            if new is not None:
                incomplete = {} if fill is None else {_INCOMPLETE: b""}
                if not self._create(new, new.encode() | {_FORMAT: _VERSION} | incomplete):
                    raise StoreError(
                        f"The index exists already: {self.shown}. A new index needs a name "
                        "that is free. Open it, "
                        f"choose another name with ?index=NAME, or {self._deletion}"
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
        """Raise StoreError if there is no index, or none that can be used. is_filled : whether it
        is filled here.
        """
        if not stored:
            names = ", ".join(sorted(map(repr, self._names()))) or "none"
            raise StoreError(
                f"There is no index {self.place.name!r} at {self.shown}. Indexes there: {names}. "
                "Name one of them with ?index=NAME, or create it with `neardup index create`."
            )
        if stored[_FORMAT] != _VERSION:
            raise StoreError(
                f"The index is of another format: version {stored[_FORMAT].decode()} at "
                f"{self.shown}. This neardup reads version {_VERSION.decode()}. Use the version "
                "of neardup that made it, or create the index again."
            )
        if _INCOMPLETE in stored and not is_filled:
            raise StoreError(
                f"The index {self.shown} is incomplete: the process that filled it is not "
                "done, or was interrupted. "
                f"Wait for it; or {self._deletion.rstrip('.')}, and run the command again."
            )

    def attachment(self, name: str) -> bytes | None:
        """Return a file that was stored when the index was created, or None."""
        self.require_open()
        return self._stored((attachment_name(name),)).get(attachment_name(name))

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
        """Create an index without documents at once; return whether there was none. encoded : all
        of its settings.
        """

    @abstractmethod
    def _stored(self, names: Collection[str]) -> dict[str, bytes]:
        """Return those of some settings that are there."""

    @abstractmethod
    def _drop_setting(self, name: str) -> None:
        """Delete a setting."""

    @abstractmethod
    def _names(self) -> Iterable[str]:
        """Return the names of the indexes on the server."""

    @abstractmethod
    def _promise(self) -> tuple[bool, str]:
        """Return `durable` and `promise`."""
