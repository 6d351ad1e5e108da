"""Grapheme clusters, the characters as readers see them: the rules of Unicode Standard Annex 29.

The class of a code point is in the high byte of its entry of
`features.boundaries.boundary_classes`. The rules follow Unicode 18. In earlier versions, GB9c also
required a consonant before the linker.
"""

from __future__ import annotations

from neardup.kernels.compiled import kernel
from neardup.kernels.strings import code_at, retreat

CLASS_SHIFT = 8
# Classes of code points, in the order of tools/build_grapheme_table.py.
OTHER, PICTOGRAPH, CONSONANT, CR, LF, CONTROL = range(6)
# Members of the cluster before them: marks, ZERO WIDTH NON-JOINER, signs that join consonants
# (viramas), ZERO WIDTH JOINER, vowel signs and marks with a width.
EXTEND, NON_JOINER, LINKER, JOINER, SPACING = range(6, 11)
# Signs before their letter (GB9b), letters that join consonants as viramas do (GB9c), regional
# indicators.
PREPEND, LINKER_LETTER, FLAG = range(11, 14)
# Hangul: the consonants and vowels of a syllable, and whole syllables without and with a final
# consonant.
LEADING, VOWEL, TRAILING, OPEN_SYLLABLE, CLOSED_SYLLABLE = range(14, 19)
# Two characters of classes before CR are never joined: one of the two must have a later class. This
# comparison alone decides nearly all pairs of characters.
_FIRST_JOINED = CR << CLASS_SHIFT

# Maximum number of characters of a cluster that are followed, back from a position: without it, a
# text of marks alone would take quadratic time. `candidates.passages` stores this much text before
# an anchor.
LONGEST_CLUSTER = 64


@kernel
def is_within_cluster(text, position, text_start, classes, left_entry, right_entry):
    """Return whether a position between two characters is within a grapheme cluster.

    text_start : the start of the text, before the position. classes : uint16 by code point.
    left_entry, right_entry : the entries of the two characters.
    """
    if left_entry < _FIRST_JOINED and right_entry < _FIRST_JOINED:
        return False
    left = left_entry >> CLASS_SHIFT
    right = right_entry >> CLASS_SHIFT
    if CR <= left <= CONTROL or CR <= right <= CONTROL:  # GB3 to GB5
        return left == CR and right == LF
    if EXTEND <= right <= SPACING or left == PREPEND:  # GB9 to GB9b
        return True
    if right == CONSONANT:
        return _follows_linker(text, position, text_start, classes)
    if right == PICTOGRAPH:
        return left == JOINER and _joins_pictograph(text, position, text_start, classes)
    if right == FLAG:
        return left == FLAG and _is_second_of_flag(text, position, text_start, classes)
    return _is_within_syllable(left, right)


@kernel
def _class_before(text, position, text_start, classes):
    """Return the class of the character before a position."""
    return classes[code_at(text, retreat(text, position, text_start, 1))] >> CLASS_SHIFT


@kernel
def _follows_linker(text, position, text_start, classes):
    """Return whether a position follows a sign that joins consonants (virama), with at most marks
    in between (GB9c).
    """
    for _ in range(LONGEST_CLUSTER):
        if position == text_start:
            break
        before = _class_before(text, position, text_start, classes)
        if before in (LINKER, LINKER_LETTER):
            return True
        if before not in (EXTEND, JOINER):
            break
        position = retreat(text, position, text_start, 1)
    return False


@kernel
def _joins_pictograph(text, position, text_start, classes):
    """Return whether the ZERO WIDTH JOINER before a position follows a pictograph, with at most
    marks in between (GB11).
    """
    position = retreat(text, position, text_start, 1)
    for _ in range(LONGEST_CLUSTER):
        if position == text_start:
            break
        before = _class_before(text, position, text_start, classes)
        if before == PICTOGRAPH:
            return True
        if before not in (EXTEND, NON_JOINER, LINKER):
            break
        position = retreat(text, position, text_start, 1)
    return False


@kernel
def _is_second_of_flag(text, position, text_start, classes):
    """Return whether a position follows an odd number of regional indicators: it divides a flag
    (GB12, GB13).
    """
    count = 0
    while (
        position > text_start
        and count < LONGEST_CLUSTER
        and _class_before(text, position, text_start, classes) == FLAG
    ):
        position = retreat(text, position, text_start, 1)
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
