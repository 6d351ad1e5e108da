"""The settings in the database of an index."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from neardup.stores.base import Layout

META, LAYOUT = "meta", "layout"


def attachment_name(name: str) -> str:
    """Return the setting that contains an attachment."""
    return f"attachment {name}"


def dump(values: Mapping[str, Any]) -> bytes:
    """Return JSON."""
    return json.dumps(values, ensure_ascii=False).encode()


def dump_layout(layout: Layout) -> bytes:
    """Return a layout as JSON."""
    return dump({"prefix_bits": list(layout.prefix_bits), "max_distance": layout.max_distance})


def layout_of(values: Mapping[str, Any]) -> Layout:
    """Return the layout of its JSON."""
    return Layout(tuple(values["prefix_bits"]), values["max_distance"])
