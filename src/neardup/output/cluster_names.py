"""Name clusters of documents by the common parts of their members."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

import numpy as np
import pyarrow as pa

from neardup.arrays import Positions
from neardup.decide.clusters import Clusters, pick_others
from neardup.features.outline import Line, common_places, outline, outline_name
from neardup.features.shingles import extract_text
from neardup.features.spans import token_spans
from neardup.report.wording import shortened_in_the_middle, visible
from neardup.settings.methods import PAGE_TOKENS, Shingling
from neardup.verify.alignment import mark_passages

# Clusters that get a name: each takes some milliseconds, because its members are read and compared
# again.
MAX_NAMED = 1000
_OTHERS = 2  # members whose common part with the first is the name
_MAX_CHARACTERS = 500  # of a text
_MAX_LINES = 300  # of an outline
_MAX_ELEMENTS = 5000  # of a page
_MAX_NAME = 80  # characters
_MAX_ID = 40  # characters
_MIN_RARITY = 0.05  # of a label that all clusters share, used if there is no rarer one

ReadTexts = Callable[[Positions], Iterable[tuple[int, str]]]


def name_clusters(clusters: Clusters, shingling: Shingling, read_texts: ReadTexts) -> list[str]:
    """Return the names of the largest clusters, at most MAX_NAMED, each in one line.

    Parameters
    ----------
    read_texts : maps document numbers, rising, to pairs of a document number and its text.

    Notes
    -----
    The name of a cluster of pages, compared by structure, is a path of the outline that some of
    them share, through elements that few other clusters have. The name of a cluster of texts is the
    start of the longest passage that the beginnings of some of them share, or of the first text if
    they share none.
    """
    members = _shown_members(clusters)
    # So that `concatenate` has an array if there is no cluster.
    documents = np.unique(np.concatenate([np.empty(0, np.int64), *members])).astype(np.uint32)
    if shingling.tokens in PAGE_TOKENS:
        outlines = {
            document: outline(text, max_lines=_MAX_LINES, max_elements=_MAX_ELEMENTS).lines
            for document, text in read_texts(documents)
        }
        names = outline_names([[outlines[document] for document in cluster] for cluster in members])
    else:
        texts = {document: _opening(text, shingling) for document, text in read_texts(documents)}
        names = [
            passage_name([texts[document] for document in cluster], shingling)
            for cluster in members
        ]
    # Hidden characters become words, and the name stays one line.
    return [" ".join(visible(" ".join(name.split())).split()) for name in names]


def _shown_members(clusters: Clusters) -> list[list[int]]:
    """Return the members that name each cluster: its first document, and some of the others."""
    num_named = min(clusters.num_clusters, MAX_NAMED)
    firsts = clusters.members[clusters.offsets[:num_named]].tolist()
    others, offsets = pick_others(clusters, 0, num_named, _OTHERS)
    return [
        [first, *others[start:stop].tolist()]
        for first, start, stop in zip(firsts, offsets[:-1], offsets[1:], strict=True)
    ]


def distinct_names(names: Sequence[str], first_ids: Sequence[str]) -> list[str]:
    """Return the names of clusters; one that several have is followed by the id of its first
    document.

    Parameters
    ----------
    first_ids : by cluster, as long as `names`.
    """
    repeats = Counter(names)
    return [
        name
        if repeats[name] == 1
        else f"{name} ({visible(shortened_in_the_middle(first, _MAX_ID))})".strip()
        for name, first in zip(names, first_ids, strict=True)
    ]


def outline_names(clusters: Sequence[Sequence[Sequence[Line]]]) -> list[str]:
    """Return a name for each cluster of outlines, from labels that few clusters have."""
    shared = [common_places(first, others) for first, *others in clusters]
    num_clusters = Counter(
        label
        for (first, *_), positions in zip(clusters, shared, strict=True)
        for label in {first[position].label for position in positions}
    )

    def rarity(label: str) -> float:
        return _MIN_RARITY + math.log(len(clusters) / max(num_clusters[label], 1))

    return [
        outline_name(first, positions, rarity)
        or outline_name(first, set(range(len(first))), rarity)
        for (first, *_), positions in zip(clusters, shared, strict=True)
    ]


def passage_name(texts: Sequence[str], method: Shingling) -> str:
    """Return the first words of the longest passage of the first text that all others share, or
    the first words of the text.
    """
    first, *others = texts
    spans = token_spans(first, method)
    # One byte for each character: 1 as long as all others share it.
    shared = bytearray(b"\x01") * len(first)
    for other in others:
        passages, _ = mark_passages(first, spans, other, token_spans(other, method), method.ngram)
        for passage in passages:
            if not passage.shared:
                shared[passage.start : passage.end] = bytes(passage.end - passage.start)
    runs = [first[run.start() : run.end()] for run in re.finditer(rb"\x01+", bytes(shared))]
    # Without a common passage, the beginning of the first text.
    return _first_words(max(runs, key=len, default=first))


def _opening(text: str, method: Shingling) -> str:
    """Return the beginning of the compared text of a document."""
    compared = extract_text(pa.array([text], pa.large_string()), method)[0].as_py()
    return (compared or "")[:_MAX_CHARACTERS]


def _first_words(text: str) -> str:
    """Return a text cut to _MAX_NAME characters, at the end of a word if one is near."""
    line = " ".join(text.split())
    if len(line) <= _MAX_NAME:
        return line
    cut = line.rfind(" ", _MAX_NAME // 2, _MAX_NAME)
    # One character less, for the ellipsis.
    return line[: cut if cut > 0 else _MAX_NAME - 1] + "…"
