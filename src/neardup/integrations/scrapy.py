"""A Scrapy item pipeline: drop or tag the items whose text was seen before, in this crawl or an
earlier one.

::

    ITEM_PIPELINES = {"neardup.integrations.scrapy.SeenBeforePipeline": 300}
    NEARDUP_INDEX = "pages.index"

Scrapy is imported when the pipeline is used.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from neardup.errors import MissingExtraError, SettingError

if TYPE_CHECKING:
    from neardup import client
    from neardup.answers import Answer
    from neardup.api.index import Index

_ACTIONS = ("drop", "tag")


class SeenBeforePipeline:
    """Adds the text of each item to an index if it is new; drops the item, or tags it, if it was
    seen before.

    An item was seen before if another kept document is similar to its text, or if it has passed in
    this crawl. An item that an earlier crawl added to the index passes again, so that a crawl that
    is killed loses none: they are added before they are exported. The settings of Scrapy:

    - NEARDUP_INDEX : an index that exists: a folder, the address of a database, or the URL of
      `neardup serve`.
    - NEARDUP_FIELD : the field of the text or HTML; `text` by default. Items without it pass.
    - NEARDUP_ID : the field of the id; `url` by default. Without it, the id is a digest of the
      text.
    - NEARDUP_PAYLOAD : a list of fields to store with the document.
    - NEARDUP_ACTION : `drop`, the default, or `tag`.
    - NEARDUP_TAG : the field that `tag` fills; `seen_before` by default. None for a new item;
      otherwise a dict of id, similarity, distance, first_seen and payload of the earlier document.
    - NEARDUP_ONLY_NEW : whether items of an earlier crawl, with the same id and text, were seen
      before, too; False by default.
    - NEARDUP_TOKEN : a write token of the service.

    The stats `neardup/new`, `neardup/seen` and `neardup/without_text` count the items.
    """

    def __init__(self, settings: Any, count: Callable[[str], None]) -> None:
        """Keep the settings of a crawler; `from_crawler` calls this. count : adds one to a stat."""
        self._address = settings.get("NEARDUP_INDEX")
        self._token = settings.get("NEARDUP_TOKEN")
        if not self._address:
            raise SettingError(
                "NEARDUP_INDEX must name an index: got nothing. Create one with `neardup index "
                "create pages.index`, and set NEARDUP_INDEX = 'pages.index' in the settings of the "
                "crawler."
            )
        self._action = settings.get("NEARDUP_ACTION", "drop")
        self._tag = settings.get("NEARDUP_TAG", "seen_before")
        if self._action not in _ACTIONS:
            raise SettingError(
                f"NEARDUP_ACTION must be one of {', '.join(_ACTIONS)}: got {self._action!r}. "
                "Change it."
            )
        self._field = settings.get("NEARDUP_FIELD", "text")
        self._id_field = settings.get("NEARDUP_ID", "url")
        self._payload_fields = settings.getlist("NEARDUP_PAYLOAD")
        self._only_new = settings.getbool("NEARDUP_ONLY_NEW")
        self._count = count
        self._opened: Index | client.Client | None = None
        self._passed = set[str]()

    @classmethod
    def from_crawler(cls, crawler: Any) -> SeenBeforePipeline:
        """Return the pipeline of a crawler.

        Raises
        ------
        SettingError
            If NEARDUP_INDEX is missing, or NEARDUP_ACTION is unknown.
        """
        return cls(crawler.settings, lambda name: crawler.stats.inc_value(f"neardup/{name}"))

    def open_spider(self, spider: Any = None) -> None:
        """Open the index, or a client of the service.

        Raises
        ------
        StoreError
            If the index does not exist, or another process writes to it.
        """
        address = str(self._address)
        if address.startswith(("http://", "https://")):
            from neardup.client import Client

            self._opened = Client(address, token=self._token)
        else:
            from neardup.api.index import Index

            self._opened = Index.open(address)

    def close_spider(self, spider: Any = None) -> None:
        """Close the index."""
        if self._opened is not None:
            self._opened.close()
            self._opened = None

    async def process_item(self, item: Any, spider: Any = None) -> Any:
        """Return a new item, or one that is tagged.

        Raises
        ------
        scrapy.exceptions.DropItem
            If it was seen before, and NEARDUP_ACTION is `drop`.
        """
        try:
            from itemadapter import ItemAdapter
            from scrapy.exceptions import DropItem
            from scrapy.utils.defer import maybe_deferred_to_future
            from twisted.internet.threads import deferToThread
        except ImportError as error:
            raise MissingExtraError(
                f"The pipeline runs in Scrapy, and {error.name} is not installed. Run `pip install "
                "scrapy`."
            ) from error
        fields = ItemAdapter(item)
        text = fields.get(self._field)
        if not isinstance(text, str):
            self._count("without_text")
            return item
        id = str(fields.get(self._id_field) or _digest(text))
        payload = {name: fields.get(name) for name in self._payload_fields} or None
        answer = await maybe_deferred_to_future(deferToThread(self._add, text, id, payload))
        seen = not answer.kept or (answer.repeated and (self._only_new or id in self._passed))
        self._passed.add(id)
        self._count("seen" if seen else "new")
        if self._action == "tag":
            fields[self._tag] = _description(answer) if seen else None
        elif seen:
            raise DropItem(f"Seen before, as {answer.kept_id or answer.id}: {id}")
        return item

    def _add(self, text: str, id: str, payload: dict[str, Any] | None) -> Answer:
        """Add a document to the index if it is new; called in a thread."""
        assert self._opened is not None
        from neardup.api.index import Index

        if isinstance(self._opened, Index):
            stored = (
                None if payload is None else json.dumps(payload, ensure_ascii=False, default=str)
            )
            return self._opened.add_if_new(text, id=id, payload=stored)
        values = None if payload is None else json.loads(json.dumps(payload, default=str))
        [answer] = self._opened.add_if_new([{"id": id, "text": text, "payload": values}])
        return answer


def _digest(text: str) -> str:
    """Return the id of a text without one."""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:32]


def _description(answer: Answer) -> dict[str, Any]:
    """Return the document that an item repeats, as the value of its tag."""
    payload = answer.payload
    if isinstance(payload, str):
        with suppress(ValueError):
            payload = json.loads(payload)
    return {
        "id": answer.kept_id or answer.id,
        "similarity": answer.similarity,
        "distance": answer.distance,
        "first_seen": None if answer.first_seen is None else answer.first_seen.isoformat(),
        "payload": payload,
    }
