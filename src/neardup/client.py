"""A client of the HTTP service, in the standard library alone.

::

    from neardup.client import Client

    with Client("http://127.0.0.1:8765") as client:
        document = {"id": "a", "text": "a text", "payload": {"url": "https://example.org/a"}}
        [answer] = client.add_if_new([document])
        if not answer.kept:
            print("seen before as", answer.kept_id, answer.first_seen)
"""

from __future__ import annotations

import http.client
import json
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import fields
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple, TypeVar
from urllib.parse import SplitResult, quote, urlsplit

from neardup.answers import Answer, Committed, Comparison, Document, Hit, PairMeasures
from neardup.errors import InputError, NeardupError, SettingError
from neardup.files import JsonObject
from neardup.settings.constraints import (
    check_import_name,
    check_limit,
    check_text,
    iterates_over_names,
    plain,
    shown,
)

_BATCH_DOCUMENTS = 1000
_BATCH_BYTES = 8 << 20  # of a request, half of the limit of a service by default
_SEPARATOR = b", "
_MAX_TIMEOUT_S = 86_400
_RETRIED = (429, 503)
_NO_PATH = "There is nothing at this path"  # begins the detail of a path that no operation has
_STALE = (
    http.client.RemoteDisconnected,
    BrokenPipeError,
    ConnectionResetError,
    ConnectionAbortedError,
)
Documents = Iterable[Mapping[str, Any]]
T = TypeVar("T")


