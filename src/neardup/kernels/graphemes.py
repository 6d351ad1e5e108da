"""Grapheme clusters, the characters as readers see them: the rules of Unicode Standard Annex 29.

The class of a code point is in the high byte of its entry of
`features.boundaries.boundary_classes`. The rules follow Unicode 18. In earlier versions, GB9c also
required a consonant before the linker.
"""

from __future__ import annotations

from neardup.kernels.compiled import kernel
from neardup.kernels.strings import code_at, retreat

CLASS_SHIFT = 8
# The order of tools/build_grapheme_table.py.
OTHER, PICTOGRAPH, CONSONANT, CR, LF, CONTROL = range(6)
# Members of the cluster before them: marks, ZERO WIDTH NON-JOINER, signs that join consonants
# (viramas), ZERO WIDTH JOINER, vowel signs and marks with a width.
EXTEND, NON_JOINER, LINKER, JOINER, SPACING = range(6, 11)
PREPEND, LINKER_LETTER, FLAG = range(11, 14)
# Hangul: the consonants and vowels of a syllable, and whole syllables without and with a final
# consonant.
LEADING, VOWEL, TRAILING, OPEN_SYLLABLE, CLOSED_SYLLABLE = range(14, 19)
# Characters with entries below it are joined to no neighbour, unless it is of a later class.
_FIRST_JOINED = CR << CLASS_SHIFT

# More marks on one letter, and more flags in a row, are not followed. `candidates.passages` stores
# that much text.
LONGEST_CLUSTER = 64


@kernel
def is_within_cluster(text, place, begin, classes, left_entry, right_entry):
    """Return whether a place between two characters is within a grapheme cluster.

    begin : where the text begins, before the place. classes : uint16 by code point. left_entry,
    right_entry : the entries of the two characters.
    """
    if left_entry < _FIRST_JOINED and right_entry < _FIRST_JOINED:  # nearly all
        return False
    left = left_entry >> CLASS_SHIFT
    right = right_entry >> CLASS_SHIFT
    if CR <= left <= CONTROL or CR <= right <= CONTROL:  # GB3 to GB5
        return left == CR and right == LF
    if EXTEND <= right <= SPACING or left == PREPEND:  # GB9 to GB9b
        return True
    if right == CONSONANT:
        return _follows_linker(text, place, begin, classes)
    if right == PICTOGRAPH:
        return left == JOINER and _joins_pictograph(text, place, begin, classes)
    if right == FLAG:
        return left == FLAG and _is_second_of_flag(text, place, begin, classes)
    return _is_within_syllable(left, right)


@kernel
def _class_before(text, place, begin, classes):
    return classes[code_at(text, retreat(text, place, begin, 1))] >> CLASS_SHIFT


@kernel
def _follows_linker(text, place, begin, classes):
    """Return whether marks alone are between a sign that joins consonants and a place (GB9c)."""
    for _ in range(LONGEST_CLUSTER):
        if place == begin:
            break
        before = _class_before(text, place, begin, classes)
        if before in (LINKER, LINKER_LETTER):
            return True
        if before not in (EXTEND, JOINER):
            break
        place = retreat(text, place, begin, 1)
    return False


@kernel
def _joins_pictograph(text, place, begin, classes):
    """Return whether a ZERO WIDTH JOINER before a place belongs to a pictograph, perhaps with marks
    (GB11).
    """
    place = retreat(text, place, begin, 1)
    for _ in range(LONGEST_CLUSTER):
        if place == begin:
            break
        before = _class_before(text, place, begin, classes)
        if before == PICTOGRAPH:
            return True
        if before not in (EXTEND, NON_JOINER, LINKER):
            break
        place = retreat(text, place, begin, 1)
    return False


@kernel
def _is_second_of_flag(text, place, begin, classes):
    """Return whether a place is within a pair of regional indicators: after an odd number (GB12,
    GB13).
    """
    count = 0
    while (
        place > begin
        and count < LONGEST_CLUSTER
        and _class_before(text, place, begin, classes) == FLAG
    ):
        place = retreat(text, place, begin, 1)
        count += 1
    return count & 1 == 1


@kernel
def _is_within_syllable(left, right):
    """Return whether two Hangul letters or syllables belong together (GB6 to GB8)."""
    if left == LEADING:
        return right in (LEADING, VOWEL, OPEN_SYLLABLE, CLOSED_SYLLABLE)
    if left in (OPEN_SYLLABLE, VOWEL):
        return right in (VOWEL, TRAILING)
    return left in (CLOSED_SYLLABLE, TRAILING) and right == TRAILING
