"""Problems of a request: a status, a sentence, and the setting whose limit was exceeded."""

from __future__ import annotations

from http import HTTPStatus

from neardup.errors import NeardupError, SchemeError, StoreError, UnknownImportError
from neardup.settings.constraints import flag_of
from neardup.settings.service import ServiceSettings


class Problem(Exception):
    """A request that is not answered as it was asked.

    status : of HTTP. detail : the sentence for the caller. setting : the name of the limit that was
    exceeded. headers : further headers of the response.
    """

    def __init__(
        self,
        status: int,
        detail: str,
        *,
        setting: str | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.setting = setting
        self.headers = headers or {}

    @property
    def title(self) -> str:
        """The phrase of the status."""
        return phrase(self.status)


def phrase(status: int) -> str:
    """Return the phrase of a status as RFC 9110 has it; Python before 3.13 has older ones."""
    return {413: "Content Too Large", 422: "Unprocessable Content"}.get(
        status, HTTPStatus(status).phrase
    )


def check_size(
    settings: ServiceSettings, setting: str, size: int, subject: str, advice: str, status: int = 422
) -> None:
    """Raise Problem for a size over a limit: "The bytes of the body are 20, more than
    max_body_bytes=10. ...".
    """
    limit = getattr(settings, setting)
    if size > limit:
        detail = (
            f"{subject} {size:,}, more than {setting}={limit:,}. {advice}, or raise "
            f"{flag_of(setting)}."
        )
        raise Problem(status, detail, setting=setting)


def check_head(settings: ServiceSettings, size: int) -> None:
    """Raise Problem if the request line and headers are too long."""
    subject = "The bytes of the request line and headers are"
    check_size(settings, "max_header_bytes", size, subject, "Send shorter ones", status=431)


def busy(detail: str, setting: str, *, status: int = 429) -> Problem:
    """Return the problem of a service that has too much to do; the caller may repeat the request
    after a second.
    """
    return Problem(status, detail, setting=setting, headers={"retry-after": "1"})


def problem_of(error: NeardupError) -> Problem:
    """Return an error of the library as a problem."""
    if isinstance(error, StoreError):
        return Problem(503, str(error), headers={"retry-after": "5"})
    status = {SchemeError: 409, UnknownImportError: 404}.get(type(error), 422)
    return Problem(status, str(error))