class ServiceError(NeardupError):
    """A request that the service refused, or did not answer.

    Attributes
    ----------
    status : of HTTP; 0 if there was no answer.
    title, detail : the problem and the next step.
    setting : the limit of the service that was exceeded, or None.
    request_id : also in the log of the service, or None.
    """

    def __init__(
        self,
        status: int,
        title: str,
        detail: str,
        setting: str | None = None,
        request_id: str | None = None,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.title = title
        self.detail = detail
        self.setting = setting
        self.request_id = request_id


class _Response(NamedTuple):
    """A response of the service; retry_after_s : how long to wait before the next attempt."""

    status: int
    retry_after_s: float
    content: bytes


class Client:
    """A client of the service. May be used by several threads; its connections stay open.

    Parameters
    ----------
    url : of the service.
    token : a bearer token, if the service asks for one.
    timeout_s : the time to wait for the service to accept data or to answer, in seconds.
    retries : how often a request is repeated while the service is busy (429 and 503), after the
        time it asks for.

    Raises
    ------
    SettingError
        If `url` is no HTTP address, or another value cannot be used.
    """

    def __init__(
        self,
        url: str = "http://127.0.0.1:8765",
        *,
        token: str | None = None,
        timeout_s: float = 60.0,
        retries: int = 8,
    ) -> None:
        self._parts = _checked_address(url)
        self._headers = {"Authorization": f"Bearer {_checked_token(token)}"} if token else {}
        self._timeout_s = _checked_timeout(timeout_s)
        self._retries = check_limit(retries, "retries", least=0)
        self._idle: list[http.client.HTTPConnection] = []

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections. A later call opens new ones."""
        while self._idle:
            self._idle.pop().close()

    def add_if_new(self, documents: Documents) -> list[Answer]:
        """Add the documents that are similar to no kept one, in their order.

        Parameters
        ----------
        documents : each with `id`, `text` and, if wanted, `payload`, any value of JSON, and
            `source` and `date`, texts, for an index that tracks them.

        Returns
        -------
        list of the decisions, in the order of the documents. More than 1,000 documents are sent in
        several requests.

        Raises
        ------
        InputError
            If these are no documents: an id or text is no string, or a payload is no value of JSON.
        ServiceError
            If the service refuses a request, or does not answer. Repeat the call then: documents
            with the same ids and texts get the same answers, and change nothing.
        """
        return self._add(documents, "add-if-new")

    def add(self, documents: Documents) -> list[Answer]:
        """Add documents, even if they are similar to others; as `add_if_new`."""
        return self._add(documents, "add")

    def _add(self, documents: Documents, mode: str) -> list[Answer]:
        found = []
        for batch in _batches("documents", documents, _check_document):
            answer = self._call(
                "POST", "/v1/documents", _with_items({"mode": mode}, "documents", batch)
            )
            found += [_record(Answer, record) for record in answer["answers"]]
        return found

    def query(self, texts: Iterable[str | Sequence[float]], *, limit: int = 10) -> list[list[Hit]]:
        """Return the similar documents of each text, the most similar first.

        texts : of any number. limit : the greatest number of hits for a text.
        """
        limit = check_limit(limit)
        found = []
        for batch in _batches("texts", texts, partial(_check_text, "text")):
            answer = self._call("POST", "/v1/query", _with_items({"limit": limit}, "texts", batch))
            found += [[_record(Hit, record) for record in hits] for hits in answer["results"]]
        return found

    def compare(self, left: str | Sequence[float], right: str | Sequence[float]) -> Comparison:
        """Compare two texts by the method of the index."""
        _check_text("left", left)
        _check_text("right", right)
        found = self._call("POST", "/v1/compare", _json({"left": left, "right": right}))
        known = {name: found["measures"].get(name) for name in PairMeasures._fields}
        return _record(Comparison, found | {"measures": PairMeasures(**known)})

    def get(self, id: str) -> Document | None:
        """Return the document of an id, or None."""
        check_text("id", id)
        answer = self._call("GET", f"/v1/documents/{quote(id, safe='')}", missing=None)
        return answer and _record(Document, answer)

    def remove(self, id: str) -> bool:
        """Remove a document; return whether it was there."""
        check_text("id", id)
        answer = self._call("DELETE", f"/v1/documents/{quote(id, safe='')}", missing={"removed": 0})
        return bool(answer["removed"])

    def open_import(self, name: str) -> None:
        """Open an import, whose documents are staged until it is committed."""
        check_import_name(name)
        self._call("POST", "/v1/imports", _json({"name": name}))

    def stage(self, name: str, documents: Documents) -> int:
        """Stage documents in an import; return their number."""
        path = _import_path(name, "/documents")
        bodies = (
            _with_items({}, "documents", batch)
            for batch in _batches("documents", documents, _check_document)
        )
        return sum(self._call("POST", path, body)["staged"] for body in bodies)

    def commit_import(self, name: str) -> Committed:
        """Add the staged documents of an import that are new, and end the import."""
        return _record(Committed, self._call("POST", _import_path(name, "/commit")))

    def cancel_import(self, name: str) -> None:
        """Drop the staged documents of an import, and end it."""
        self._call("POST", _import_path(name, "/cancel"))

    def remove_import(self, name: str) -> int:
        """Remove the documents that a committed import added; return their number."""
        return int(self._call("DELETE", _import_path(name))["removed"])

    def imports(self) -> dict[str, int]:
        """Return the open imports, with the number of their staged documents."""
        return {
            staged["name"]: staged["documents"]
            for staged in self._call("GET", "/v1/imports")["imports"]
        }

    def stats(self) -> JsonObject:
        """Return the numbers of the index and of the service."""
        return dict(self._call("GET", "/v1/stats"))

    def is_ready(self) -> bool:
        """Return whether the service answers and its index is open."""
        try:
            return self._send("GET", "/readyz", None).status == 200
        except ServiceError:
            return False

    def _call(self, method: str, path: str, body: bytes | None = None, missing: Any = ...) -> Any:
        """Return the answer to a request, `missing` if there is nothing at the path; wait while the
        service is busy.
        """
        for attempt in range(self._retries + 1):
            response = self._send(method, path, body)
            status = response.status
            if status not in _RETRIED or attempt == self._retries:
                break
            time.sleep(response.retry_after_s)
        try:
            answer = json.loads(response.content)
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            title = http.client.responses.get(status, "")
            raise ServiceError(
                status, title, f"{self._parts.geturl()} answered {status} {title}, without JSON."
            )
        if status >= 400:
            detail = answer.get("detail") or f"{self._parts.geturl()} answered {status}."
            # Of another server, or of a wrong path in the URL, 404 says nothing about a document.
            if status == 404 and missing is not ... and not detail.startswith(_NO_PATH):
                return missing
            raise ServiceError(
                status,
                answer.get("title", ""),
                detail,
                answer.get("setting"),
                answer.get("request_id"),
            )
        return answer

    def _send(self, method: str, path: str, body: bytes | None) -> _Response:
        """Return the response to a request. A connection that the service closed is renewed."""
        headers = self._headers | ({"Content-Type": "application/json"} if body is not None else {})
        while True:
            try:
                # one step, so that no other thread gets it too
                connection = self._idle.pop()
                is_new = False
            except IndexError:
                connection = self._connect()
                is_new = True
            try:
                connection.request(method, self._parts.path.rstrip("/") + path, body, headers)
                response = connection.getresponse()
                content = response.read()
                if response.will_close:
                    connection.close()
                else:
                    self._idle.append(connection)
                retry_after_s = _seconds(response.getheader("Retry-After"))
                return _Response(response.status, retry_after_s, content)
            except (OSError, http.client.HTTPException) as error:
                connection.close()
                if isinstance(error, _STALE) and not is_new:
                    continue
                reason = f"{self._parts.geturl()} does not answer: {error or type(error).__name__}."
                advice = "Check that the service runs, and repeat the request."
                raise ServiceError(0, "No answer", f"{reason} {advice}") from error

    def _connect(self) -> http.client.HTTPConnection:
        kind = (
            http.client.HTTPSConnection
            if self._parts.scheme == "https"
            else http.client.HTTPConnection
        )
        assert self._parts.hostname is not None
        return kind(self._parts.hostname, self._parts.port, timeout=self._timeout_s)


def _checked_address(url: str) -> SplitResult:
    """Return the parts of an address, or raise SettingError."""
    try:
        parts = urlsplit(url)
        is_http = parts.scheme in ("http", "https") and bool(parts.hostname)
        _check_parts(parts)
    except (ValueError, TypeError, AttributeError) as error:
        raise SettingError(
            f"url must be the address of a service: got {url!r:.200}: {error}."
        ) from error
    if parts.username is not None:
        # Not shown: it may have a password, which a service does not take.
        raise SettingError("url must have no name before the host: got one. Pass token instead.")
    if not is_http or not isinstance(url, str):
        raise SettingError(f"url must begin with http:// or https:// and a host: got {url!r:.200}.")
    return parts


def _check_parts(parts: SplitResult) -> None:
    """Raise ValueError if no request can be sent to an address."""
    _ = parts.port  # raises it if it is none
    # As the connection does: UnicodeError is a ValueError.
    host = (parts.hostname or "").encode("idna")
    if not re.fullmatch(r"[!-~]*", f"{host.decode()}{parts.path}"):
        raise ValueError("it has other characters than printable ASCII, or a space")


def _checked_token(token: str) -> str:
    """Return a bearer token that can be sent in a header, or raise SettingError; it is not
    shown.
    """
    if not isinstance(token, str) or not (token.isascii() and token.isprintable()):
        raise SettingError(
            f"token must be a string of printable ASCII: got {type(token).__name__} without that."
        )
    return token


def _checked_timeout(timeout_s: float) -> float:
    seconds = plain(timeout_s)
    is_number = isinstance(seconds, (int, float)) and not isinstance(seconds, bool)
    if not is_number or not 0 < seconds <= _MAX_TIMEOUT_S:
        raise SettingError(
            f"timeout_s must be a number of seconds above 0 and at most {_MAX_TIMEOUT_S}: got "
            f"{timeout_s!r}. Change it."
        )
    return float(seconds)


def _batches(name: str, items: Iterable[T], check: Callable[[T], None]) -> Iterator[list[bytes]]:
    """Yield items as JSON, in lists that a service accepts in one request; check : raises if an
    item is none.
    """
    if (
        isinstance(items, (str, bytes, Set))
        or not isinstance(items, Iterable)
        or iterates_over_names(items)
    ):
        raise InputError(
            f"{name} must be a list: got {type(items).__name__} {shown(items)}. Put a single one "
            "in a list."
        )
    batch: list[bytes] = []
    size = 0
    for item in items:
        check(item)
        encoded = _json(item)
        if batch and (len(batch) == _BATCH_DOCUMENTS or size + len(encoded) > _BATCH_BYTES):
            yield batch
            batch = []
            size = 0
        batch.append(encoded)
        size += len(encoded) + len(_SEPARATOR)
    if batch:
        yield batch


def _with_items(message: Mapping[str, Any], name: str, items: Sequence[bytes]) -> bytes:
    """Return a message as JSON, with a list of items that are JSON already."""
    fields = b"".join(
        _json(key) + b": " + _json(value) + _SEPARATOR for key, value in message.items()
    )
    return b"{" + fields + _json(name) + b": [" + _SEPARATOR.join(items) + b"]}"


def _check_document(document: Mapping[str, Any]) -> None:
    if not isinstance(document, Mapping):
        raise InputError(
            f"A document must be a dictionary with id and text: got {type(document).__name__} "
            f"{shown(document)}."
        )
    check_text("id", document.get("id"))
    _check_text("text", document.get("text"))


def _check_text(name: str, text: Any) -> None:
    """Raise InputError if a value is neither a text nor a vector, whose numbers a service
    checks.
    """
    if not isinstance(text, (list, tuple)):
        check_text(name, text)


def _import_path(name: str, action: str = "") -> str:
    check_import_name(name)
    return f"/v1/imports/{quote(name, safe='')}{action}"


def _json(message: Any) -> bytes:
    try:
        return json.dumps(message, ensure_ascii=False, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(
            f"A payload must be a value of JSON: {error}. Convert it first."
        ) from error


def _record(kind: type[T], record: Mapping[str, Any]) -> T:
    """Return a record as an instance of a dataclass; fields of a later version are left out, and
    fields that an earlier one lacks have their defaults.
    """
    names = [field.name for field in fields(kind)]  # type: ignore[arg-type]
    values = {name: record[name] for name in names if name in record}
    for name in ("first_seen", "last_seen"):
        if values.get(name) is not None:
            values[name] = datetime.fromisoformat(values[name].replace("Z", "+00:00"))
    return kind(**values)


def _seconds(text: str | None) -> float:
    """Return the seconds of a header Retry-After, 1 if there are none, 30 at most."""
    try:
        # 0 first: `max` returns it for NaN, too.
        return min(max(0.0, float(text or 1)), 30.0)
    except ValueError:
        return 1.0
