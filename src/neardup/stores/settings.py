"""The settings that a store is created with."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import pyarrow as pa

from neardup.candidates.entries import Layout

META, LAYOUT, SCHEMA = "meta", "layout", "schema"


class StoreSettings(NamedTuple):
    """The settings of a store, which never change.

    meta : settings of the index, values for JSON. layout : of the tables of keys. schema : the columns of documents.
    attachments : files by name.
    """

    meta: Mapping[str, Any]
    layout: Layout
    schema: pa.Schema
    attachments: Mapping[str, bytes] = {}

    def encode(self) -> dict[str, bytes]:
        """Return the settings as bytes by name."""
        return {
            META: dump(self.meta),
            LAYOUT: dump(self.layout._asdict()),
            SCHEMA: self.schema.serialize().to_pybytes(),
            **{attachment_name(name): data for name, data in self.attachments.items()},
        }


def decode_settings(stored: Callable[[str], bytes]) -> StoreSettings:
    """Return the settings that `encode` encoded, without attachments. stored : returns the bytes of a name."""
    layout = json.loads(stored(LAYOUT))
    return StoreSettings(
        json.loads(stored(META)),
        Layout(tuple(layout["prefix_bits"]), layout["max_distance"]),
        pa.ipc.read_schema(pa.py_buffer(stored(SCHEMA))),
    )


def attachment_name(name: str) -> str:
    """Return the name of the setting that contains an attachment."""
    return f"attachment {name}"


def dump(values: Mapping[str, Any]) -> bytes:
    """Return JSON."""
    return json.dumps(values, ensure_ascii=False).encode()
