"""An index as a list of documents: each is compared with all that are kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

Strength = Callable[[str, str], float | None]


@dataclass
class Stored:
    """A document. kept_id : the document that removed it, None if it is kept."""

    text: str
    kept_id: str | None


class ReferenceIndex:
    """Documents by id, in the order of arrival.

    strength : returns how similar two texts are, None if they are no duplicates; equal texts are
    the most similar.
    """

    def __init__(self, strength: Strength) -> None:
        self.strength = strength
        self.documents = dict[str, Stored]()

    def add_if_new(self, id: str, text: str) -> tuple[str, bool, bool, str | None]:
        """Return the id, whether the document is kept, whether it was there before, and the id that
        removed it.
        """
        before = self.documents.get(id)
        if before is not None and before.text == text:
            return id, before.kept_id is None, True, before.kept_id
        self.remove(id)
        hits = self.query(text)
        self.documents[id] = Stored(text, hits[0] if hits else None)
        return id, not hits, False, self.documents[id].kept_id

    def remove(self, id: str) -> None:
        self.documents.pop(id, None)

    def query(self, text: str) -> list[str]:
        """Return the kept documents that would remove a text: equal ones, then the most similar,
        then the earliest.
        """
        found = [
            (stored.text != text, -strength, number, id)
            for number, (id, stored) in enumerate(self.documents.items())
            if stored.kept_id is None and (strength := self.strength(stored.text, text)) is not None
        ]
        return [id for *_, id in sorted(found)]
