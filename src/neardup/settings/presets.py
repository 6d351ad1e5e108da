"""Named bundles of settings for kinds of texts; the caller's own settings replace theirs."""

from __future__ import annotations

import math
from typing import Any

from neardup.errors import SettingError
from neardup.settings.constraints import Constraint

PRESETS: dict[str, dict[str, Any]] = {
    "code": {"tokens": "code", "ngram": 8, "nfkc": False, "case_fold": False, "threshold": 0.7}
}
"""The settings of each preset, by their names."""

PRESET = Constraint("Settings for source code (code).", str, choices=tuple(PRESETS), optional=True)
NOISE = Constraint(
    "The share of wrong characters, such as 0.05 or 5%, in each text from OCR, typing or "
    "speech; half of it if the other text is clean. Compares letters without spaces and signs, "
    "at a threshold that such errors leave. Use 0.15 for texts with more errors, too.",
    float,
    exclusive_min=0.0,
    high=0.15,
    optional=True,
)
_NGRAM = 5
_LENGTH = 200  # characters
_DEVIATIONS = 2.326  # the quantile of the normal distribution at 0.99
# Unrelated English texts of 10,000 characters share up to 0.16 of their runs of 5 characters, and
# 0.10 of their runs of 6.
_UNRELATED = 0.8
_LEAST = 0.1
# Up to _FEW_ROWS the rows of a band are set here: choose_bands knows the costs of words, and for
# letters its bands of one row took 1.7 times the processor time. Few pairs are at the threshold, so
# it is enough to find 0.9 of them. Bands of three rows then take half the time; below _THREE_ROWS
# there would be too many of them.
_FEW_ROWS = 0.45
_THREE_ROWS = 0.25
_FEW_AT_THRESHOLD = 0.9
# Texts with more errors share so little by chance that their threshold may fall: along a line
# through measured ones.
_HEAVY = 0.1
_LEAST_NGRAM = 4
_AT_NONE = 0.155
_REACHED = 0.048  # the lowest threshold that the largest number of bands of two rows reaches


def preset_settings(
    preset: str | None, noise: float | str | None, given: dict[str, Any]
) -> dict[str, Any]:
    """Return the settings of a preset, or for a share of wrong characters, with the given ones in
    their place.

    Raises
    ------
    SettingError
        If the preset is unknown, the share is none, or both are set.
    """
    share = _share_of(noise)
    PRESET.check("preset", preset)
    share = NOISE.check("noise", share, noise)
    if preset is not None and share is not None:
        raise SettingError(
            f"preset and noise each choose the tokens: got preset={preset!r}, noise={noise!r}. Set "
            "one."
        )
    if share is None:
        return PRESETS.get(preset or "", {}) | given
    settings = _noise_settings(share, given) | given
    # Letters have neither hyphens nor line ends.
    if settings["tokens"] == "chars":
        fold = given.get("fold", ())
        settings["fold"] = ["hyphens", *([fold] if isinstance(fold, str) else fold)]
    return settings


def _noise_settings(share: float, given: dict[str, Any]) -> dict[str, Any]:
    """Return the settings for a share of wrong characters. Raises SettingError if other tokens are
    given.
    """
    tokens = given.get("tokens", "letters")
    if tokens not in ("letters", "chars"):
        raise SettingError(
            "noise counts wrong characters, so its tokens must be letters or chars: got "
            f"noise={share} with tokens={tokens!r}. Leave tokens (--tokens) or noise (--noise) out."
        )
    ngram = given.get("ngram", _NGRAM)
    similarity = given.get("similarity", "jaccard")
    threshold = noise_threshold(share, ngram=ngram, similarity=similarity)
    settings = {"tokens": tokens, "ngram": ngram, "threshold": threshold, "above_chance": True}
    least = min(given.get("threshold", threshold), threshold)
    if similarity == "containment" or least > _FEW_ROWS:
        return settings
    settings["rows_per_band"] = 3 if least > _THREE_ROWS else 2
    is_heavy = _is_heavy(share, ngram, similarity)
    if is_heavy:
        settings["boost_rare"] = True
    if is_heavy or least > _THREE_ROWS:
        settings["recall"] = _FEW_AT_THRESHOLD
    return settings


def noise_threshold(noise: float, *, ngram: int = _NGRAM, similarity: str = "jaccard") -> float:
    """Return the similarity that texts with a share of wrong characters in each reach: 97 to 99 %
    of the pairs of 200 characters up to 0.05, 89 % at 0.1, where the least similarity counts.

    Parameters
    ----------
    noise : the share of characters that are wrong, in each text.
    ngram : characters in a shingle.
    similarity : "jaccard"; with others the share p of the shingles of one text that are in the
        other.

    Returns
    -------
    float
        Of three digits. The Jaccard similarity is at least 0.8 / ngram, which unrelated texts of up
        to 10,000 characters do not reach, and 0.1; `above_chance` decides about longer ones. Of
        more than a tenth of wrong characters, and shingles of 4 or more, it is (0.155 - noise / 2)
        * 5 / ngram and at least 0.048, with rare shingles boosted, as measured:
        benchmarks/results/accuracy-noise.md.

    Notes
    -----
    A character is right in both texts with the probability q = (1 - noise)^2, and a shingle of n
    with p = q^n, if errors are independent. Two shingles that begin k < n characters apart are both
    right with q^(n + k), so that the share of right shingles in N characters has the variance (p (1
    - p) + 2 sum_k (q^(n + k) - p^2)) / N. The result is 2.326 standard deviations below p in 200
    characters, and of Jaccard similarity p / (2 - p) there.

    Examples
    --------
    >>> noise_threshold(0.05), noise_threshold(0.05, ngram=7)
    (0.271, 0.165)
    >>> noise_threshold(0.05, similarity="containment")
    0.426
    """
    if _is_heavy(noise, ngram, similarity):
        return max(_REACHED, round((_AT_NONE - noise / 2.0) * _NGRAM / ngram, 3))
    # The chance that a character is right in both texts.
    right = (1.0 - noise) ** 2
    same = right**ngram
    # Neighbouring shingles, `apart` characters from each other, share characters, so their chances
    # are not independent:
    #   apart = 2, ngram = 5
    #   c c c c c
    #       c c c c c      right ** 7 for both
    together = sum(right ** (ngram + apart) - same * same for apart in range(1, ngram))
    # Of the share of equal shingles in a text of _LENGTH shingles.
    variance = (same * (1.0 - same) + 2.0 * together) / _LENGTH
    unrelated = max(_UNRELATED / ngram, _LEAST)
    # From Jaccard to the share of one text, 2j / (1 + j); the next line has the reverse.
    least = max(same - _DEVIATIONS * math.sqrt(variance), 2.0 * unrelated / (1.0 + unrelated))
    return round(least / (2.0 - least) if similarity == "jaccard" else least, 3)


def _is_heavy(noise: float, ngram: int, similarity: str) -> bool:
    """Return whether the threshold is below the similarity of unrelated clean texts. Shingles of 3
    are too short for it.
    """
    return noise > _HEAVY and ngram >= _LEAST_NGRAM and similarity == "jaccard"


def _share_of(noise: Any) -> Any:
    """Return a share in per cent, such as "5%", as a number; other values unchanged."""
    if not isinstance(noise, str):
        return noise
    # `NOISE.check` refuses other words, and names them.
    try:
        return float(noise.removesuffix("%")) / (100.0 if noise.endswith("%") else 1.0)
    except ValueError:
        return noise
