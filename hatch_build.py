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
        for name, lines in manual_pages(pages, self.metadata.version):
            file = f"{name}.1"
            Path(self._folder.name, file).write_text("\n".join(lines) + "\n", encoding="utf-8")
            build_data["shared_data"][str(Path(self._folder.name, file))] = f"share/man/man1/{file}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Delete the temporary folder."""
        self._folder.cleanup()


def manual_pages(page: str, version: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the name and the lines of each manual page; page : the text of docs/command-line.md.

    A section of a command is its help in a block, and a paragraph that names the options which it
    shares with other commands. The last section has a block of shared options below each heading.
    """
    commands, _, shared = page.partition("\n## Shared options\n")
    for name, text, after in re.findall(
        r"^## (neardup[^\n]*)\n\n```text\n(.*?)\n```$(.*?)(?=^## |\Z)", commands, re.M | re.S
    ):
        yield name.replace(" ", "-"), list(_command(name, text, _without_marks(after), version))
    yield "neardup-options", list(_shared_options(shared, version))


def _command(name: str, text: str, shared: str, version: str) -> Iterator[str]:
    """Yield the lines of the page of a command; shared : the paragraph below its help."""
    usage, _, rest = text.partition("\n\n")
    summary = " ".join(rest.partition("\n\n")[0].split()).rstrip(".")
    yield from _head(name.replace(" ", "-"), summary, version)
    yield from (".SH SYNOPSIS", _escaped(" ".join(usage.split())))
    yield from (".SH DESCRIPTION", ".nf")
    for line in rest.split("\n"):
        if re.fullmatch(r"\S.*:", line):
            yield from (".fi", f".SH {line[:-1].upper()}", ".nf")
        else:
            yield _escaped(line.removeprefix("  "))
    yield ".fi"
    if shared:
        options = " ".join(shared.split()).removeprefix("Shared options: ").removesuffix(".")
        yield from (".SH SHARED OPTIONS", "neardup\\-options(1) describes:", ".PP")
        yield _escaped(options)
    yield from (".SH SEE ALSO", "neardup\\-options(1)")


def _shared_options(text: str, version: str) -> Iterator[str]:
    """Yield the lines of the page of the options that several commands share."""
    yield from _head("neardup-options", "Options that several commands share", version)
    for section in text.split("\n### ")[1:]:
        heading, _, below = section.partition("\n")
        yield f".SH {heading.removesuffix(' options').upper()}"
        note, block, _ = re.split(r"^```(?:text)?\n", below, flags=re.M)
        if note.strip():
            yield from (_escaped(_without_marks(note)), ".PP")
        yield ".nf"
        yield from map(_escaped, block.rstrip().split("\n"))
        yield ".fi"


def _head(title: str, summary: str, version: str) -> Iterator[str]:
    yield f'.TH {title.upper()} 1 "" "neardup {version}" "neardup"'
    yield from (".SH NAME", f"{_escaped(title)} \\- {_escaped(summary)}")


def _without_marks(paragraph: str) -> str:
    """Return a paragraph of Markdown without links and code marks."""
    return re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", paragraph).replace("`", "").strip()


def _escaped(line: str) -> str:
    """Return a line of text for roff: a backslash, a hyphen, and a control character at its
    beginning are escaped.
    """
    line = line.replace("\\", "\\e").replace("-", "\\-")
    return "\\&" + line if line.startswith((".", "'")) else line
