"""Compare single texts."""

from __future__ import annotations

from functools import partial

from neardup.engines.local import pipeline
from neardup.errors import InputError
from neardup.results import Comparison
from neardup.settings.methods import Method, MinHash
from neardup.settings.presets import method_named
from neardup.verify import comparison as comparing


def compare(left: str, right: str, *, method: Method | str = "minhash") -> Comparison:
    """Compare two texts: how alike they are, and where.

    Parameters
    ----------
    left, right : the texts themselves.
    method : how they are compared; `containment` asks how much of `left` is in `right`.

    Returns
    -------
    Comparison

    Examples
    --------
    >>> import neardup
    >>> method = neardup.MinHash(ngram=2)
    >>> neardup.compare("a rose is a rose", "a rose is a tulip", method=method).similarity
    0.75
    """
    method = method_named(method)
    for side, text in (("left", left), ("right", right)):
        if not isinstance(text, str):
            raise InputError(
                f"The {side} text is {type(text).__name__}, not a string: got {text!r:.80}. Pass two strings."
            )
    bands = pipeline.bands_of(method) if isinstance(method, MinHash) else None
    measures = comparing.measure(left, right, method, bands)
    similarity = comparing.similarity_of(measures, method)
    duplicate = comparing.are_duplicates(measures, similarity, method)
    left, right = comparing.shown(left, right, method)
    mark = partial(comparing.mark, left, right, method)
    return Comparison(left, right, measures, similarity, method.threshold, bands, duplicate, mark)
