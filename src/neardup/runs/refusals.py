"""The options of a run that exclude each other, in one table.

An engine, a method or a rule of decision refuses the options that it does not take itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from neardup.errors import SettingError
from neardup.settings.constraints import Options


class _Refusal(NamedTuple):
    """A row of the table.

    run : the function that runs, or the kind of its method. applies : returns whether to refuse the
    given options. sentence : the error, with the options as fields.
    """

    run: str
    applies: Callable[[Options], bool]
    sentence: str


_WITHOUT_FOLDER = (
    "write sets the contents of an output folder: got write={write!r} without one. Pass output"
)


def _decides_otherwise(given: Options) -> bool:
    """Return whether a run decides about chains, passages or groups, not about single pairs."""
    return (
        given["linkage"] != "sieve"
        or given["passages"] is not None
        or given["group_by"] is not None
    )


_REFUSALS = (
    _Refusal(
        "dedup",
        lambda given: given["write"] != "kept" and given["output"] is None,
        _WITHOUT_FOLDER + ", or use the mask of the result.",
    ),
    _Refusal(
        "dedup",
        lambda given: given["passages"] is not None and given["write"] not in ("kept", "removed"),
        "passages are cut from kept documents: got write={write!r} with passages={passages}. Use "
        "write='kept' (--write kept) or 'removed', or leave passages (--passages) out.",
    ),
    _Refusal(
        "dedup",
        lambda given: given["rethreshold"] and _decides_otherwise(given),
        "rethreshold=True keeps pairs, which do not decide about chains, passages or groups: got "
        "keep={keep!r}, linkage={linkage!r}, passages={passages!r}, group_by={group_by!r}. Leave "
        "rethreshold out, and run dedup again for each limit.",
    ),
    _Refusal(
        "remove_passages",
        lambda given: given["output"] is None and given["write"] != "kept",
        _WITHOUT_FOLDER + ".",
    ),
    _Refusal(
        "remove_passages",
        lambda given: given["keep"] == "none" and given["against"] is not None,
        "against needs keep='first' (--keep first): got keep='none', which keeps no copy of a "
        "passage.",
    ),
    _Refusal(
        "remove_passages",
        lambda given: given["keep"] != "none" and given["within"] is not None,
        "within needs keep='none': got within={within!r} with keep={keep!r}. Add keep='none' "
        "(--keep none), or leave within (--within) out.",
    ),
    _Refusal(
        "find_contamination",
        lambda given: given["output"] is None and given["write"] != "none",
        _WITHOUT_FOLDER + ".",
    ),
    _Refusal(
        "vectors",
        lambda given: given["passages"] is not None,
        "passages are cut from texts: got passages={passages} with {method}, which compares "
        "vectors. Leave passages (--passages) out.",
    ),
    _Refusal(
        "fingerprints",
        lambda given: given["within"] is not None,
        "within needs a method that compares the features of documents: got within={within!r} with "
        "confirm='hamming'. Use confirm='jaccard' (--confirm jaccard), or method='minhash' "
        "(--method minhash).",
    ),
    _Refusal(
        "pairs of fingerprints",
        lambda given: given["engine"] != "local",
        "Fingerprints are compared on this machine: got engine={engine!r}. Leave engine (--engine) "
        "out.",
    ),
)


def refuse_together(run: str, **given: Any) -> None:
    """Raise SettingError if options of a run do not go together; run : the function, or the kind of
    its method.
    """
    for refusal in _REFUSALS:
        if refusal.run == run and refusal.applies(given):
            raise SettingError(refusal.sentence.format_map(given))
