"""The command `neardup serve`."""

from __future__ import annotations

from typing import Any

import click

from neardup.cli.settings import command, option, settings_options
from neardup.errors import MissingExtraError
from neardup.settings.service import ServiceSettings

_ADDRESS = ("host", "port")
_LOG = ("log",)


@command("Serve an index over HTTP, with a page for browsers.", common="host port token_files")
@click.argument("index", metavar="INDEX")
@settings_options(ServiceSettings, "Address", only=_ADDRESS)
@option(
    "--token-file FILE...",
    "Address",
    (
        "A file of lines `read TOKEN` or `write TOKEN`, which clients send as `Authorization: "
        "Bearer TOKEN`. Repeatable."
    ),
    "token_files",
    type=click.Path(exists=True, dir_okay=False),
)
@settings_options(ServiceSettings, "Limits", without=(*_ADDRESS, *_LOG))
@settings_options(ServiceSettings, "Printing", only=_LOG)
def serve(index: str, token_files: tuple[str, ...], **values: Any) -> None:
    """Serve an index over HTTP: add documents, look up texts, and view near-duplicates in a
    browser.

    INDEX is a folder or the URL of a store. The service accepts connections from this host only,
    unless you set --host and --token-file. On SIGTERM it finishes the requests in progress and
    stops.

    \b
    Examples:
      neardup serve news.index
      neardup serve news.index --host 0.0.0.0 --token-file tokens.txt
      curl -H 'Content-Type: application/json' http://127.0.0.1:8765/v1/query -d '{"texts": ["a text"]}'
    """  # noqa: E501
    settings = ServiceSettings(**values)
    try:
        # Tried here, before files are opened: without the extra, the modules below fail with the
        # name of a module.
        import msgspec  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise MissingExtraError(
            f"The service needs {error.name}, which is not installed. Run `pip install "
            '"neardup[serve]"`.'
        ) from error
    # They need the extra, so `neardup --help` must not import them.
    from neardup.service.security import read_tokens
    from neardup.service.server import serve as run

    run(index, settings, read_tokens(token_files))
