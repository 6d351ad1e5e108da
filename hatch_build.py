"""Make the metadata that depend on where the project is published, when a distribution is built.

REPOSITORY_URL, in the environment, is the address of the repository. A package index shows README.md without the files
beside it, so its links become absolute ones to the files of this version. Without an address they stay as they are.
"""

import os
import re
from pathlib import Path
from typing import Any

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
