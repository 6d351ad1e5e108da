"""Make the metadata that depend on where the project is published, and the manual pages, when a
distribution is built.

REPOSITORY_URL, in the environment, is the address of the repository. A package index shows
README.md without the files beside it, so its links become absolute ones to the files of this
version. Without an address they stay as they are.

A wheel has a manual page for each command, made from docs/command-line.md, which is generated from
the commands.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface


class Addresses(MetadataHookInterface):
    """Sets `readme` and `urls`."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Add the fields to the metadata."""
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        metadata["urls"] = {}
        if url := os.environ.get("REPOSITORY_URL", "").rstrip("/"):
            files = f"{url}/blob/v{metadata['version']}"
            text = re.sub(r'(?<=src=")(?!https?:)', f"{url}/raw/v{metadata['version']}/", text)
            text = re.sub(r"(?<=\]\()(?!https?:|#)", f"{files}/", text)
            metadata["urls"] = {
                "Documentation": f"{files}/docs/README.md",
                "Changelog": f"{files}/CHANGELOG.md",
                "Repository": url,
            }
        metadata["readme"] = {"content-type": "text/markdown", "text": text}


class ManualPages(BuildHookInterface[Any]):
    """Adds share/man/man1 to a wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the pages to a temporary folder, and name them among the files of the wheel."""
        self._folder = TemporaryDirectory()
        pages = Path(self.root, "docs", "command-line.md").read_text(encoding="utf-8")
        for name, text in re.findall(r"^## ([^\n]+)\n\n```text\n(.*?)\n```$", pages, re.M | re.S):
            file = f"{name.replace(' ', '-')}.1"
            page = "\n".join(manual_page(name, text, self.metadata.version)) + "\n"
            Path(self._folder.name, file).write_text(page, encoding="utf-8")
            build_data["shared_data"][str(Path(self._folder.name, file))] = f"share/man/man1/{file}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Delete the temporary folder."""
        self._folder.cleanup()


def manual_page(name: str, text: str, version: str) -> Iterator[str]:
    """Yield the lines of a manual page; text : the help of the command."""
    usage, _, rest = text.partition("\n\n")
    summary = " ".join(rest.partition("\n\n")[0].split()).rstrip(".")
    title = name.replace(" ", "-")
    yield f'.TH {title.upper()} 1 "" "neardup {version}" "neardup"'
    yield from (".SH NAME", f"{_escaped(title)} \\- {_escaped(summary)}", ".SH SYNOPSIS")
    yield _escaped(" ".join(usage.split()))
    yield from (".SH DESCRIPTION", ".nf")
    for line in rest.split("\n"):
        if re.fullmatch(r"\S.*:", line):
            yield from (".fi", f".SH {line[:-1].upper()}", ".nf")
        else:
            yield _escaped(line.removeprefix("  "))
    yield ".fi"
    if title != "neardup-options":
        yield from (".SH SEE ALSO", "neardup\\-options(1)")


def _escaped(line: str) -> str:
    """Return a line of text for roff: a backslash, a hyphen, and a control character at its
    beginning are escaped.
    """
    line = line.replace("\\", "\\e").replace("-", "\\-")
    return "\\&" + line if line.startswith((".", "'")) else line
