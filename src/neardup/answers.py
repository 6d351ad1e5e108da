"""The answers of an index, and the comparison of two texts: records of the library, the service and
its client.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple


@dataclass(frozen=True)
class Hit:
    """A kept document that is similar to a query.

    id : of the document. similarity, distance, structure, exact : the measures that the method has.
    first_seen : when it was added. last_seen : when it or a duplicate of it was last sent.
    payload : the data stored with it.
    """

    id: str
    similarity: float | None
    distance: int | None
    structure: float | None
    exact: bool | None
    first_seen: datetime | None
    last_seen: datetime | None
    payload: Any


@dataclass(frozen=True)
class Answer:
    """The answer of an index about one document; a value that does not apply is None.

    id : of the document. kept : whether it was kept. repeated : whether the index had the same id
    and content before. kept_id : the document that removed it. similarity, distance, structure,
    exact : the measures of the two. truncated : whether a full bucket may have hidden a duplicate.
    first_seen, last_seen, payload : of the kept document. sources : of the kept document and of
    the documents removed for it so far, if the index tracks them. num_sources : their number.
    first_date, last_date : the least and the greatest of their dates.
    """

    id: str
    kept: bool
    repeated: bool
    kept_id: str | None
    similarity: float | None
    distance: int | None
    structure: float | None
    exact: bool | None
    truncated: bool
    first_seen: datetime | None
    last_seen: datetime | None
    payload: Any
    sources: list[str] | None = None
    num_sources: int | None = None
    first_date: str | None = None
    last_date: str | None = None


@dataclass(frozen=True)
class Document:
    """A document of an index.

    id : of the document. kept : whether it was kept. kept_id : the document that removed it.
    first_seen : when it was added. last_seen : when it or a duplicate of it was last sent.
    payload : the data stored with it. import_name : the import that brought it. text : of a kept
    document, if texts are stored. sketch : the signature, uint32 of shape (num_hashes,), or the
    words of the fingerprint, uint64 (num_words,), the lowest first; over HTTP hexadecimal digits.
    """

    id: str
    kept: bool
    kept_id: str | None
    first_seen: datetime | None
    last_seen: datetime | None
    payload: Any
    import_name: str | None
    text: str | None
    sketch: Any


@dataclass(frozen=True)
class Committed:
    """The numbers of documents of an import, by decision.

    kept : documents that were kept. removed : duplicates of kept ones. repeated : documents that
    the index had before.
    """

    kept: int
    removed: int
    repeated: int

    @classmethod
    def of(cls, answers: Any) -> Committed:
        """Return the numbers of a table of answers, see `schemas.answers_schema`."""
        # `repeated` documents have an earlier decision in `kept`, so they are counted by
        # themselves.
        kept = answers["kept"].to_numpy()
        repeated = answers["repeated"].to_numpy()
        return cls(
            kept=int((kept & ~repeated).sum()),
            removed=int((~kept & ~repeated).sum()),
            repeated=int(repeated.sum()),
        )


class PairMeasures(NamedTuple):
    """The measures of two texts.

    num_left, num_right, num_shared : distinct shingles or features. jaccard : shared out of all.
    left_in_right, right_in_left : containment. same_text : equal after normalisation. similarity :
    the measure that the method compares with its threshold; None if it measures a distance only.
    duplicate : whether the pair is a duplicate in a run that compares it. estimated_jaccard : from
    MinHash signatures of the run's length. candidate_probability : the probability that the bands
    propose the pair. fingerprints : of SimHash. distance : the number of differing bits.
    weighted_cosine : the cosine of the weights of the features in both texts, such as TF-IDF, as
    SimHash weighs them (the vector space model: Salton, Wong and Yang 1975). structure : of web
    pages, the similarity of their tags, if the method measures it. A measure that the method does
    not have is None; the distance and the cosine of weights also if a text has no features.
    """

    num_left: int
    num_right: int
    num_shared: int
    jaccard: float
    left_in_right: float
    right_in_left: float
    same_text: bool
    similarity: float | None
    duplicate: bool
    estimated_jaccard: float | None = None
    candidate_probability: float | None = None
    fingerprints: tuple[int, int] | None = None
    distance: int | None = None
    weighted_cosine: float | None = None
    structure: float | None = None

    @property
    def cosine(self) -> float:
        """Return the geometric mean of both containments."""
        return math.sqrt(self.left_in_right * self.right_in_left)


@dataclass(frozen=True)
class Comparison:
    """The comparison of two texts.

    duplicate : whether the method counts the two as duplicates. similarity, threshold : the
    similarity of the method, and its threshold. measures : every measure of the pair.
    """

    duplicate: bool
    similarity: float
    threshold: float
    measures: PairMeasures
