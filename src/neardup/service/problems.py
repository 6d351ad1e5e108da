"""What goes wrong with a request: a status, a sentence, and the setting whose limit was exceeded."""

from __future__ import annotations

from http import HTTPStatus

from neardup.errors import NeardupError, SchemeError, StoreError, UnknownImportError


class Problem(Exception):
    """A request that is not answered as it was asked.

    status : of HTTP. detail : the sentence for the caller. setting : the name of the limit that was exceeded.
    headers : further headers of the response.
    """

    def __init__(
        self, status: int, detail: str, *, setting: str | None = None, headers: dict[str, str] | None = None
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.setting = setting
        self.headers = headers or {}

    @property
    def title(self) -> str:
        """The phrase of the status."""
        return phrase(self.status)


def phrase(status: int) -> str:
    """Return the phrase of a status as RFC 9110 has it; Python before 3.13 has older ones."""
    return {413: "Content Too Large", 422: "Unprocessable Content"}.get(status, HTTPStatus(status).phrase)


def exceeded(status: int, what: str, size: int, setting: str, limit: float, advice: str) -> Problem:
    """Return the problem of a limit: "The body has 20 bytes, more than max_body_bytes=10. ..."."""
    option = "--" + setting.replace("_", "-")
    return Problem(
        status, f"{what} {size:,}, more than {setting}={limit:,}. {advice}, or raise {option}.", setting=setting
    )


def busy(detail: str, setting: str, *, status: int = 429) -> Problem:
    """Return the problem of a service that has too much to do; the caller may repeat the request after a second."""
    return Problem(status, detail, setting=setting, headers={"retry-after": "1"})


def problem_of(error: NeardupError) -> Problem:
    """Return an error of the library as a problem."""
    if isinstance(error, StoreError):
        return Problem(503, str(error), headers={"retry-after": "5"})
    status = {SchemeError: 409, UnknownImportError: 404}.get(type(error), 422)
    return Problem(status, str(error))
