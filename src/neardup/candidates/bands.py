"""Choose the bands of MinHash signatures, and pack their keys."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from neardup.arrays import Floats, Ints, Positions, Words, is_real
from neardup.errors import SettingError
from neardup.settings.constraints import check_limit

MAX_BANDS = 1024
MAX_ROWS = 64
MAX_RECALL = 0.999999
# The plan weighs the hashes of a signature against false candidates. A pair compared costs about as
# much as 60 hashes of a document: measured 12 at 900 words a document, 180 at 33. In the model
# corpus, _DENSITY * exp(-_DECAY * s) is the density of other documents at similarity s to a random
# document. It predicts the 4.6 and 3.9 comparisons per document that 9 x 4 and 12 x 5 bands made on
# 84,426 manual pages, changelogs and chapters (520 MB).
_PAIR_COST = 60.0
_DENSITY = 30.0
_DECAY = 1.0


class Bands(NamedTuple):
    """A signature of num_bands x rows_per_band hashes."""

    num_bands: int
    rows_per_band: int

    @property
    def num_hashes(self) -> int:
        """The length of a signature."""
        return self.num_bands * self.rows_per_band


def candidate_probability(similarity: npt.ArrayLike, bands: Bands) -> Floats:
    """Return the probability that two documents share at least one band: P = 1 - (1 - s^r)^b.

    Parameters
    ----------
    similarity : Jaccard similarities in [0, 1], any shape.
    bands : b bands of r rows.

    Returns
    -------
    float64 array of the same shape.

    Notes
    -----
    The S-curve of Leskovec, Rajaraman and Ullman, Mining of Massive Datasets, section 3.4.2.
    Computed by log1p and expm1, exact to the last digits near 0 and 1.

    Examples
    --------
    >>> round(float(candidate_probability(0.4, Bands(100, 3))), 7)
    0.9986585
    """
    row = np.asarray(similarity, np.float64) ** bands.rows_per_band
    with np.errstate(divide="ignore"):
        return np.asarray(-np.expm1(bands.num_bands * np.log1p(-row)))


def choose_bands(
    threshold: float,
    recall: float,
    *,
    num_hashes: int | None = None,
    rows_per_band: int | None = None,
) -> Bands:
    """Choose the cheapest bands that find a pair at the threshold with the requested recall.

    Parameters
    ----------
    threshold : Jaccard similarity in (0, 1].
    recall : share in (0, 1) of the pairs just at the threshold that must share a band.
    num_hashes : the length of existing signatures, the maximum that bands may use. None: as
        many hashes as needed.
    rows_per_band : the rows of a band. None: the cheapest number.

    Returns
    -------
    Bands

    Raises
    ------
    SettingError
        If a value is outside its limits; or if MAX_BANDS bands, or num_hashes hashes, do not reach
        the recall. The message names the recall that they reach.
    """
    for name, value, limit in (("threshold", threshold, 1.0), ("recall", recall, MAX_RECALL)):
        if not is_real(value) or not 0.0 < value <= limit:
            raise SettingError(
                f"{name} must be a number above 0 and at most {limit}: got {value!r}. Change "
                f"{name}."
            )
    if rows_per_band is not None:
        check_limit(rows_per_band, "rows_per_band")
    best: Bands | None = None
    best_cost = math.inf
    for rows in range(1, MAX_ROWS + 1) if rows_per_band is None else (rows_per_band,):
        num_bands = bands_needed(threshold**rows, recall)
        if num_bands > MAX_BANDS:
            break  # more rows need even more bands
        bands = Bands(num_bands, rows)
        if num_hashes is not None and bands.num_hashes > num_hashes:
            continue
        cost = bands.num_hashes + _PAIR_COST * expected_false_candidates(bands, threshold)
        if cost < best_cost:
            best = bands
            best_cost = cost
    if best is None:
        raise _unreachable_recall(threshold, recall, num_hashes, rows_per_band or 1)
    return best


def _unreachable_recall(
    threshold: float, recall: float, num_hashes: int | None, rows_per_band: int
) -> SettingError:
    """Return the error of `choose_bands`, with the recall that can be reached."""
    num_bands = MAX_BANDS if num_hashes is None else min(num_hashes // rows_per_band, MAX_BANDS)
    reached = 0.0
    if num_bands > 0:
        reached = float(candidate_probability(threshold, Bands(num_bands, rows_per_band)))
    has_all_bands = num_bands == MAX_BANDS
    limit_text = (
        f"{MAX_BANDS} bands" if has_all_bands else f"the {num_hashes} hashes of a signature"
    )
    longer = "" if has_all_bands else ", or use longer signatures"
    return SettingError(
        f"recall={recall} at threshold={threshold} needs more than {limit_text}. At this threshold "
        f"a recall of {math.floor(reached * 1000) / 1000} can be reached: lower the recall or "
        f"raise the threshold{longer}."
    )


def bands_needed(agreement: float, recall: float) -> int:
    """Return the fewest bands that agree in at least one with probability `recall`.

    Above MAX_BANDS it is MAX_BANDS + 1. agreement : the probability that one band agrees.
    """
    if agreement >= 1.0:
        return 1
    num_bands = math.log1p(-recall) / math.log1p(-agreement) if agreement > 0 else math.inf
    return MAX_BANDS + 1 if num_bands > MAX_BANDS else max(1, math.ceil(num_bands - 1e-12))


def expected_false_candidates(bands: Bands, threshold: float) -> float:
    """Return the comparisons of a document below the threshold, in the model corpus."""
    similarity = np.linspace(0.0, threshold, 201)
    density = _DENSITY * np.exp(-_DECAY * similarity)
    values = candidate_probability(similarity, bands) * density
    # The trapezoidal rule.
    return float(np.sum((values[1:] + values[:-1]) / 2) * (similarity[1] - similarity[0]))


def bits_for(count: int) -> int:
    """Return the number of bits that represent the numbers below `count`."""
    return max(1, (count - 1).bit_length())


def pack_keys(keys: Words, positions: Positions | Ints, num_positions: int) -> Words:
    """Return keys and positions packed in one sorted integer each.

    The upper bits are the key's, the lower ones are the position. The integers are written over the
    keys. Two keys that agree in the remaining bits (32 or more) collide, which adds candidates and
    loses none. Sorting plain integers is several times faster than sorting an index by them.
    """
    bits = np.uint64(bits_for(num_positions))
    keys >>= bits
    keys <<= bits
    np.bitwise_or(keys, positions, out=keys, casting="unsafe")
    keys.sort()
    return keys
